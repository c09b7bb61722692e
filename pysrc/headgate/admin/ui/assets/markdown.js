// Markdown of models as elements: blocks and spans of CommonMark and tables, and nothing else. A text becomes text nodes only:
// markup in it stays text, pictures become their links, and links lead to http, https and mailto only. Models write what
// they like: each pattern takes time in proportion to its text.

import { h } from "./dom.js";

// Of lines without blanks at their end.
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+-]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(\S.*)?$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
// The first of these in a text is the next span: code, picture, link, bold, struck, italic, address.
const SPAN = /(?<!`)(`+)(?!`)([^`]|[^`][\s\S]*?[^`])\1(?!`)|!\[([^[\]]*)\]\(((?:[^()\s]|\([^()\s]*\))+)(?:\s+"[^"]*")?\)|\[([^[\]]+)\]\(((?:[^()\s]|\([^()\s]*\))+)(?:\s+"[^"]*")?\)|\*\*(?=\S)([\s\S]+?)\*\*|~~(?=\S)([\s\S]+?)~~|\*(?=\S)([^*\n]+?)\*|(?<![\w_])_(?=\S)([^_\n]+?)_(?![\w_])|(https?:\/\/[^\s<>"')\]]+)/;
const DEEPEST = 6;

function link(target, ...content) {
  const safe = /^(https?:|mailto:)/i.test(target);
  return safe ? h("a", { href: target, rel: "noopener noreferrer nofollow", target: "_blank" }, ...content) : h("span", {}, ...content, ` (${target})`);
}

function spans(text, depth = 0) {
  const found = [];
  let rest = text;
  while (rest) {
    const match = depth < DEEPEST ? SPAN.exec(rest) : null;
    if (!match) break;
    if (match.index) found.push(rest.slice(0, match.index));
    const [all, , code, alt, source, words, target, bold, struck, italic, under, address] = match;
    if (code !== undefined) found.push(h("code", {}, code));
    else if (source !== undefined) found.push(link(source, alt || "picture"));
    else if (target !== undefined) found.push(link(target, ...spans(words, depth + 1)));
    else if (bold !== undefined) found.push(h("strong", {}, ...spans(bold, depth + 1)));
    else if (struck !== undefined) found.push(h("del", {}, ...spans(struck, depth + 1)));
    else if (italic !== undefined || under !== undefined) found.push(h("em", {}, ...spans(italic ?? under, depth + 1)));
    else found.push(link(address, address));
    rest = rest.slice(match.index + all.length);
  }
  return rest ? [...found, rest] : found;
}

function cells(line) {
  return line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((one) => one.trim().replaceAll("\\|", "|"));
}

/** Return true if a line divides the head of a table from its rows. */
function divides(line) {
  return line !== undefined && line.includes("-") && cells(line).every((one) => /^:?-+:?$/.test(one));
}

function tableOf(lines) {
  const row = (line, tag) => h("tr", {}, cells(line).map((one) => h(tag, { scope: tag === "th" ? "col" : null }, ...spans(one))));
  return h("div", { class: "scroll" }, h("table", {}, h("caption", {}, "Table of the answer"), h("thead", {}, row(lines[0], "th")), h("tbody", {}, lines.slice(2).map((line) => row(line, "td")))));
}

function listOf(lines, depth) {
  const first = ITEM.exec(lines[0]);
  const indent = first[1].length;
  const items = [];
  for (const line of lines) {
    const match = ITEM.exec(line);
    if (match && match[1].length <= indent + 1) items.push([match[3]]);
    else items[items.length - 1].push(line.slice(Math.min(line.length - line.trimStart().length, indent + 2)));
  }
  const ordered = /\d/.test(first[2]);
  return h(ordered ? "ol" : "ul", ordered && parseInt(first[2], 10) !== 1 ? { start: parseInt(first[2], 10) } : {},
    items.map((one) => h("li", {}, ...(one.length === 1 ? spans(one[0]) : blocks(one, depth + 1)))));
}

function blocks(lines, depth) {
  const found = [];
  let at = 0;
  const taken = (holds) => {
    const begin = at;
    while (at < lines.length && holds(lines[at], at)) at += 1;
    return lines.slice(begin, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = fenceOf(line);
    const heading = HEADING.exec(line);
    if (!line.trim()) at += 1;
    else if (fence) {
      at += 1;
      const code = taken((one) => !(fenceOf(one)?.[1].startsWith(fence[1]) && !fenceOf(one)[2]));
      at += 1;
      found.push(h("pre", { class: "code-block", tabindex: 0, "aria-label": `Code${fence[2] ? ` in ${fence[2]}` : ""}` }, h("code", {}, code.join("\n"))));
    } else if (heading) {
      found.push(h("p", { class: "said-heading", role: "heading", "aria-level": Math.min(6, heading[1].length + 2) }, ...spans(titleOf(heading[2]))));
      at += 1;
    } else if (RULE.test(line)) {
      found.push(h("hr"));
      at += 1;
    } else if (depth < DEEPEST && QUOTE.test(line)) {
      found.push(h("blockquote", {}, ...blocks(taken((one) => QUOTE.test(one)).map((one) => QUOTE.exec(one)[1]), depth + 1)));
    } else if (depth < DEEPEST && ITEM.test(line)) {
      const kind = kindOf(line);
      found.push(listOf(taken((one, here) => (ITEM.test(one) && (kindOf(one) === kind || /^\s{2}/.test(one))) || (!ITEM.test(one) && (one.trim() ? /^\s/.test(one) || !starts(one) : ITEM.test(lines[here + 1] ?? "") || /^\s{2,}\S/.test(lines[here + 1] ?? "")))).filter((one) => one.trim()), depth));
    } else if (line.includes("|") && divides(lines[at + 1])) {
      found.push(tableOf(taken((one) => one.includes("|"))));
    } else {
      const begin = at;
      found.push(h("p", {}, ...spans(taken((one, here) => one.trim() && (here === begin || !starts(one))).join("\n"))));
    }
  }
  return found;
}

/** Return the match of a line that begins or ends code, null for others. */
function fenceOf(line) {
  return FENCE.exec(line.trimEnd());
}

/** Return the text of a heading without the marks that may end it. */
function titleOf(text = "") {
  return text.trimEnd().replace(/(?:^|\s)#+$/, "").trimEnd();
}

/** Return whether the list that a line begins is ordered. */
function kindOf(line) {
  return /\d/.test(ITEM.exec(line)?.[2] ?? "");
}

/** Return true if a line begins a block of its own. */
function starts(line) {
  return fenceOf(line) !== null || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

/** Return the elements of a text in markdown. */
export function markdown(text) {
  return blocks(text.replaceAll("\r\n", "\n").split("\n"), 0);
}
