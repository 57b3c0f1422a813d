// The controls of the play program: they send traffic, and show what becomes of it.
import { make, set } from '../dom.js';
import { add, number, say, sayAll } from '../words.js';
import { bucket, cells, history, times, vessel } from './drawing.js';
import { words } from './playwords.js';

add(words);
const $ = (id) => document.getElementById(id);
const span = 20000; // milliseconds that are drawn, as times says
const calm = matchMedia('(prefers-reduced-motion: reduce)');
const algorithms = ['bucket', 'fixed', 'sliding', 'log'];
const modes = ['local', 'open', 'closed'];
let requests = [];
let levels = []; // {at, all, up}
let last = null;
let drawn = 0;
let next = 0; // the number of the request that is not known yet

async function tell(order) {
  await fetch('play/do', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(order) });
}

// card makes the drawing of a limiter: its name, how it works, and what it did.
function card(name, className, ...drawings) {
  return make('article', { className, data: { name } }, make('h4'), make('p', { className: 'how' }), ...drawings, make('p', { className: 'sums' }, make('span'), make('span'), make('span')));
}

$('algorithms').append(...algorithms.map((name) => card(name, 'algorithm', name === 'bucket' ? bucket() : vessel(), history(), times())));
$('modes').append(...modes.map((name) => card(name, 'mode', history(), times())));
sayAll();

function draw() {
  const now = last.now;
  const from = now - span;
  requests = requests.filter((r) => r.at > from);
  levels = levels.filter((l) => l.at > from - 200);
  algorithms.forEach((name, i) => {
    const of = $('algorithms').children[i];
    set(of.querySelector('h4'), say(`p.${name}`));
    set(of.querySelector('.how'), say(`p.${name}How`, { n: number(last.limit), s: number(last.window), drip: number(Math.round((last.window * 100) / last.limit) / 100) }));
    of.querySelector('.vessel').draw(last.levels[i], last.limit, say('p.left', { n: number(Math.floor(last.levels[i])), of: number(last.limit) }));
    of.querySelector('.history').draw({ from, now, i, requests, levels, limit: last.limit, label: `${say(`p.${name}`)}: ${sums(of, i)}` });
  });
  modes.forEach((name, n) => {
    const of = $('modes').children[n];
    set(of.querySelector('h4'), say(`p.${name}`));
    set(of.querySelector('.how'), say(`p.${name}How`));
    const i = algorithms.length + n;
    of.querySelector('.history').draw({ from, now, i, requests, levels, limit: 0, label: `${say(`p.${name}`)}: ${sums(of, i)}` });
  });
  for (const [id, on, yes, no] of [['redis', !last.up, 'p.start2', 'p.stop'], ['work', working(), 'p.rest', 'p.start']]) {
    $(id).disabled = false; // until the first event there is no state to change
    $(id).setAttribute('aria-pressed', String(on));
    $(id).dataset.say = on ? yes : no;
    set($(id), say($(id).dataset.say));
  }
  scenes();
}

// sums writes what one limiter said in the time that is drawn, and returns it in words.
function sums(of, i) {
  const count = (what) => requests.filter((r) => r.got[i] === what).length;
  const all = [['granted', count('granted')], ['denied', count('denied')], ['failed', count('failed')]];
  all.forEach(([what, n], at) => {
    const e = of.querySelector('.sums').children[at];
    e.className = `summary ${{ granted: 'good', denied: '', failed: 'bad' }[what]}`;
    set(e, n || what !== 'failed' ? `${{ granted: '✓', denied: '✕', failed: '!' }[what]} ${number(n)} ${say(what)}` : '');
  });
  return all.map(([what, n]) => `${number(n)} ${say(what)}`).join(', ');
}

const working = () => last.workers.some((w) => w.state !== 'resting');

function scenes() {
  cells($('workers'), last.workers.map((w) => [w.state, w.state === 'holding' ? `#${w.fence % 100000}` : w.times ? `×${w.times}` : '', say(`p.${w.state}`)]));
  const holding = last.workers.filter((w) => w.state === 'holding').length;
  set($('work-said'), say('p.holders', { n: number(holding), sum: number(last.workers.reduce((sum, w) => sum + w.times, 0)) }));
  cells($('copies'), last.copies.map((c, i) => [c, `${i + 1}`, say(`p.c.${c}`)]));
  const over = last.copies.every((c) => c && c !== 'asked');
  set($('repeat-said'), over ? say('p.charged', { n: number(last.charges) }) : '');
  cells($('buyers'), last.buyers.map((b, i) => [b, b === 'sold' ? '✓' : b === 'refused' ? '·' : b === 'failed' ? '!' : '', `${i + 1}: ${say(`p.b.${b}`)}`]), true);
  const sold = last.buyers.filter((b) => b === 'sold').length;
  const decided = last.buyers.every((b) => b && b !== 'asked');
  set($('sell-said'), decided ? say('p.soldOut', { n: number(sold), no: number(last.buyers.filter((b) => b === 'refused').length) }) : '');
}

const source = new EventSource('play/events');
source.onmessage = (event) => {
  last = JSON.parse(event.data);
  if (levels.length && last.now < levels[levels.length - 1].at) { // the program was started anew
    requests = [];
    levels = [];
    next = 0;
  }
  requests.push(...last.requests.slice(Math.max(0, next - (last.next - last.requests.length))));
  next = last.next;
  levels.push({ at: last.now, all: last.levels, up: last.up });
  if (document.activeElement?.form !== $('rules')) {
    for (const name of ['rate', 'limit', 'window']) $('rules')[name].value = last[name];
    $('rules').shown.value = last.rate;
  }
  if (calm.matches && last.now - drawn < 1000) return;
  drawn = last.now;
  draw();
};

function chosen() {
  const of = $('rules');
  of.shown.value = of.rate.value;
  if (of.checkValidity()) tell({ do: 'rules', rules: { rate: Number(of.rate.value), limit: Number(of.limit.value), window: Number(of.window.value) } });
}
$('rules').addEventListener('input', chosen);
$('rules').addEventListener('submit', (event) => event.preventDefault());
$('burst').addEventListener('click', () => tell({ do: 'burst' }));
$('reset').addEventListener('click', () => tell({ do: 'reset' }));
$('redis').addEventListener('click', () => tell({ do: 'redis', on: !last.up }));
$('work').addEventListener('click', () => tell({ do: 'work', on: !working() }));
$('repeat').addEventListener('click', () => tell({ do: 'repeat' }));
$('sell').addEventListener('click', () => tell({ do: 'sell' }));
