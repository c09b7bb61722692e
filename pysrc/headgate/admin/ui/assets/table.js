// A table that is updated in place: rows keep their elements, so that focus and selection survive an update.

import { h, setText } from "./dom.js";

/**
 * columns: {title, value(row), text(row)?, draw(row, cell)?, hint(row)?, number?, sort?, wide?}. `value` sorts and, without
 * `text` or `draw`, shows; `hint` is the whole name where a shorter one is shown. What
 * is `wide`, or else the first column, takes the width that the others leave. options: key(row), empty, choose(row): makes a button of the first column.
 */
export function table(caption, columns, options) {
  const body = h("tbody");
  const empty = h("p", { class: "empty" }, options.empty ?? "Nothing yet.");
  const known = new Map();
  let rows = [];
  let order = { column: columns.findIndex((one) => one.sort), down: true };
  let chosen = null;
  const wide = Math.max(0, columns.findIndex((one) => one.wide));

  const heads = columns.map((column, at) => h(
    "th", { scope: "col", class: column.number ? "number" : null },
    h("button", { type: "button", on: { click: () => sortBy(at) } }, column.title),
  ));
  const element = h("div", { class: "scroll" },
    h("table", { class: "cards" }, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), body));

  function sortBy(at) {
    order = { column: at, down: order.column === at ? !order.down : Boolean(columns[at].number) };
    render();
  }

  function sorted() {
    if (order.column < 0) return rows;
    const { value } = columns[order.column];
    const sign = order.down ? -1 : 1;
    return [...rows].sort((a, b) => {
      const [left, right] = [value(a), value(b)];
      const found = typeof left === "number" && typeof right === "number" ? left - right : String(left).localeCompare(String(right));
      return sign * found || String(options.key(a)).localeCompare(String(options.key(b)));
    });
  }

  function build(row) {
    const entry = { row, cells: [] };
    entry.element = h("tr", {}, columns.map((column, at) => {
      let inner = null;
      if (at === 0 && options.choose) {
        inner = h("button", { type: "button", class: "link", on: { click: () => choose(entry.row) } });
      }
      const cell = h(at === 0 ? "th" : "td", { "data-title": column.title, scope: at === 0 ? "row" : null, class: column.number ? "number" : at === wide ? "name" : null }, inner);
      entry.cells.push(inner ?? cell);
      return cell;
    }));
    return entry;
  }

  function choose(row) {
    chosen = options.key(row);
    options.choose(row);
    render();
  }

  function render() {
    heads.forEach((one, at) => {
      if (at === order.column) one.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else one.removeAttribute("aria-sort");
    });
    const wanted = new Set();
    sorted().forEach((row, at) => {
      const key = options.key(row);
      wanted.add(key);
      const entry = known.get(key) ?? build(row);
      known.set(key, entry);
      entry.row = row;
      columns.forEach((column, index) => {
        if (column.draw) column.draw(row, entry.cells[index]);
        else setText(entry.cells[index], String((column.text ?? column.value)(row)));
        if (column.hint) entry.cells[index].title = column.hint(row);
        else if (index === 0) entry.cells[0].title = entry.cells[0].textContent;
      });
      entry.element.classList.toggle("chosen", key === chosen);
      if (options.choose) entry.cells[0].setAttribute("aria-pressed", String(key === chosen));
      // Moving an element loses its focus, so only misplaced elements are moved.
      if (body.children[at] !== entry.element) body.insertBefore(entry.element, body.children[at] ?? null);
    });
    for (const [key, entry] of known) {
      if (!wanted.has(key)) {
        entry.element.remove();
        known.delete(key);
      }
    }
    empty.hidden = rows.length > 0;
    element.hidden = rows.length === 0;
  }

  return {
    element: h("div", {}, element, empty),
    update(next) {
      rows = next;
      render();
    },
  };
}
