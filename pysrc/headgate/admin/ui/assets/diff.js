// A line diff of two texts.

const MOST_CELLS = 4_000_000;
const CONTEXT = 3;

/** Return pairs of a sign (" ", "+", "-") and a line for all lines of both texts. */
export function diffLines(before, after) {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA -= 1;
    endB -= 1;
  }
  const same = (lines) => lines.map((line) => [" ", line]);
  return [...same(a.slice(0, start)), ...middle(a.slice(start, endA), b.slice(start, endB)), ...same(a.slice(endA))];
}

/** Compute the longest common subsequence by dynamic programming; texts too long for it count as replaced. */
function middle(a, b) {
  if (!a.length || !b.length || a.length * b.length > MOST_CELLS) return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      found.push([" ", a[i]]);
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) {
      found.push(["-", a[i]]);
      i += 1;
    } else {
      found.push(["+", b[j]]);
      j += 1;
    }
  }
  return found;
}

/** Return the diff without the lines far from every change; each gap is null. */
export function hunks(lines) {
  const near = lines.map(() => false);
  lines.forEach(([sign], at) => {
    if (sign !== " ") for (let here = Math.max(0, at - CONTEXT); here <= at + CONTEXT && here < lines.length; here += 1) near[here] = true;
  });
  const found = [];
  lines.forEach((line, at) => {
    if (near[at]) found.push(line);
    else if (found.length && found[found.length - 1] !== null) found.push(null);
  });
  if (found[found.length - 1] === null) found.pop();
  return found;
}
