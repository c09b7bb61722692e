"""Draws a macro result: CPU time per request and memory, by peer. Writes bench/results/cost.svg and .png.

Usage: python -m bench.plot [FILE]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

from bench import results_files
from bench.macro.cases import BY_NAME

mpl.use("Agg")
from matplotlib import pyplot

CONNECTIONS = 32
COLORS = {
    "nginx": "#4c9a6a",
    "haproxy": "#5b7fa6",
    "envoy": "#b0799b",
    "headgate": "#d9822b",
    "headgate-quiet": "#f0c08a",
}
MEMORY = (("pss_start_mb", "PSS at start, MB"), ("pss_after_mb", "PSS after load, MB"))


def bars(axes: Any, groups: list[str], series: dict[str, list[dict[str, float] | None]]) -> None:
    """Grouped bars; the thin lines span the rounds."""
    width = 0.8 / max(1, len(series))
    for index, (peer, values) in enumerate(series.items()):
        for group, value in enumerate(values):
            if value is None:
                continue
            at = group + (index - (len(series) - 1) / 2) * width
            median = value["median"]
            error = [[median - value["min"]], [value["max"] - median]]
            axes.bar(at, median, width * 0.92, color=COLORS[peer], yerr=error, error_kw={"elinewidth": 0.7})
            axes.annotate(f"{median:.3g}", (at, value["max"]), ha="center", va="bottom", fontsize=6)
    axes.set_xticks(range(len(groups)), groups, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def draw(document: dict[str, Any]) -> Any:
    """The figure."""
    rows = [row for row in document["rows"] if row["connections"] == CONNECTIONS and row["valid"] and row["cpu_us"]]
    cases = [name for name in BY_NAME if any(row["case"] == name for row in rows)]
    by_key = {(row["case"], row["peer"]): row["cpu_us"] for row in rows}
    present = [peer for peer in COLORS if any(key[1] == peer for key in by_key)]
    figure, (top, bottom) = pyplot.subplots(2, 1, figsize=(9, 7), height_ratios=(3, 2), layout="constrained")
    titles = [BY_NAME[name].title.replace(" through", "\nthrough").replace(" of", "\nof") for name in cases]
    bars(top, titles, {peer: [by_key.get((name, peer)) for name in cases] for peer in present})
    top.set_ylabel("CPU microseconds per request")
    top.set_title(f"One worker, one core, {CONNECTIONS} keep-alive connections (lower is better)", fontsize=10)
    handles = [mpl.patches.Patch(color=COLORS[peer], label=peer) for peer in present]
    top.legend(handles=handles, frameon=False, fontsize=8)
    found = document.get("footprint", {})
    shown = [peer for peer in COLORS if peer in found]
    bars(bottom, [title for _, title in MEMORY],
         {peer: [found[peer].get(field) for field, _ in MEMORY] for peer in shown})  # fmt: skip
    bottom.set_ylabel("MB")
    versions, machine = document["versions"], document["machine"]
    names = ", ".join(f"{name} {versions[name]}" for name in ("nginx", "haproxy", "envoy", "wrk") if name in versions)
    figure.supxlabel(f"{document['date']} · commit {versions['commit']} · {machine['cpu']} · {names}", fontsize=6)
    return figure


def main() -> None:
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    found = (given, results_files.read(given)) if given else results_files.newest(results_files.MACRO)
    if found is None:
        raise SystemExit("no result file")
    figure = draw(found[1])
    for kind in ("svg", "png"):
        # Without a date in the file, the same figures give the same bytes.
        figure.savefig(
            results_files.FOLDER / f"cost.{kind}", dpi=130, metadata={"Date": None} if kind == "svg" else None
        )
        print(results_files.FOLDER / f"cost.{kind}")


if __name__ == "__main__":
    main()
