#!/usr/bin/env python3
"""Fails when a result file is worse than an older one. Only ratios are compared, so that the machine cancels out.

Usage: ci/bench_gate.py OLD.json NEW.json [--tolerance 0.10]

A macro row is compared with the row of the same case, connections and peer: our CPU time per request over that of a
peer of the same version, in the same round. A micro row: the oracle's time over ours. A row that is missing on one
side, or that is not valid, is named and not compared. A row is worse when its median is worse by more than the
tolerance and when even its best round is worse than the old median.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

OURS = ("headgate", "headgate-quiet")
DEFAULT_TOLERANCE = 0.10


class Ratio(NamedTuple):
    """Lower is better."""

    median: float
    best: float


def macro(document: dict[str, Any]) -> dict[str, Ratio]:
    """Ratios of valid rows, named by what makes them comparable."""
    found = {}
    for row in document["rows"]:
        if row["peer"] not in OURS or not row["valid"]:
            continue
        for base, value in row["ratio"].items():
            version = document["versions"].get(base, "?")
            name = f"{row['case']} c={row['connections']} {row['peer']} / {base} {version}"
            found[name] = Ratio(value["median"], value["min"])
    return found


def micro(document: dict[str, Any]) -> dict[str, Ratio]:
    """Our time over the oracle's."""
    return {
        f"{row['name']} / {row['oracle']}": Ratio(1 / row["ratio"], 1 / row["ratio_best"])
        for row in document["micro"]
        if row["ratio"]
    }


def ratios(document: dict[str, Any]) -> dict[str, Ratio]:
    """Ratios of either kind of file; ValueError for something else."""
    if "rows" in document:
        return macro(document)
    if "micro" in document:
        return micro(document)
    raise ValueError("not a result file: neither rows nor micro in it")


def compare(old: dict[str, Any], new: dict[str, Any], tolerance: float) -> tuple[list[str], list[str], list[str]]:
    """(what is worse, what was compared, what could not be). ValueError when the files are not alike."""
    before, after = ratios(old), ratios(new)
    if ("rows" in old) != ("rows" in new):
        raise ValueError("one file is macro, the other micro")
    if old.get("schema") != new.get("schema"):
        raise ValueError(f"schema {old.get('schema')} and {new.get('schema')}")
    worse, compared = [], []
    for name in sorted(before.keys() & after.keys()):
        was, now = before[name], after[name]
        change = now.median / was.median - 1
        line = f"{name}: {was.median:.3f} -> {now.median:.3f} ({change:+.1%})"
        if change > tolerance and now.best > was.median:
            worse.append(line)
        else:
            compared.append(line)
    alone = [f"{name}: only in the {'old' if name in before else 'new'} file" for name in before.keys() ^ after.keys()]
    return worse, compared, sorted(alone)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--tolerance", type=float, default=DEFAULT_TOLERANCE, help="0.10 is 10 %% of the old ratio")
    options = parser.parse_args(arguments)
    try:
        worse, compared, alone = compare(
            json.loads(options.old.read_text()), json.loads(options.new.read_text()), options.tolerance
        )
    except (OSError, ValueError) as error:
        print(f"bench gate: {error}", file=sys.stderr)
        return 2
    for line in compared:
        print(f"ok     {line}")
    for line in alone:
        print(f"skip   {line}")
    for line in worse:
        print(f"WORSE  {line}")
    if not compared and not worse:
        print("bench gate: nothing in common to compare", file=sys.stderr)
        return 2
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
