// A field for YAML: line numbers, colours and completion over a plain textarea, which keeps selection, undo and screen readers.

import { freshId, h } from "./dom.js";
import { options, placeAt } from "./schema-paths.js";
import { painted } from "./yaml-paint.js";

const LINE = 20;
const PAD = 8;
const MOST_SHOWN = 10;
const ROWS_BEYOND = 2;

/** An editor. `typed` is called after each change by hand; `schema()` returns the JSON schema, null while there is none. */
export function codeEditor(label, typed, schema) {
  const listId = freshId("completions");
  const numbers = h("div", { class: "gutter", "aria-hidden": "true" });
  const paint = h("pre", { class: "paint", "aria-hidden": "true" });
  const text = h("textarea", { class: "code editor", "aria-label": label, "aria-autocomplete": "list", "aria-controls": listId, spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", rows: 24,
    on: { input, scroll: draw, keydown: pressed, blur: () => close(), click: () => close() } });
  const list = h("ul", { id: listId, class: "completions", role: "listbox", "aria-label": "Completions", hidden: true });
  const about = h("p", { class: "small muted", "aria-live": "polite" });
  const element = h("div", { class: "stack" }, h("div", { class: "code-box" }, numbers, paint, text, list), about);
  let lines = [""];
  let bad = new Set();
  let offered = [];
  let at = 0;
  let width = 8;

  function measure() {
    const probe = h("span", {}, "m".repeat(50));
    paint.append(probe);
    width = probe.getBoundingClientRect().width / 50 || 8;
    probe.remove();
  }

  /** Draw the lines that are to be seen. */
  function draw() {
    const first = Math.max(0, Math.floor(text.scrollTop / LINE) - ROWS_BEYOND);
    const rows = Math.ceil((text.clientHeight || 480) / LINE) + 2 * ROWS_BEYOND;
    const shown = lines.slice(first, first + rows);
    const shift = PAD + first * LINE - text.scrollTop;
    paint.replaceChildren(h("code", {}, ...shown.flatMap((line) => [...painted(line), "\n"])));
    paint.firstChild.style.transform = `translate(${PAD - text.scrollLeft}px, ${shift}px)`;
    numbers.replaceChildren(h("div", {}, shown.map((_, index) => h("span", { class: bad.has(first + index + 1) ? "bad" : null }, String(first + index + 1)))));
    numbers.firstChild.style.transform = `translateY(${shift}px)`;
  }

  function input() {
    lines = text.value.split("\n");
    draw();
    typed();
    if (document.activeElement === text) complete(false);
  }

  function caret() {
    const before = text.value.slice(0, text.selectionStart);
    const row = before.split("\n").length - 1;
    return { row, column: before.length - before.lastIndexOf("\n") - 1 };
  }

  function close() {
    offered = [];
    list.hidden = true;
    text.removeAttribute("aria-activedescendant");
  }

  /** Offer what may stand here. `asked`: by the user, even where nothing has been typed yet. */
  function complete(asked) {
    const root = schema();
    const { row, column } = caret();
    const place = root && !text.readOnly && text.selectionStart === text.selectionEnd ? placeAt(lines, row, column) : null;
    if (!place || (!asked && !place.typed)) {
      close();
      return;
    }
    const wanted = place.typed.toLowerCase();
    const all = options(root, place);
    offered = [...all.filter((one) => one.text.toLowerCase().startsWith(wanted)), ...all.filter((one) => !one.text.toLowerCase().startsWith(wanted) && one.text.toLowerCase().includes(wanted))]
      .slice(0, MOST_SHOWN).map((one) => ({ ...one, place }));
    if (!offered.length || (offered.length === 1 && offered[0].text === place.typed && !asked)) {
      close();
      return;
    }
    at = 0;
    list.style.left = `${Math.min(text.offsetLeft + PAD + (column - place.typed.length) * width - text.scrollLeft, Math.max(0, element.clientWidth - 320))}px`;
    list.style.top = `${PAD + (row + 1) * LINE - text.scrollTop + 2}px`;
    list.hidden = false;
    show();
  }

  function show() {
    list.replaceChildren(...offered.map((one, index) => h("li", { id: `${listId}-${index}`, role: "option", "aria-selected": String(index === at), on: { pointerdown: (event) => {
      event.preventDefault();
      at = index;
      accept();
    } } }, h("strong", {}, one.text), one.about ? h("span", {}, one.about) : null)));
    text.setAttribute("aria-activedescendant", `${listId}-${at}`);
    about.textContent = offered[at]?.about ?? "";
  }

  function insert(words) {
    // The one way that undo knows; without it the text is replaced.
    if (!document.execCommand("insertText", false, words)) {
      text.setRangeText(words, text.selectionStart, text.selectionEnd, "end");
      input();
    }
  }

  function accept() {
    const { text: words, name, place } = offered[at];
    close();
    text.focus();
    text.setSelectionRange(text.selectionStart - place.typed.length, text.selectionEnd);
    insert(name && text.value[text.selectionEnd] !== ":" ? `${words}: ` : words);
    close();
  }

  function pressed(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      complete(true);
      return;
    }
    if (offered.length) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        at = (at + step + offered.length) % offered.length;
        show();
      } else if (event.key === "Escape") close();
      else if (["Enter", "Tab"].includes(event.key) && !event.shiftKey) accept();
      else return;
      event.preventDefault();
      return;
    }
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      const { row, column } = caret();
      const line = lines[row].slice(0, column);
      const [indent] = /^\s*/.exec(line);
      event.preventDefault();
      insert(`\n${indent}${/:\s*$/.test(line) ? "  " : ""}${/^\s*- /.test(line) ? "  " : ""}`);
    }
  }

  new ResizeObserver(() => {
    measure();
    draw();
  }).observe(text);

  return {
    element,
    text,
    /** Take another text, which nobody has typed. */
    set(words) {
      text.value = words;
      lines = words.split("\n");
      close();
      draw();
    },
    /** Mark the numbers of lines. */
    mark(wrong) {
      bad = new Set(wrong);
      draw();
    },
    /** Select a line and show it. */
    show(line) {
      const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
      text.focus();
      text.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
      text.scrollTop = LINE * Math.max(0, line - 6);
      draw();
    },
  };
}
