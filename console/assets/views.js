// How the page shows what it knows.
import { bars, describe, scale, swatch } from './chart.js';
import { make, set, table } from './dom.js';
import { total } from './state.js';
import { duration, number, say } from './words.js';

const $ = (id) => document.getElementById(id);

// show draws all of it.
export function show(state) {
  const limits = state.of('limit', 'inflight');
  set($('process'), about(state));
  tiles(state, limits);
  timeline(state, limits);
  limitTable(state, limits);
  serverTable(state);
  leases(state);
}

export function legend() {
  $('legend').replaceChildren(...['granted', 'denied', 'banned', 'failed'].map((part) => make('li', {}, swatch(part, 'solid'), say(part))),
    make('li', {}, swatch('granted', 'hollow'), say('without')));
}

// verdict says in one sentence how it is, and how bad.
export function verdict(state) {
  const names = (all) => all.map((g) => g.name).join(', ');
  const servers = state.servers();
  const open = servers.filter((g) => g.open);
  const failing = servers.filter((g) => g.failing);
  const lines = [...state.lines.values()];
  const minute = state.sum(lines);
  const recent = state.sum(lines.map((l) => ({ seconds: new Map([...l.seconds].filter(([at]) => at > state.now - 3)) })));
  const without = (counts) => (counts['degraded granted'] ?? 0) + (counts['degraded denied'] ?? 0);
  if (open.length) return ['bad', 'away', { names: names(open) }];
  if (recent.failed) return ['bad', 'refusing'];
  if (state.gauges.some((g) => g.open)) return ['bad', 'held'];
  if (without(recent)) return ['bad', 'degraded'];
  if (minute.disagreed) return ['bad', 'disagreed'];
  if (failing.length) return ['warn', 'failing', { names: names(failing) }];
  if (minute.overtaken) return ['warn', 'overtaken'];
  if (minute['in doubt']) return ['warn', 'doubt'];
  if (minute.lost) return ['warn', 'lost'];
  if (minute.failed) return ['warn', 'failed before', { n: number(minute.failed) }];
  if (without(minute)) return ['warn', 'degraded before', { n: number(without(minute)) }];
  return ['good', 'well'];
}

// about says which process it is, and how long it runs.
function about(state) {
  const { host, program, pid, version, up, at } = state.process;
  const name = say('about', { what: program, of: pid });
  return [host, name, version, say('up', { n: duration(1e3 * (up + state.now - at)) })].filter(Boolean).join(' · ');
}

function tiles(state, limits) {
  const sum = state.sum(limits);
  const last = state.seconds(limits)[state.shown - 2]; // the last whole second
  const without = (sum['degraded granted'] ?? 0) + (sum['degraded denied'] ?? 0);
  const denied = (sum.denied ?? 0) + (sum.banned ?? 0) + (sum['degraded denied'] ?? 0);
  const servers = state.servers();
  const well = servers.filter((g) => !g.open && !g.failing).length;
  const doubt = state.sum(state.of('guard'))['in doubt'] ?? 0;
  const has = (p) => state.gauges.some((g) => g.primitive === p);
  const all = [
    ['t.rate', number(total(last))],
    ['t.denied', total(sum) ? new Intl.NumberFormat(document.documentElement.lang, { style: 'percent', maximumFractionDigits: 1 }).format(denied / total(sum)) : '–'],
    ['t.without', number(without), without ? 'warn' : ''],
    ['t.servers', `${well}/${servers.length}`, well < servers.length ? 'bad' : ''],
    has('lock') && ['t.locks', number(state.gauge('lock').active)],
    has('guard') && ['t.guards', number(state.gauge('guard').active)],
    has('guard') && ['t.doubt', number(doubt), doubt ? 'warn' : ''],
    has('stock') && ['t.stock', number(state.gauge('stock').active)],
  ].filter(Boolean);
  const box = $('tiles');
  if (box.children.length !== all.length) box.replaceChildren(...all.map(() => make('div', {}, make('dt'), make('dd'))));
  all.forEach(([key, value, level = ''], i) => {
    const [dt, dd] = box.children[i].children;
    set(dt, say(key));
    set(dd, value);
    box.children[i].dataset.level = level;
  });
}

function timeline(state, limits) {
  const seconds = state.seconds(limits);
  const top = scale(Math.max(...seconds.map(total)));
  const box = $('timeline');
  if (!box.children.length) {
    box.append(make('div', { className: 'scale', aria: { hidden: 'true' } }, make('span'), make('span')), bars(seconds, top, ''),
      make('div', { className: 'time', aria: { hidden: 'true' } }, make('span'), make('span')));
  }
  const [labels, chart, time] = box.children;
  set(labels.children[0], say('perSecond', { n: number(top) }));
  set(labels.children[1], '0');
  set(time.children[0], say('ago'));
  set(time.children[1], say('nowAxis'));
  bars(seconds, top, describe(say('limits'), state.sum(limits)), chart);
  if (!$('seconds').open) return;
  const rows = seconds.map((counts, i) => ({ key: String(state.shown - 1 - i), counts })).filter((r) => total(r.counts) > 0).reverse();
  table($('seconds-table'), [{ head: say('h.ago'), of: (r) => r.key },
    ...counted.map(([head, of]) => ({ head: say(head), of: (r) => number(of(r.counts)) }))], rows);
}

