"""Fails when a request of HTTP/1.1 takes more instructions than before.

Usage: python -m bench.instructions.gate [--write] [--optimize 3] [--tolerance 0.04] [--requests 400]

Counts what bench.instructions.run counts for the gateway alone, and compares it with bench/results/instructions.json,
which has figures by the compiler's level (HEADGATE_OPTIMIZE of setup.py). One connection asks, so that each turn of the
loop finds one event, and the median of three counts is taken: a busy machine adds up to 3 %. The processor's features and
Python's build change more: on another machine, run it with --write first, at the older commit. What has become cheaper by more than the tolerance is told, so that the new figure is written down.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.instructions.run import Job, parse
from bench.macro import peers

FIGURES = Path(__file__).parents[1] / "results" / "instructions.json"
TURNS = 3
CASES = "get-small,post-1k,post-16k,edits"


def counted(requests: int) -> dict[str, float]:
    """Instructions in user space per request, by case."""
    words = ["--cases", CASES, "--peers", "headgate", "--requests", str(requests), "--connections", "1"]
    options = parse(words)
    found = {}
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        (folder / "backend").mkdir()
        backend = peers.start_backend("web", folder / "backend")
        try:
            for case in options.cases:
                counts = []
                for turn in range(TURNS):
                    place = folder / f"{case.name}-{turn}"
                    place.mkdir()
                    counts.append(Job("headgate", case, backend.port, place, options).instructions())
                found[case.name] = median(counts)
                print(f"{case.name:14} {found[case.name]:9.0f} instructions", flush=True)
        finally:
            backend.stop()
    return found


def compared(before: dict[str, float], now: dict[str, float], tolerance: float) -> tuple[list[str], list[str]]:
    """Return what is worse and what is better than before by more than the tolerance, and what there is no figure of."""
    worse, better = [], []
    for name, figure in now.items():
        if name not in before:
            worse.append(f"{name}: no figure of before; --write makes it one")
            continue
        ratio = figure / before[name]
        told = f"{name}: {figure:.0f} instructions, {ratio:.3f} times the {before[name]:.0f} of before"
        if ratio > 1 + tolerance:
            worse.append(told)
        elif ratio < 1 - tolerance:
            better.append(told)
    return worse, better


def main(arguments: list[str] | None = None) -> int:
    """Count, compare or write; 1 if something is worse."""
    parser = argparse.ArgumentParser(prog="python -m bench.instructions.gate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--write", action="store_true", help="keep the figures of now")
    parser.add_argument("--optimize", default=os.environ.get("HEADGATE_OPTIMIZE", "3"), help="level of the build")
    parser.add_argument("--tolerance", type=float, default=0.04)
    parser.add_argument("--requests", type=int, default=400)
    options = parser.parse_args(arguments)
    figures: dict[str, dict[str, float]] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    now = counted(options.requests)
    if options.write:
        figures[f"O{options.optimize}"] = {name: round(figure) for name, figure in now.items()}
        FIGURES.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
        return 0
    worse, better = compared(figures.get(f"O{options.optimize}", {}), now, options.tolerance)
    for line in better:
        print(f"better: {line}")
    for line in worse:
        print(f"worse: {line}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
