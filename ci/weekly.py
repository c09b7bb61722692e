"""The weekly lane: tests the newest versions that pyproject.toml allows, and renews the locks if they pass.

    python ci/weekly.py [--python PYTHON] [--test "make newest"]

Says what has changed since the locks were written, and writes the same to build/weekly.txt, as a message for the commit
of the new locks. If the tests fail, the locks stay as they were and it ends with 1: one of the versions that it names
broke them. A service that runs things by the clock needs this one line; it commits nothing.
"""

from __future__ import annotations

import argparse
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENTRY = re.compile(r"^([A-Za-z0-9][\w.\-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)


def versions(text: str) -> dict[str, str]:
    """Return the versions of a lock by package; of one with several, for different Pythons, all of them."""
    found: dict[str, list[str]] = {}
    for name, version in ENTRY.findall(text):
        found.setdefault(name, []).append(version)
    return {name: ", ".join(several) for name, several in found.items()}


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return a line for each package that has another version in one of the locks, which are given by their names."""
    moves: dict[str, list[str]] = {}
    for lock in sorted(before.keys() | after.keys()):
        old, new = versions(before.get(lock, "")), versions(after.get(lock, ""))
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                move = f"{name}: {old.get(name, 'not there')} -> {new.get(name, 'gone')}"
                moves.setdefault(move, []).append(lock)
    return [f"{move} ({', '.join(locks)})" for move, locks in sorted(moves.items())]


def read(folder: Path) -> dict[str, str]:
    """Return the texts of all locks by their names."""
    return {path.stem: path.read_text() for path in folder.glob("*.txt")}


def weekly(root: Path, lock: Sequence[str], test: Sequence[str]) -> int:
    """Renew the locks with one command, and keep them if the other succeeds; return the exit status."""
    folder, report = root / "ci/locks", root / "build/weekly.txt"
    before = read(folder)
    passed = False
    try:
        if subprocess.run(lock, cwd=root, check=False).returncode:
            print("weekly: the locks could not be written anew", file=sys.stderr)
            return 1
        found = changes(before, read(folder))
        text = "\n".join(["Renew the locks", "", *found, ""]) if found else "Nothing has changed\n"
        report.parent.mkdir(exist_ok=True)
        report.write_text(text)
        print(text, flush=True)
        passed = subprocess.run(test, cwd=root, check=False).returncode == 0
    finally:
        if not passed:
            for path in folder.glob("*.txt"):
                path.unlink()
            for name, text in before.items():
                (folder / f"{name}.txt").write_text(text)
    if not passed:
        print("weekly: the tests fail with the newest versions; the locks stay as they were", file=sys.stderr)
        return 1
    print(f"weekly: passed, {len(found)} changes; the new locks are in ci/locks" if found else "weekly: passed")
    return 0


def main(words: Sequence[str]) -> int:
    """Read the command line and run it."""
    # A job that is cancelled puts the locks back, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--python", default=sys.executable, help="makes the environment of the tool that locks")
    reader.add_argument("--test", default="make newest", help="what tests the newest versions")
    options = reader.parse_args(words)
    return weekly(ROOT, ("ci/lock.sh", options.python, "--upgrade"), shlex.split(options.test))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
