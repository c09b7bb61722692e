"""Draws the newest result file and writes its tables into bench/README.md and README.md, between their markers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
COLOURS = {"nginx": "#4c78a8", "haproxy": "#9ecae9", "envoy": "#bab0ac", "headgate": "#e45756"}
BEGIN, END = "<!-- results -->", "<!-- end of results -->"


def newest() -> Path:
    return max(path for path in RESULTS.glob("20*.json") if "micro" not in path.name)


def table(document: dict[str, Any]) -> str:
    lines = ["| case | connections | peer | CPU us per request | spread | ratio to nginx | requests/s | errors |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for key, peers in document["cases"].items():
        case, connections = key.split("/")
        for name, found in peers.items():
            cpu = found.get("cpu_us")
            spread = found.get("cpu_us_spread")
            between = "" if spread is None else f"{spread[0]:.1f}-{spread[1]:.1f}"
            lines.append(
                f"| {case} | {connections} | {name} | {'' if cpu is None else f'{cpu:.1f}'} | {between} "
                f"| {found.get('ratio_nginx', '')} | {found['rps']:.0f} | {found['errors']} |"
            )
    for name, found in document.get("footprint", {}).items():
        idle = found["idle"]
        lines.append(
            f"\n{name}: first response {found['start_to_first_response_s']} s after start; "
            f"{found['memory']['rss_kb'] / 1024:.1f} MB resident ({found['memory']['pss_kb'] / 1024:.1f} MB proportional) "
            f"in the whole tree; {idle['bytes_per_connection']:.0f} bytes for each of {idle['connections']} idle connections."
        )
    versions = ", ".join(f"{name}: {text}" for name, text in document["versions"].items())
    return "\n".join(lines) + f"\n\nMachine: {document['machine']['system']}, 2 cores. {versions}."


def draw(document: dict[str, Any], path: Path) -> None:
    keys = [key for key in document["cases"] if key.endswith("/32") and "nginx" in document["cases"][key]]
    figure, axes = plt.subplots(figsize=(9, 4))
    width = 0.2
    for offset, name in enumerate(COLOURS):
        places = [index for index, key in enumerate(keys) if name in document["cases"][key]]
        values = [document["cases"][keys[index]][name]["cpu_us"] for index in places]
        bars = axes.bar(
            [place + (offset - 1.5) * width for place in places], values, width, label=name, color=COLOURS[name]
        )
        axes.bar_label(bars, fmt="%.0f", fontsize=7)
    axes.set_xticks(range(len(keys)), [key.removesuffix("/32") for key in keys])
    axes.set_ylabel("CPU microseconds per request")
    axes.set_title("Cost per request, one worker, 32 keep-alive connections (lower is better)")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path.with_suffix(".svg"))
    figure.savefig(path.with_suffix(".png"), dpi=130)


def insert(path: Path, text: str) -> None:
    """Put text between the markers of a page."""
    page = path.read_text()
    if BEGIN not in page or END not in page:
        sys.exit(f"{path} has no markers")
    before, rest = page.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main() -> None:
    source = newest()
    document = json.loads(source.read_text())
    draw(document, RESULTS / "cost")
    insert(ROOT / "bench" / "README.md", f"Run of {source.stem}:\n\n{table(document)}")


if __name__ == "__main__":
    main()
