// Charts: stacked bars, one a second.
import { svg } from './dom.js';
import { number, say } from './words.js';

// The parts of a bar from the bottom up. What was decided without Redis is hollow.
export const parts = [
  ['granted', 'granted', 'solid'], ['degraded granted', 'granted', 'hollow'],
  ['denied', 'denied', 'solid'], ['degraded denied', 'denied', 'hollow'],
  ['banned', 'banned', 'solid'], ['failed', 'failed', 'solid'],
];

const width = 10;

// scale is the round number that is at least n.
export function scale(n) {
  const power = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
  return [1, 2, 4, 5, 6, 8, 10].map((m) => m * power).find((m) => m >= n);
}

// bars draws seconds, each an object of counts, the oldest first, into an SVG that it makes if there is none.
export function bars(seconds, top, label, old) {
  const height = 100;
  const chart = old ?? svg('svg', { class: 'chart', role: 'img', preserveAspectRatio: 'none' },
    svg('path', { class: 'axis' }), ...parts.map(([, colour, style]) => svg('path', { class: `${colour} ${style}` })));
  chart.setAttribute('viewBox', `0 0 ${seconds.length * width} ${height}`);
  chart.setAttribute('aria-label', label);
  const paths = parts.map(() => '');
  seconds.forEach((counts, i) => {
    let y = height;
    parts.forEach(([name], p) => {
      const n = counts[name] ?? 0;
      if (n === 0) return;
      const h = Math.max((n / top) * height, 2);
      y -= h;
      paths[p] += `M${i * width + 1} ${y.toFixed(1)}h${width - 2}v${h.toFixed(1)}h${2 - width}z`;
    });
  });
  chart.children[0].setAttribute('d', `M0 ${height}H${seconds.length * width}`);
  paths.forEach((d, p) => chart.children[p + 1].setAttribute('d', d));
  return chart;
}

// swatch is a part in the legend.
export function swatch(colour, style) {
  return svg('svg', { class: 'chart', viewBox: '0 0 10 10', 'aria-hidden': 'true' }, svg('path', { class: `${colour} ${style}`, d: 'M1 1h8v8h-8z' }));
}

// describe says in words what a chart shows.
export function describe(name, sum) {
  const what = ['granted', 'denied', 'banned', 'failed']
    .map((part) => [part, (sum[part] ?? 0) + (sum[`degraded ${part}`] ?? 0)])
    .filter(([, n]) => n > 0)
    .map(([part, n]) => `${number(n)} ${say(part)}`)
    .reduce((one, other) => (one ? say('listed', { one, other }) : other), '');
  return say('summary', { name, what: what || say('none') });
}
