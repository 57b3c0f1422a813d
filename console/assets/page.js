// The page: it listens to the stream, and draws what it is told.
import { set } from './dom.js';
import { offer } from './lookup.js';
import { State } from './state.js';
import { legend, show, verdict } from './views.js';
import { choose, language, say, sayAll } from './words.js';

const $ = (id) => document.getElementById(id);
const state = new State();
let source = null;
let things = [];
let level = ['wait', 'connecting'];
let paused = false;

function judge(next) {
  level = next;
  const [name, key, values] = level;
  $('verdict').dataset.level = name;
  set($('verdict').querySelector('.text'), say(key, values));
  document.title = name === 'good' || name === 'wait' ? 'neap' : `${say(key, values)} – neap`;
}

function listen() {
  if (source || paused || document.hidden) return;
  source = new EventSource('events');
  source.onmessage = (event) => {
    const frame = JSON.parse(event.data);
    state.take(frame);
    if (frame.things) things = frame.things;
    else if (frame.now - frame.from + 1 >= frame.shown) things = [];
    judge(verdict(state));
    draw();
  };
  // The browser connects again by itself, unless it was answered with an error.
  source.onerror = async () => {
    if (source.readyState !== EventSource.CLOSED) {
      setTimeout(() => { if (source && source.readyState === EventSource.CONNECTING) judge(['bad', 'disconnected']); }, 3000);
      return;
    }
    close();
    const next = await refusal();
    if (source || paused) return;
    judge(next);
    setTimeout(listen, 3000);
  };
}

// refusal asks what the answer was: an EventSource does not say it. A proxy's 503 has no Retry-After.
async function refusal() {
  try {
    const { status, headers } = await fetch('events', { method: 'HEAD', signal: AbortSignal.timeout(3000) });
    if (status === 403) return ['bad', 'forbidden'];
    if (status === 503 && headers.has('Retry-After')) return ['bad', 'crowded'];
  } catch { /* no connection */ }
  return ['bad', 'disconnected'];
}

function close() {
  source?.close();
  source = null;
}

// draw shows what is known. The sentence at the top stays: what is known may be old.
function draw() {
  offer(things);
  show(state);
}

function speak() {
  sayAll();
  const other = language() === 'zh' ? 'en' : 'zh';
  $('language').lang = other;
  set($('language'), other === 'zh' ? '中文' : 'English');
  set($('pause'), say(paused ? 'go' : 'pause'));
  legend();
  judge(level);
  if (state.now) draw();
}

$('language').addEventListener('click', () => {
  choose(language() === 'zh' ? 'en' : 'zh');
  speak();
});
$('pause').addEventListener('click', () => {
  paused = !paused;
  $('pause').setAttribute('aria-pressed', String(paused));
  set($('pause'), say(paused ? 'go' : 'pause'));
  if (paused) {
    close();
    judge(['wait', 'paused']);
  } else listen();
});
$('seconds').addEventListener('toggle', () => { if (state.now) draw(); });
document.addEventListener('visibilitychange', () => (document.hidden ? close() : listen()));
speak();
listen();