const both = (name) => (c) => (c[name] ?? 0) + (c[`degraded ${name}`] ?? 0);
const counted = [
  ['h.granted', both('granted')], ['h.denied', both('denied')], ['h.banned', (c) => c.banned ?? 0], ['h.failed', (c) => c.failed ?? 0],
  ['h.without', (c) => (c['degraded granted'] ?? 0) + (c['degraded denied'] ?? 0)],
];

function limitTable(state, limits) {
  const section = $('limits');
  section.querySelector('.note').hidden = limits.length > 0;
  const element = section.querySelector('table');
  element.hidden = limits.length === 0;
  element.className = 'cards';
  const rows = limits.map((line) => {
    const seconds = state.seconds([line]);
    return { ...line, sum: state.sum([line]), bySecond: seconds, gauge: state.gauge(line.primitive, line) };
  });
  const title = (r) => (r.other ? say('about', { what: say('others'), of: say(r.primitive) }) : r.name);
  table(element, [
    { head: say('h.limiter'), of: (r) => (r.gauge.open ? tagged(title(r), say('heldTag'), 'bad') : title(r)) },
    { head: say('h.policy'), kind: 'words', of: (r) => {
      const policy = r.primitive === 'inflight' && !r.other ? say('inflight') : r.policy || (r.other ? '' : say('noPolicy'));
      return r.sum['shadow denied'] ? tagged(policy, say('shadow', { n: number(r.sum['shadow denied']) }), 'warn') : policy;
    } },
    { head: say('h.minute'), kind: 'cell', of: (r, old) => bars(r.bySecond, scale(Math.max(...r.bySecond.map(total))), describe(`${title(r)} ${r.policy}`, r.sum), old) },
    ...counted.map(([head, of]) => ({ head: say(head), of: (r) => number(of(r.sum)) })),
    { head: say('h.active'), of: (r) => (r.primitive === 'inflight' ? number(r.gauge.active) : '–') },
    { head: say('h.waiting'), of: (r) => number(r.gauge.waiting) },
  ], rows);
}

function tagged(text, tag, level) {
  return make('span', {}, text, make('span', { className: `tag ${level}` }, tag));
}

function serverTable(state) {
  const section = $('servers');
  const servers = state.servers();
  section.querySelector('.note').hidden = servers.length > 0;
  const element = section.querySelector('table');
  element.hidden = servers.length === 0;
  element.className = 'cards';
  const stateOf = (g) => (g.open ? ['bad', `✕ ${say('listed', { one: say('silent'), other: say('holds') })}`] : g.failing ? ['warn', `▲ ${say('silent')}`] : ['good', `✓ ${say('answers')}`]);
  table(element, [
    { head: say('h.server'), of: (g) => g.name },
    { head: say('h.state'), kind: 'words', of: (g, old) => {
      const [level, text] = stateOf(g);
      const e = old ?? make('span');
      e.className = level;
      set(e, text);
      return e;
    } },
    { head: say('h.since'), of: (g) => (g.failing ? duration(g.failing) : '–') },
  ], servers.map((g) => ({ ...g, key: g.name })));
}

// named is the name of a line, with a tag for each answer that should be rare.
function named(r) {
  const tags = [['mismatched', 'warn'], ['no result', 'warn'], ['disagreed', 'bad']].filter(([name]) => r.sum[name]);
  const name = r.other ? say('others') : r.name;
  return tags.length ? make('span', {}, name, ...tags.map(([of, level]) => make('span', { className: `tag ${level}` }, say(`tag.${of}`, { n: number(r.sum[of]) })))) : name;
}

// leases are the tables of what is held on a lease: locks, claims and reservations.
function leases(state) {
  const count = (...names) => (r) => number(names.reduce((sum, name) => sum + (r.sum[name] ?? 0), 0));
  for (const [id, primitive, columns] of [
    ['locks', 'lock', [['h.locker'], ['h.held', (r) => number(r.gauge.active)], ['h.waiting', (r) => number(r.gauge.waiting)],
      ['h.got', count('granted')], ['h.taken', count('held')], ['h.lost', count('lost')], ['h.failed', count('failed')]]],
    ['guards', 'guard', [['h.guard'], ['h.running', (r) => number(r.gauge.active)], ['h.begun', count('granted')], ['h.done', count('completed')], ['h.abandoned', count('abandoned')],
      ['h.replayed', count('replayed')], ['h.already', count('held')], ['h.doubt', count('in doubt')], ['h.overtaken', count('overtaken', 'lost')], ['h.failed', count('failed')]]],
    ['stocks', 'stock', [['h.stock'], ['h.held', (r) => number(r.gauge.active)], ['h.reserved', count('granted')], ['h.sold', count('completed')], ['h.cancelled', count('abandoned')],
      ['h.soldout', count('denied')], ['h.refused', count('refused')], ['h.lapsed', count('lost')], ['h.failed', count('failed')]]],
  ]) {
    const rows = state.of(primitive).map((line) => ({ ...line, sum: state.sum([line]), gauge: state.gauge(primitive, line) }));
    $(id).hidden = rows.length === 0;
    const element = $(id).querySelector('table');
    element.className = 'cards';
    table(element, [...columns, ['h.background', (r) => number(r.gauge.background)]].map(([head, of]) => ({
      head: say(head), of: of ?? named,
    })), rows);
  }
}
