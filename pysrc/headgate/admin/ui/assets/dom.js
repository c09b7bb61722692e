// Creates elements. Values always become text nodes: no code of this page makes markup from a value.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [kind, handler] of Object.entries(value)) element.addEventListener(kind, handler);
    } else if (name === "value" || name === "checked" || name === "disabled") {
      element[name] = value;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** Return an HTML element. Attributes must come from the code, never from data. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Return an SVG element. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Set a text only if it differs, so that selections and screen readers are not disturbed. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Return a labelled field around an input, select or textarea. */
export function field(title, input, hint) {
  return h("label", { class: "field" }, h("span", {}, title), input, hint ? h("small", {}, hint) : null);
}

/** Return a card with a heading and, beside it, the element `more`. */
export function card(title, more, ...children) {
  const heading = h("h2", {}, title);
  return h("section", { class: "card" }, h("div", { class: "card-head" }, heading, more), ...children);
}

/** Return the header of a view. */
export function head(title, text) {
  return h("div", { class: "head" }, h("h1", {}, title), h("p", {}, text ?? ""));
}

/** Return a description list; a value may be an element. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.map(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
}

/** Return a tile and a function that updates it. */
export function tile(title) {
  const value = h("dd", {}, "–");
  const more = h("dd", {}, "\u00a0");
  const element = h("dl", { class: "tile" }, h("dt", {}, title), value, more);
  return {
    element,
    set(text, detail, bad = false) {
      setText(value, text);
      setText(more, detail || "\u00a0");
      element.classList.toggle("bad", bad);
    },
  };
}

let numbered = 0;

/** Return an id that no other element has. */
export function freshId(word) {
  numbered += 1;
  return `${word}-${numbered}`;
}
