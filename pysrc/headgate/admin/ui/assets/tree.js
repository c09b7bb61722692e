// A searchable tree view of JSON that renders branches when they are opened.

import { h } from "./dom.js";

const MAX_FOUND = 200;

function kindOf(value) {
  if (value === null) return "null";
  if (typeof value === "string") return "text";
  return typeof value === "boolean" ? "bool" : "number";
}

function entriesOf(value) {
  return Array.isArray(value) ? value.map((one, at) => [String(at), one]) : Object.entries(value);
}

/** Return the label of a list entry: its name or key, if it has one. */
function nickname(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return "";
  for (const one of [value, ...Object.values(value)]) {
    const name = one && typeof one === "object" ? one.key ?? one.name : null;
    if (typeof name === "string") return name;
  }
  return "";
}

function node(key, value, listed) {
  if (value === null || typeof value !== "object") {
    return h("li", { class: "leaf" }, h("span", { class: "key" }, key), ": ", h("span", { class: kindOf(value) }, JSON.stringify(value)));
  }
  const entries = entriesOf(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  if (!entries.length) return h("li", { class: "leaf" }, h("span", { class: "key" }, key), ": ", h("span", { class: "count" }, size));
  const list = h("ul");
  const title = h("summary", {}, h("span", { class: "key" }, key), " ", h("span", { class: "count" }, listed ? nickname(value) || size : size));
  const details = h("details", {}, title, list);
  const open = () => {
    if (details.open && !list.childElementCount) list.append(...entries.map(([name, one]) => node(name, one, Array.isArray(value))));
  };
  details.addEventListener("toggle", open);
  details.reveal = () => {
    details.open = true;
    open();
  };
  return h("li", {}, details);
}

/** A tree view of a JSON object. */
export function tree(document_) {
  const list = h("ul", { class: "tree" }, entriesOf(document_).map(([key, value]) => node(key, value, Array.isArray(document_))));
  return {
    element: list,
    /** Open the tree down to a path of keys, mark the last node and scroll to it. */
    reveal(path) {
      for (const old of list.querySelectorAll(".target")) old.classList.remove("target");
      let here = list;
      let item = null;
      for (const key of path) {
        item = [...here.children].find((one) => one.querySelector(".key").textContent === key);
        if (!item) return;
        const details = item.querySelector(":scope > details");
        details?.reveal();
        here = details ? details.querySelector(":scope > ul") : here;
      }
      const end = item.querySelector(":scope > details") ?? item;
      end.classList.add("target");
      const focus = end.querySelector("summary") ?? end;
      if (focus === end) end.tabIndex = -1;
      focus.focus();
      focus.scrollIntoView({ block: "center" });
    },
  };
}

/** Return the paths and values that contain a text, ignoring case. */
export function find(document_, wanted) {
  const text = wanted.toLowerCase();
  const found = [];
  const visit = (path, value) => {
    if (found.length >= MAX_FOUND) return;
    const key = path[path.length - 1] ?? "";
    const leaf = value === null || typeof value !== "object";
    if (key.toLowerCase().includes(text) || (leaf && String(value).toLowerCase().includes(text))) found.push({ path, value: leaf ? JSON.stringify(value) : "" });
    if (!leaf) for (const [name, one] of entriesOf(value)) visit([...path, name], one);
  };
  for (const [name, one] of entriesOf(document_)) visit([name], one);
  return found;
}

/** Return a text in which every occurrence of another one is marked. */
export function marked(text, wanted) {
  const parts = [];
  const low = text.toLowerCase();
  let at = 0;
  for (let next = low.indexOf(wanted.toLowerCase()); wanted && next >= 0; next = low.indexOf(wanted.toLowerCase(), at)) {
    parts.push(text.slice(at, next), h("mark", {}, text.slice(next, next + wanted.length)));
    at = next + wanted.length;
  }
  return [...parts, text.slice(at)];
}
