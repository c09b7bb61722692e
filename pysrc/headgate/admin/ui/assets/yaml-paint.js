// Colours one line of YAML. It reads no more than the line: a text in a block looks like any other.

import { h } from "./dom.js";

const TOKEN = /(\s+)|("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')|([-?:](?=\s|$)|[{}[\],&*!|>])|([^\s{}[\],"'][^{}[\],#]*?(?=:(?:\s|$)|\s+#|\s*[{}[\],]|\s*$))|(.)/gy;
const NUMBER = /^[-+]?(?:\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?|0x[\da-fA-F]+|\.inf|\.nan)$/;
const WORD = /^(?:true|false|null|yes|no|on|off|~)$/i;

function kindOf(text, isKey) {
  if (isKey) return "y-key";
  if (text === "<redacted>") return "y-mark";
  if (NUMBER.test(text) || WORD.test(text)) return "y-word";
  return "y-text";
}

/** Return the pieces of a line: texts, and spans with a class for what they are. */
export function painted(line) {
  const found = [];
  let at = 0;
  while (at < line.length) {
    if (line[at] === "#" && (at === 0 || /\s/.test(line[at - 1]))) {
      found.push(h("span", { class: "y-note" }, line.slice(at)));
      break;
    }
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(line);
    if (!match) {
      found.push(line.slice(at));
      break;
    }
    const [all, space, quoted, sign, plain] = match;
    at += all.length;
    if (space !== undefined) found.push(all);
    else if (quoted !== undefined || plain !== undefined) found.push(h("span", { class: kindOf(all, /^\s*:(?:\s|$)/.test(line.slice(at))) }, all));
    else found.push(sign !== undefined ? h("span", { class: "y-sign" }, all) : all);
  }
  return found;
}
