// What may stand at a place of a YAML text, by a JSON schema.

const ITEM = Symbol("item of a list");
const MOST_DEEP = 12;
// How many lines in front of a place the braces around it may begin.
const MOST_LINES = 400;
// What stands in front of braces that begin in a line.
const BRACE = /^(\s*(?:-\s+)*(?:[\w.$-]+:\s+)?)[{[]/;
// Texts in quotes, variables and comments are passed over whole.
const TOKENS = /"(?:[^"\\]|\\.)*"?|'[^']*'?|\$\{[^}]*\}|(?<=\s)#[^\n]*|[\s\S]/g;

/** Return the columns of the dashes of a line, that of its content, and the key that the content begins with, if any. */
function shape(line) {
  const dashes = [];
  let at = line.length - line.trimStart().length;
  while (/^-(\s|$)/.test(line.slice(at))) {
    dashes.push(at);
    const rest = line.slice(at + 1);
    at += 1 + (rest.length - rest.trimStart().length || 1);
  }
  const [, key] = /^(?:"([^"]*)"|'([^']*)'|([^\s:#{}[\],&*!|>'"][^:#]*?))\s*:(?:\s|$)/.exec(line.slice(at))?.filter((one) => one !== undefined) ?? [];
  return { dashes, column: at, key };
}

/** Return the path of the map or list that the content of a line stands in, from the root. */
function pathOf(lines, row, own) {
  const path = [];
  let limit = own.column;
  let listed = false;
  const leaveItems = (dashes) => {
    for (const dash of [...dashes].reverse()) {
      if (dash >= limit) continue;
      path.unshift(ITEM);
      limit = dash;
      listed = true;
    }
  };
  leaveItems(own.dashes);
  for (let at = row - 1; at >= 0 && (limit > 0 || listed); at -= 1) {
    if (!lines[at].trim() || /^\s*#/.test(lines[at])) continue;
    const line = shape(lines[at]);
    // The dashes of a list may stand below the first letter of its name.
    if (line.column < limit || (listed && line.column === limit)) {
      if (line.key === undefined) return null;
      path.unshift(line.key);
      limit = line.column;
      listed = false;
    }
    leaveItems(line.dashes);
  }
  return path;
}

/** Return the place behind an opening brace or bracket that nothing has closed yet; `block`: the path in front of it. */
function placeWithin(block, text) {
  const open = [];
  let word = "";
  for (const [one] of text.matchAll(TOKENS)) {
    const top = open[open.length - 1];
    if (one === "{" || one === "[") open.push({ list: one === "[", key: null });
    else if (one === "}" || one === "]") {
      open.pop();
      // What follows belongs to others.
      if (!open.length) return null;
    } else if (/^#./.test(one)) continue;
    else if (one === "," && top) top.key = null;
    else if (/^:$/.test(one) && top && !top.list && top.key === null) top.key = word.trim().replace(/^["']|["']$/g, "");
    else {
      word += one;
      continue;
    }
    word = "";
  }
  const innermost = open.pop();
  if (!innermost || open.some((one) => !one.list && one.key === null)) return null;
  const path = [...block, ...open.map((one) => (one.list ? ITEM : one.key))];
  const typed = word.trimStart();
  if (innermost.list) return { path, key: ITEM, typed };
  if (innermost.key !== null) return { path, key: innermost.key, typed };
  return /^[\w$-]*$/.test(typed) ? { path, key: null, typed } : null;
}

/** Return the place within braces that have begun in an earlier line, the outermost of them; undefined if there are none. */
function placeOver(lines, row, before) {
  let text = before;
  let found;
  for (let at = row - 1; at >= Math.max(0, row - MOST_LINES); at -= 1) {
    text = `${lines[at]}\n${text}`;
    const brace = BRACE.exec(lines[at])?.[1];
    if (brace === undefined) continue;
    const own = shape(brace);
    const inner = placeWithin(own.key === undefined ? [] : [own.key], text.slice(brace.length));
    const path = inner && pathOf(lines, at, own);
    if (path) found = { ...inner, path: [...path, ...inner.path] };
  }
  return found;
}

/**
 * Return what is written at a place: {path, key, typed}. `key` is null where a name of the map is typed, ITEM where an
 * item of a list is, else the name whose value is. Null where it cannot be told.
 */
export function placeAt(lines, row, column) {
  const before = lines[row].slice(0, column);
  if (/(^|\s)#/.test(before)) return null;
  const over = placeOver(lines, row, before);
  if (over) return over;
  const brace = BRACE.exec(before)?.[1];
  const own = shape(brace ?? before);
  const path = pathOf(lines, row, own);
  if (path === null) return null;
  if (brace !== undefined) return placeWithin(own.key === undefined ? path : [...path, own.key], before.slice(brace.length));
  if (/[{[]/.test(before.replace(/"[^"]*"|'[^']*'|\$\{[^}]*\}/g, ""))) return null;
  const content = before.slice(own.column);
  const value = /^([^\s:'"]+):\s+(.*)$/.exec(content);
  if (value) return { path, key: value[1], typed: value[2] };
  return /^[\w$-]*$/.test(content) ? { path, key: null, typed: content } : null;
}

/** Return the alternatives of a schema, references followed. */
function alternatives(root, schema, depth = 0) {
  if (!schema || typeof schema !== "object" || depth > MOST_DEEP) return [];
  const found = [schema];
  if (schema.$ref) found.push(...alternatives(root, root.$defs?.[schema.$ref.replace("#/$defs/", "")], depth + 1));
  for (const word of ["anyOf", "oneOf", "allOf"]) for (const one of schema[word] ?? []) found.push(...alternatives(root, one, depth + 1));
  return found;
}

function below(root, schemas, step) {
  const found = [];
  for (const one of schemas.flatMap((schema) => alternatives(root, schema))) {
    const next = step === ITEM ? one.items : one.properties?.[step] ?? (typeof one.additionalProperties === "object" ? one.additionalProperties : null);
    if (next) found.push(next);
  }
  return found;
}

/** Return the words that values of schemas may be, with what is said about them. */
function wordsOf(root, schemas) {
  const found = new Map();
  for (const one of schemas.flatMap((schema) => alternatives(root, schema))) {
    const words = one.enum ?? ("const" in one ? [one.const] : one.type === "boolean" ? [true, false] : []);
    for (const word of words) {
      // Some words may begin with a capital as well: one spelling is enough.
      const known = [...found.keys()].some((other) => other.toLowerCase() === String(word).toLowerCase());
      if (word !== null && !known) found.set(String(word), typeof word === "string" ? one.description ?? "" : "");
    }
  }
  return found;
}

/** Return what may be typed at a place, as {text, about, name}: names of fields, or words of a value (`name` is false). */
export function options(root, place) {
  let schemas = [root];
  for (const step of place.path) schemas = below(root, schemas, step);
  const found = new Map();
  // An item that begins with a dash may be a map or a word.
  const named = place.key === null && !(place.path[place.path.length - 1] === ITEM && wordsOf(root, schemas).size);
  if (named) {
    for (const one of schemas.flatMap((schema) => alternatives(root, schema))) {
      for (const [name, value] of Object.entries(one.properties ?? {})) {
        if (!found.has(name) && !value.deprecated) found.set(name, value.description ?? "");
      }
    }
  } else {
    for (const [word, about] of wordsOf(root, place.key === null ? schemas : below(root, schemas, place.key))) found.set(word, about);
  }
  return [...found].map(([text, about]) => ({ text, about, name: named }));
}
