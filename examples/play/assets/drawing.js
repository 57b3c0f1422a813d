// What the controls draw: a bucket, what is left over time, and cells.
import { make, set, svg } from '../dom.js';

const height = 110;

// vessel shows how much is left, as a level.
export function vessel() {
  const level = svg('rect', { class: 'level', x: 10, width: 60 });
  const text = svg('text', { x: 40, y: 118 });
  const e = svg('svg', { class: 'vessel', viewBox: '0 0 80 122', role: 'img' }, level, svg('path', { class: 'wall', d: 'M10 8V98H70V8' }), text);
  e.draw = (left, limit, label) => {
    const h = 86 * Math.min(Math.max(left / limit, 0), 1);
    level.setAttribute('y', 97 - h);
    level.setAttribute('height', h);
    set(text, label);
    e.setAttribute('aria-label', label);
  };
  return e;
}

// bucket is a vessel of tokens, and the one that is dripping in.
export function bucket() {
  const e = vessel();
  const tokens = svg('g');
  const drop = svg('circle', { class: 'token', cx: 40, r: 4 });
  e.insertBefore(tokens, e.lastChild);
  e.insertBefore(drop, e.lastChild);
  const plain = e.draw;
  e.draw = (left, limit, label) => {
    plain(left, limit, label);
    const whole = Math.floor(left + 1e-6);
    const columns = Math.min(limit, 5);
    const step = Math.min(86 / Math.ceil(limit / columns), 60 / columns);
    tokens.replaceChildren(...Array.from({ length: Math.max(whole, 0) }, (_, i) => svg('circle', {
      class: 'token', r: Math.max(step / 2 - 1.2, 1), cx: 10 + (60 / columns) * ((i % columns) + 0.5), cy: 97 - step * (Math.floor(i / columns) + 0.5),
    })));
    const part = left - whole;
    const floor = 97 - step * (Math.floor(Math.max(whole, 0) / columns) + 0.5);
    drop.setAttribute('cy', whole >= limit ? -9 : 2 + (floor - 2) * part);
  };
  return e;
}

// history shows the last seconds: what was admitted and denied, and below that what was left.
export function history() {
  const e = svg('svg', { class: 'history', viewBox: `0 0 400 ${height}`, preserveAspectRatio: 'none', role: 'img' },
    ...['away', 'area', 'edge', 'yes', 'no', 'fail', 'axis'].map((name) => svg('path', { class: name })));
  const [away, area, edge, yes, no, fail, axis] = e.children;
  e.draw = ({ from, now, i, requests, levels, limit, label }) => {
    const x = (at) => (((at - from) / (now - from)) * 400).toFixed(1);
    const lanes = limit ? [12, 26, height] : [24, 50, height];
    const marks = { granted: '', denied: '', failed: '' };
    for (const r of requests) {
      const [y, h] = r.got[i] === 'granted' ? [lanes[0] - 10, 12] : [lanes[1] - 10, 12];
      marks[r.got[i]] += `M${x(r.at)} ${limit ? y : r.got[i] === 'granted' ? 5 : 60}h3v${limit ? h : 45}h-3z`;
    }
    yes.setAttribute('d', marks.granted);
    no.setAttribute('d', marks.denied);
    fail.setAttribute('d', marks.failed);
    axis.setAttribute('d', limit ? `M0 ${height - 1}H400` : 'M0 55H400');
    let gone = '';
    levels.forEach((l, n) => { if (!l.up) gone += `M${x(l.at)} 0H${x(levels[n + 1]?.at ?? now)}V${height}H${x(l.at)}z`; });
    away.setAttribute('d', gone);
    if (limit) {
      const y = (l) => (height - 1 - (Math.max(l, 0) / limit) * 76).toFixed(1);
      area.setAttribute('d', levels.length ? `M${x(levels[0].at)} ${height}${levels.map((l) => `L${x(l.at)} ${y(l.all[i])}`).join('')}V${height}z` : '');
      edge.setAttribute('d', `M0 ${y(limit)}H400`);
    }
    e.setAttribute('aria-label', label);
  };
  return e;
}

// times is the axis below a history.
export function times() {
  return make('div', { className: 'time', aria: { hidden: 'true' } }, ...['p.ago20', 'p.ago10', 'nowAxis'].map((say) => make('span', { data: { say } })));
}

// cells shows many small things, each [state, text, what it means].
export function cells(list, all, terse = false) {
  while (list.children.length < all.length) list.append(make('li'));
  all.forEach(([state, text, means], i) => {
    const e = list.children[i];
    if (e.dataset.state === state && e.dataset.text === text && e.title === means) return;
    Object.assign(e.dataset, { state, text });
    e.title = means;
    if (terse) {
      set(e, text);
      e.setAttribute('aria-label', means);
    } else e.replaceChildren(means, make('br'), text);
  });
}
