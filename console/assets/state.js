// What the page knows: the last minute of each line, and the gauges.

export class State {
  now = 0;

  shown = 60;

  gauges = [];

  process = {}; // {host, program, pid, version, up, at}: it was up for so many seconds at that one

  lines = new Map(); // by key: {primitive, name, policy, other, seconds}

  // take takes a frame in. Seconds that it is about replace those that were known.
  take(frame) {
    if (frame.now < this.now) this.lines.clear(); // another process, or the same made anew
    this.now = frame.now;
    this.shown = frame.shown;
    this.gauges = frame.gauges;
    if (frame.process) this.process = { ...frame.process, at: frame.now };
    for (const line of this.lines.values()) {
      for (const at of line.seconds.keys()) if (at >= frame.from) line.seconds.delete(at);
    }
    for (const told of frame.lines) {
      const line = this.line(told.primitive, told.name, told.policy, told.other);
      for (const [at, counts] of Object.entries(told.seconds)) line.seconds.set(Number(at), counts);
    }
    for (const [key, line] of this.lines) {
      for (const at of line.seconds.keys()) if (at <= this.now - this.shown) line.seconds.delete(at);
      if (line.seconds.size === 0) this.lines.delete(key);
    }
  }

  line(primitive, name, policy = '', other = false) {
    const key = JSON.stringify([primitive, name, policy, other]);
    if (!this.lines.has(key)) this.lines.set(key, { key, primitive, name, policy, other, seconds: new Map() });
    return this.lines.get(key);
  }

  // of is the lines of some primitives: first those with a gauge, also silent ones, then the others.
  of(...primitives) {
    const all = new Map();
    for (const g of this.gauges.filter((g) => primitives.includes(g.primitive))) {
      for (const policy of g.policies?.length ? g.policies : ['']) {
        const key = JSON.stringify([g.primitive, g.name, policy, g.other === true]);
        all.set(key, { key, primitive: g.primitive, name: g.name, policy, other: g.other === true, seconds: new Map() });
      }
    }
    for (const [key, line] of this.lines) if (primitives.includes(line.primitive)) all.set(key, line);
    const order = (l) => [l.other ? 1 : 0, primitives.indexOf(l.primitive), l.name, l.policy];
    return [...all.values()].sort((a, b) => {
      const [x, y] = [order(a), order(b)];
      const i = x.findIndex((v, n) => v !== y[n]);
      return i < 0 ? 0 : x[i] < y[i] ? -1 : 1;
    });
  }

  // gauge is that of a line. Without a line it is the sum of all gauges of a primitive.
  gauge(primitive, line) {
    const sum = { active: 0, waiting: 0, background: 0, open: false };
    for (const g of this.gauges) {
      if (g.primitive !== primitive || (line && (g.name !== line.name || (g.other === true) !== line.other))) continue;
      sum.active += g.active;
      sum.waiting += g.waiting;
      sum.background += g.background;
      sum.open ||= g.open === true;
    }
    return sum;
  }

  servers() { return this.gauges.filter((g) => g.primitive === 'server'); }

  // seconds is the counts of each second that is shown, the oldest first, of some lines together.
  seconds(lines) {
    return Array.from({ length: this.shown }, (_, i) => {
      const sum = {};
      for (const line of lines) add(sum, line.seconds.get(this.now - this.shown + 1 + i));
      return sum;
    });
  }

  // sum is what all seconds of some lines come to.
  sum(lines) {
    const all = {};
    for (const line of lines) for (const counts of line.seconds.values()) add(all, counts);
    return all;
  }
}

function add(sum, counts = {}) {
  for (const [name, n] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + n;
}

// total is how many decisions counts are about. What a shadow would have done is none.
export function total(counts) {
  return ['granted', 'denied', 'banned', 'failed', 'degraded granted', 'degraded denied'].reduce((sum, name) => sum + (counts[name] ?? 0), 0);
}
