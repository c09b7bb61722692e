// Bar charts over time, drawn for their current width.

import { nice } from "./charts.js";
import { h, s } from "./dom.js";

const HEIGHT = 150;
const LEFT = 54;
const BOTTOM = 22;
const TOP = 8;

function clock(time, days) {
  const options = days ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat("en-GB", options).format(new Date(time));
}

/** A bar chart of {start, end} with a value; a part of each value may be marked as failed. */
export function bars(title, format) {
  const drawing = s("svg", { role: "img", height: HEIGHT, "aria-label": title });
  const box = h("div", { class: "chart" }, drawing);
  function update(buckets, value, bad = () => 0) {
    const width = Math.max(240, box.clientWidth || 600);
    const most = nice(Math.max(0, ...buckets.map(value)));
    const y = (one) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - one / most);
    const slot = (width - LEFT) / Math.max(1, buckets.length);
    const days = buckets.length > 1 && Date.parse(buckets[buckets.length - 1].end) - Date.parse(buckets[0].start) > 2 * 86_400_000;
    const every = Math.max(1, Math.ceil(72 / slot));
    const parts = [0, 0.5, 1].flatMap((share) => [
      s("line", { class: "grid-line", x1: LEFT, x2: width, y1: y(most * share), y2: y(most * share) }),
      s("text", { x: LEFT - 8, y: y(most * share) + 4, "text-anchor": "end" }, format(most * share)),
    ]);
    buckets.forEach((bucket, at) => {
      const [x, wide] = [LEFT + at * slot + slot * 0.1, Math.max(1, slot * 0.8)];
      const column = (kind, from, to) => s("rect", { class: kind, x, width: wide, y: y(to), height: Math.max(0, y(from) - y(to)), rx: Math.min(2, wide / 3) });
      if (value(bucket)) {
        parts.push(s("g", {}, s("title", {}, `${clock(bucket.start, false)} to ${clock(bucket.end, false)}: ${format(value(bucket))}`),
          column("column", 0, value(bucket)), bad(bucket) ? column("column wrong", 0, bad(bucket)) : null));
      }
      if (at % every === 0 && at * slot < width - LEFT - 36) parts.push(s("text", { x: LEFT + at * slot, y: HEIGHT - 4 }, clock(bucket.start, days)));
    });
    drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawing.replaceChildren(...parts);
    drawing.setAttribute("aria-label", `${title}: ${format(buckets.reduce((sum, one) => sum + value(one), 0))} in all`);
  }
  return { element: h("figure", { class: "figure" }, box), update };
}
