"""Flame graphs of profiles: one page of HTML that needs nothing else, no network and no other program."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any, Final

from headgate.cli.pprof_reader import ReadProfile

# Frames narrower than this share of the whole are left out: nobody sees them, and a page of all would be large.
LEAST: Final = 0.0002
MAX_DEPTH: Final = 200
Node = list[Any]  # name, value, children by name

PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>TITLE</title>
<style>
:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 1rem; }
h1 { font-size: 1.1rem; margin: 0 0 .5rem; }
#bar { display: flex; gap: .75rem; flex-wrap: wrap; align-items: center; margin-bottom: .5rem; }
#graph { position: relative; overflow: hidden; }
.frame { position: absolute; height: 18px; box-sizing: border-box; border: 1px solid Canvas; border-radius: 2px;
  overflow: hidden; white-space: nowrap; font: 12px/16px ui-monospace, monospace; padding: 0 3px; cursor: pointer;
  color: #1b1206; text-align: left; }
.frame.found { outline: 2px solid #7a2ff0; outline-offset: -2px; }
#told { min-height: 1.4em; font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
</style>
<h1>TITLE</h1>
<div id="bar"><label>Search <input id="search" autocomplete="off"></label>
<button id="reset" type="button">Whole</button><span id="share" role="status"></span></div>
<div id="told"></div>
<div id="graph"></div>
<script type="application/json" id="data">DATA</script>
<script>
const { unit, root } = JSON.parse(document.getElementById("data").textContent);
const [graph, told, search] = ["graph", "told", "search"].map((one) => document.getElementById(one));
const ROW = 18;
let chosen = [root];
function shown(value) {
  if (unit !== "bytes") return value + " " + unit;
  const at = Math.min(3, Math.floor(Math.log2(Math.max(value, 1)) / 10));
  return (value / 1024 ** at).toFixed(at ? 1 : 0) + " " + ["B", "KiB", "MiB", "GiB"][at];
}
function color(name) {
  let hash = 0;
  for (const char of name) hash = (hash * 31 + char.codePointAt(0)) >>> 0;
  return `hsl(${20 + hash % 40} ${70 + hash % 20}% ${60 + hash % 15}%)`;
}
function share(node) { return `${node[0]}: ${shown(node[1])}, ${(node[1] / root[1] * 100).toFixed(2)} %`; }
function draw() {
  const parts = [], word = search.value.toLowerCase();
  let deepest = 0, found = 0;
  const width = graph.clientWidth || 800;
  function place(node, left, right, depth, path, counted) {
    if (right - left < 0.5) return;
    deepest = Math.max(deepest, depth);
    const hit = word && node[0].toLowerCase().includes(word);
    if (hit && !counted) found += node[1];
    const frame = document.createElement("button");
    frame.type = "button";
    frame.className = hit ? "frame found" : "frame";
    frame.style.left = `${left}px`; frame.style.width = `${right - left}px`; frame.style.top = `${depth * ROW}px`;
    frame.style.background = color(node[0]);
    frame.textContent = right - left > 24 ? node[0] : "";
    frame.title = share(node);
    frame.onclick = () => { chosen = path; draw(); };
    frame.onmouseenter = frame.onfocus = () => { told.textContent = share(node); };
    parts.push(frame);
    let at = left;
    for (const inner of node[2]) {
      const wide = (right - left) * inner[1] / node[1];
      place(inner, at, at + wide, depth + 1, [...path, inner], counted || hit);
      at += wide;
    }
  }
  chosen.forEach((node, depth) => {
    if (depth === chosen.length - 1) place(node, 0, width, depth, chosen, false);
    else { const line = [node[0], node[1], []]; place(line, 0, width, depth, chosen.slice(0, depth + 1), false); }
  });
  graph.replaceChildren(...parts);
  graph.style.height = `${(deepest + 1) * ROW}px`;
  document.getElementById("share").textContent = word ? `found: ${(found / chosen.at(-1)[1] * 100).toFixed(2)} %` : "";
}
search.oninput = draw;
document.getElementById("reset").onclick = () => { chosen = [root]; draw(); };
addEventListener("resize", draw);
draw();
</script>
</html>
"""


def flame_graph(profile: ReadProfile, kind: str, title: str) -> str:
    """Return a page of HTML about the values of one type. The page is whole: it loads nothing."""
    at = profile.index(kind)
    unit = profile.types[at][1] if profile.types else ""
    whole: dict[str, Any] = {"value": 0, "inner": {}}
    for sample in profile.samples:
        value = sample.values[at] if at < len(sample.values) else 0
        if value <= 0:
            continue
        node = whole
        node["value"] += value
        for name in (*((sample.process,) if sample.process else ()), *sample.stack[:MAX_DEPTH]):
            node = node["inner"].setdefault(name, {"value": 0, "inner": {}})
            node["value"] += value
    tree = _plain("all", whole, whole["value"] * LEAST)
    data = json.dumps({"unit": "samples" if unit == "count" else unit, "root": tree}, separators=(",", ":"))
    # Within the element nothing but `</` can end it.
    data = data.replace("<", "\\u003c")
    # In one go: a name may have such a word in it.
    return re.sub("TITLE|DATA", lambda found: data if found[0] == "DATA" else escape(title), PAGE)


def has_samples(profile: ReadProfile, kind: str) -> bool:
    """Tell whether there is anything to see."""
    at = profile.index(kind)
    return any(at < len(one.values) and one.values[at] > 0 for one in profile.samples)


def _plain(name: str, node: dict[str, Any], least: float) -> Node:
    """Return a node with those below it that are wide enough, the widest first. It keeps its own stack."""
    root: Node = [name, node["value"], []]
    pending = [(root, node)]
    while pending:
        found, of = pending.pop()
        for inner, one in sorted(of["inner"].items(), key=lambda item: (-item[1]["value"], item[0])):
            if one["value"] >= least:
                made: Node = [inner, one["value"], []]
                found[2].append(made)
                pending.append((made, one))
    return root
