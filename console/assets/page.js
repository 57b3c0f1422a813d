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
    draw();
  };
  // The browser connects again by itself, unless it was answered with an error.
  source.onerror = () => {
    if (source.readyState !== EventSource.CLOSED) {
      setTimeout(() => { if (source && source.readyState === EventSource.CONNECTING) judge(['bad', 'disconnected']); }, 3000);
      return;
    }
    close();
    judge(['bad', 'disconnected']);
    setTimeout(listen, 3000);
  };
}

function close() {
  source?.close();
  source = null;
}

function draw() {
  judge(verdict(state));
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
  if (state.now) draw();
  else judge(level);
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
