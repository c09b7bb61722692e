// Stacked columns over time, drawn for their current width.

import { h, s } from "./dom.js";
import { legend, plot } from "./plot.js";

const HEIGHT = 150;

/** Columns of buckets {start, end}. update takes {name, kind, value(bucket)} for each part of a column, the lowest first. */
export function bars(title, format) {
  let shown = { buckets: [], parts: [] };
  const key = h("div");
  const frame = plot(title, HEIGHT, format, (at) => {
    const bucket = shown.buckets[at];
    const parts = shown.parts.map((part) => ({ kind: part.kind, value: part.value(bucket), name: part.name })).filter((one) => one.value);
    const all = parts.reduce((sum, one) => sum + one.value, 0);
    return [...parts.map((one) => ({ kind: one.kind, text: `${one.name} ${format(one.value)}` })),
      ...(parts.length === 1 ? [] : [{ kind: "none", text: `Together ${format(all)}` }])].reverse();
  });
  function update(buckets, parts) {
    shown = { buckets, parts };
    const total = (bucket) => parts.reduce((sum, part) => sum + part.value(bucket), 0);
    const [from, to] = [Date.parse(buckets[0]?.start ?? 0), Date.parse(buckets[buckets.length - 1]?.end ?? 1)];
    const middle = (bucket) => (Date.parse(bucket.start) + Date.parse(bucket.end)) / 2;
    const sum = buckets.reduce((all, one) => all + total(one), 0);
    frame.update(from, to, Math.max(0, ...buckets.map(total)), buckets.map(middle), (drawn, x, y) => {
      for (const bucket of buckets) {
        const [left, right] = [x(Date.parse(bucket.start)), x(Date.parse(bucket.end))];
        const width = Math.max(1, (right - left) * 0.8);
        let below = 0;
        for (const part of parts) {
          const value = part.value(bucket);
          if (value) drawn.push(s("rect", { class: `column s-${part.kind}`, x: left + (right - left - width) / 2, width, y: y(below + value), height: Math.max(0, y(below) - y(below + value)) }));
          below += value;
        }
      }
    }, `${format(sum)} in all`);
    key.replaceChildren(...(parts.length > 1 ? [legend(parts)] : []));
  }
  return { element: h("figure", { class: "figure" }, frame.box, key), update };
}
