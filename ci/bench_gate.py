"""Compares the ratios of two result files; fails when one got worse by more than the tolerance.

Usage: python ci/bench_gate.py OLD.json NEW.json [--tolerance 0.15]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def ratios(path: Path) -> dict[str, float]:
    """Ratio of Headgate to nginx by case; absolute figures of two runs cannot be compared."""
    cases = json.loads(path.read_text())["cases"]
    return {
        key: found["headgate"]["ratio_nginx"]
        for key, found in cases.items()
        if "ratio_nginx" in found.get("headgate", {})
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.15)
    options = parser.parse_args()
    old, new = ratios(options.old), ratios(options.new)
    worse = 0
    for key in sorted(old.keys() & new.keys()):
        bad = new[key] > old[key] * (1 + options.tolerance)
        worse += bad
        print(f"{key:20} {old[key]:6.2f} -> {new[key]:6.2f} {'WORSE' if bad else ''}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
