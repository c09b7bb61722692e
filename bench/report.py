"""Writes the tables of bench/README.md, between its markers, from the newest result files.

Usage: python -m bench.report [--macro FILE] [--micro FILE] [--print]
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from bench import results_files
from bench.macro.cases import BY_NAME

README = Path(__file__).resolve().parent / "README.md"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
PEERS = ("direct", "nginx", "haproxy", "envoy", "headgate", "headgate-quiet")
NOTHING = "-"


def number(value: dict[str, float] | None, digits: int = 1) -> str:
    """A median."""
    return NOTHING if value is None else f"{value['median']:,.{digits}f}"


def table(head: list[str], lines: list[list[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *lines])


def grid(rows: list[dict[str, Any]], measure: str, digits: int) -> str:
    """Cases down, peers across."""
    cells: dict[tuple[str, int], dict[str, str]] = {}
    for row in rows:
        text = number(row[measure], digits) if row["valid"] else "invalid"
        cells.setdefault((row["case"], row["connections"]), {})[row["peer"]] = text
    present = [peer for peer in PEERS if any(line.get(peer, NOTHING) != NOTHING for line in cells.values())]
    lines = [
        [f"{BY_NAME[case].title}, {connections} conn.", *(line.get(peer, NOTHING) for peer in present)]
        for (case, connections), line in cells.items()
    ]
    return table(["case", *present], lines)


def ratios(rows: list[dict[str, Any]]) -> str:
    """The gateway over each peer, with the lowest and the highest round."""
    bases = ("nginx", "haproxy", "envoy")
    lines = []
    for row in rows:
        if row["peer"] in ("headgate", "headgate-quiet") and row["valid"]:
            cells = [row["ratio"].get(base) for base in bases]
            shown = [
                NOTHING if cell is None else f"{cell['median']:.2f} ({cell['min']:.2f} to {cell['max']:.2f})"
                for cell in cells
            ]
            lines.append([f"{BY_NAME[row['case']].title}, {row['connections']} conn., {row['peer']}", *shown])
    return table(["CPU time per request", *(f"/ {base}" for base in bases)], lines) if lines else ""


def targets(document: dict[str, Any]) -> str:
    """What was to be reached."""
    lines = [
        [
            entry["title"],
            f"{entry['limit']:g} {entry['unit']}",
            f"{entry['value']['median']:g} {entry['unit']} ({entry['value']['min']:g} to {entry['value']['max']:g})",
            "yes" if entry["reached"] else "**no**",
        ]
        for entry in document["targets"]
    ]
    return table(["target", "at most", "measured (lowest to highest round)", "reached"], lines) if lines else ""


def footprints(document: dict[str, Any]) -> str:
    """Start and memory."""
    fields = (
        ("start_s", "start to first response, s", 2),
        ("processes", "processes", 0),
        ("rss_start_mb", "RSS at start, MB", 1),
        ("pss_start_mb", "PSS at start, MB", 1),
        ("idle_bytes", "user memory per idle connection, B", 0),
        ("rss_after_mb", "RSS after load, MB", 1),
        ("pss_after_mb", "PSS after load, MB", 1),
    )
    lines = [
        [peer, *(number(values.get(field), digits) for field, _, digits in fields)]
        for peer, values in document.get("footprint", {}).items()
    ]
    return table(["peer", *(title for _, title, _ in fields)], lines) if lines else ""


def about(document: dict[str, Any], path: Path) -> str:
    """Where and with what."""
    machine, versions, options = document["machine"], document["versions"], document.get("options", {})
    words = ", ".join(f"{name} {text}" for name, text in versions.items() if name not in ("commit", "uncommitted"))
    dirty = " with uncommitted changes" if versions.get("uncommitted") == "yes" else ""
    lines = [
        f"File `{path.name}`, {document['date']}, commit `{versions['commit']}`{dirty}.",
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory_mb']} MB, {machine['system']}.",
        f"Versions: {words}.",
    ]
    if options:
        load = document["load_average_before"][0]
        lines.append(f"{options['rounds']} rounds of {options['seconds']} s per row; load average before: {load}.")
    return "\n".join(lines)


def macro(document: dict[str, Any], path: Path) -> str:
    """Everything of a macro result."""
    rows = document["rows"]
    parts = [
        "### Traffic", about(document, path),
        "Targets:", targets(document),
        "CPU microseconds per request (median of the rounds):", grid(rows, "cpu_us", 1),
        "As ratio within a round (median, lowest, highest):", ratios(rows),
        "Requests per second:", grid(rows, "rps", 0),
        "Latency, 99th percentile, microseconds:", grid(rows, "p99_us", 0),
        "Start and memory:", footprints(document),
    ]  # fmt: skip
    broken = [f"- {row['case']} {row['connections']} {row['peer']}: {'; '.join(row['problems'])}"
              for row in rows if not row["valid"]]  # fmt: skip
    if broken:
        parts += ["Not valid:", "\n".join(broken)]
    kept = [parts[0], parts[1]]
    for title, text in zip(parts[2::2], parts[3::2], strict=True):
        kept += [title, text] if text else []
    return "\n\n".join(kept)


def micro(document: dict[str, Any], path: Path) -> str:
    """Everything of a micro result."""
    lines = [
        [row["name"], f"{row['ours_ns']:,.0f}", f"{row['oracle_ns']:,.0f}" if row["oracle_ns"] else NOTHING,
         f"{row['ratio']:.1f}" if row["ratio"] else NOTHING, row["oracle"] or NOTHING]
        for row in document["micro"]
    ]  # fmt: skip
    head = ["engine module", "ns", "oracle, ns", "times faster", "oracle"]
    return "\n\n".join(["### Engine modules", about(document, path), table(head, lines)])


def write(text: str, readme: Path) -> None:
    """Put the text between the markers; they are made at the end when missing."""
    old = readme.read_text()
    block = f"{BEGIN}\n{text}\n{END}"
    if BEGIN in old:
        new = re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: block, old, flags=re.S)
    else:
        new = old.rstrip() + f"\n\n## Results\n\n{block}\n"
    readme.write_text(new)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__)
    parser.add_argument("--macro", type=Path)
    parser.add_argument("--micro", type=Path)
    parser.add_argument("--print", action="store_true", help="print instead of writing the README")
    options = parser.parse_args()
    parts = []
    for given, key, render in (
        (options.macro, results_files.MACRO, macro),
        (options.micro, results_files.MICRO, micro),
    ):
        found = (given, results_files.read(given)) if given else results_files.newest(key)
        if found is not None:
            parts.append(render(found[1], found[0]))
    if not parts:
        raise SystemExit("no result files: run python -m bench.macro.run --out bench/results/<name>.json")
    text = "\n\n".join(parts)
    if options.print:
        print(text)
    else:
        write(text, README)


if __name__ == "__main__":
    main()
