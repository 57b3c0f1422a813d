// Looking one subject, key or item up, and acting upon it.
import { make, set, table } from './dom.js';
import { duration, number, say } from './words.js';

const $ = (id) => document.getElementById(id);
const form = $('lookup-form');
let things = [];
let shown = null; // what was looked up last: {thing, key, found}, once it is found
let asked = 0;

// offer fills in what may be looked up.
export function offer(all) {
  const same = JSON.stringify(all) === JSON.stringify(things);
  things = all;
  $('lookup').hidden = things.length === 0;
  if (same && form.of.dataset.lang === document.documentElement.lang) return; // what is typed stays
  const chosen = form.of.value;
  form.of.dataset.lang = document.documentElement.lang;
  form.of.replaceChildren(...things.map((t, i) => make('option', { value: String(i) }, say('called', { what: say(t.primitive), name: t.name }))));
  if (chosen && same) form.of.value = chosen;
  label();
  if (shown) draw();
}

function label() {
  const t = things[Number(form.of.value)];
  $('key-label').dataset.say = t ? `k.${t.primitive}` : 'subject';
  if (t) set($('key-label'), say(`k.${t.primitive}`));
}

async function send(to, body) {
  try {
    const response = await fetch(to, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
    if (response.status === 403) return { error: 'forbidden' };
    return await response.json();
  } catch {
    return { error: to === 'act' ? 'no answer' : 'unreachable' };
  }
}

async function look(thing, key) {
  set($('found'), say('looking'));
  $('actions').replaceChildren();
  shown = null;
  const mine = ++asked;
  const found = await send('lookup', { primitive: thing.primitive, name: thing.name, key });
  if (mine !== asked) return; // something else was looked up since
  shown = { thing, key, found };
  draw();
}

function draw() {
  const { thing, key, found } = shown;
  const about = make('p', {}, say('about', { what: key, of: say('called', { what: say(thing.primitive), name: thing.name }) }));
  if (found.error) {
    $('found').replaceChildren(about, make('p', { className: 'bad' }, say(`e.${found.error}`)));
    $('actions').replaceChildren();
    return;
  }
  $('found').replaceChildren(about, ...views[thing.primitive](found));
  $('actions').replaceChildren(...thing.actions.filter((a) => (a !== 'ban' && a !== 'unban') || found.canBan).map(actionForm));
}

const list = (pairs) => make('dl', {}, ...pairs.flatMap(([head, text]) => [make('dt', {}, say(head)), make('dd', {}, text)]));

const views = {
  limit(found) {
    const t = make('table', { className: 'cards' });
    table(t, [
      { head: say('h.policy'), of: (s) => (s.shadow ? say('about', { what: s.policy, of: say('f.shadow') }) : s.policy) },
      { head: say('f.next'), kind: 'words', of: (s) => (s.banned ? `✕ ${say('barred')}` : s.allowed ? `✓ ${say('yes')}` : `✕ ${say('no')}`) },
      { head: say('f.left'), of: (s) => number(s.remaining) },
      { head: say('f.limit'), of: (s) => `${number(s.limit)} ${s.unit}` },
      { head: say('f.retry'), of: (s) => (s.retryAfter ? duration(s.retryAfter) : '–') },
      { head: say('f.reset'), of: (s) => (s.resetAfter ? duration(s.resetAfter) : '–') },
    ], found.states.map((s) => ({ ...s, key: s.policy })));
    const notes = [];
    if (found.degraded) notes.push(make('p', { className: 'bad' }, say('degradedFound')));
    if (found.unknown) notes.push(make('p', { className: 'bad' }, say('sentences', { one: say('banUnknown'), other: say(`e.${found.unknown}`) })));
    if (found.banned) notes.push(list([['bannedFor', duration(found.banned)]]));
    return [...notes, t];
  },
  inflight: (found) => [list([['f.inflight', number(found.inFlight)]])],
  lock: (found) => [list([
    ['f.state', say(found.held ? 'taken' : 'free')],
    ...(found.held ? [['f.owner', found.owner], ['f.holds', number(found.holds)], ['f.lease', duration(found.lease)]] : []),
    ['f.fence', number(found.fence)],
  ])],
  guard: (found) => [list([
    ['f.state', say(`s.${found.state}`)],
    ...(found.state ? [['f.attempt', number(found.attempt)], ['f.fence', number(found.fence)], ['f.lease', found.lease ? duration(found.lease) : '–'],
      ['f.expires', found.expires < 0 ? say('never') : duration(found.expires)], ['f.size', say('bytes', { n: number(found.size) })]] : []),
  ])],
  stock: (found) => [list([
    ['f.for', number(found.left)], ['f.held', number(found.held)], ['f.sold', number(found.sold)], ['f.units', number(found.units)], ['f.expires', duration(found.lifetime)],
  ])],
};

// What an action needs to be told besides: [field, kind, value that is suggested].
const parameters = { ban: [['seconds', 'number', '600']], restock: [['units', 'number', '1'], ['id', 'text', '']] };

function actionForm(action) {
  const of = make('form', { autocomplete: 'off', data: { action } },
    ...(parameters[action] ?? []).map(([name, type, value]) => make('label', {}, say(`p.${name}`), make('input', { name, type, value, required: true, min: 1 }))),
    make('button', {}, say(`a.${action}`)));
  of.addEventListener('submit', (event) => {
    event.preventDefault();
    const more = Object.fromEntries((parameters[action] ?? []).map(([name, type]) => [name, type === 'number' ? Number(of[name].value) : of[name].value]));
    confirmed(action, more);
  });
  return of;
}

// confirmed asks whether the operator means it, and carries it out then. The dialog gives the focus back.
function confirmed(action, more) {
  const { thing, key, found } = shown;
  const dialog = $('confirm');
  set($('confirm-title'), say(`a.${action}`));
  set($('confirm-text'), say(`c.${action}`, { ...more, key, name: thing.name }));
  set($('confirm-yes'), say(`a.${action}`));
  dialog.returnValue = '';
  dialog.onclose = async () => {
    if (dialog.returnValue !== 'yes') return;
    const then = asked;
    const seen = { fence: found.fence, state: found.state }; // of locks and guards
    const answer = await send('act', { primitive: thing.primitive, name: thing.name, key, do: action, confirmed: true, ...seen, ...more });
    const text = answer.error ? say('called', { what: key, name: say(`e.${answer.error}`) }) : answer.found ? say('did', { key, what: say(`a.${action}`) }) : say('nothing', { key });
    $('outcome').replaceChildren(make('p', { className: answer.error ? 'bad' : answer.found ? 'good' : 'warn' }, text));
    if (then !== asked) return; // something else was looked up since, and stays
    await look(thing, key);
    form.key.focus();
  };
  dialog.showModal();
}

form.of.addEventListener('change', label);
form.addEventListener('submit', (event) => {
  event.preventDefault();
  const thing = things[Number(form.of.value)];
  $('outcome').replaceChildren();
  if (thing) look(thing, form.key.value);
});
