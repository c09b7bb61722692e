"""Writes what a release was built from: dist/provenance.json and dist/SHA256SUMS. Usage: python ci/provenance.py dist

The first is an in-toto statement (https://github.com/in-toto/attestation) with a predicate of SLSA's provenance 1
(https://slsa.dev/spec/v1.0/provenance): the files by their hashes, the commit, the locks with the hashes of what was
installed, and the tools that built them. It is not signed: whoever publishes the files signs it. Equal files of equal
sources, built by equal tools, have equal statements.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STATEMENT, SUMS = "provenance.json", "SHA256SUMS"
LOCKS = ("ci/locks/build.txt", "ci/locks/run.txt")
# What makes the files, by the command that says its version.
TOOLS = {"cc": ("cc", "--version"), "ld": ("ld", "--version"), "libc": ("ldd", "--version")}


def digest(path: Path) -> dict[str, str]:
    """Return the hash of a file as statements have it."""
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def said(*words: str) -> str:
    """Return the first line that a program prints, "" if it is not there."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60, cwd=ROOT)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.partition("\n")[0].strip()


def locked(text: str) -> list[str]:
    """Return the packages of a lock, as `name==version`."""
    return re.findall(r"^([A-Za-z0-9][\w.\-\[\]]*==[^\s;\\]+)", text, re.MULTILINE)


def materials(commit: str) -> list[dict[str, Any]]:
    """Return what the build has read: the sources, and what the locks name."""
    found: list[dict[str, Any]] = [{"name": "source", "uri": "git+headgate", "digest": {"gitCommit": commit}}]
    for name in LOCKS:
        path = ROOT / name
        packages = locked(path.read_text())
        found.append({"name": name, "digest": digest(path), "annotations": {"packages": packages}})
    return found


def statement(files: list[Path], commit: str, date: int) -> dict[str, Any]:
    """Return the statement about these files. `date`: that of the commit, in s since 1970."""
    when = datetime.fromtimestamp(date, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    tools = {name: said(*words) for name, words in TOOLS.items()}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.name, "digest": digest(path)} for path in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:headgate:make:1",
                "externalParameters": {"commit": commit, "targets": ["wheel", "deb", "binary", "sbom", "licences"]},
                "internalParameters": {
                    "SOURCE_DATE_EPOCH": str(date),
                    "python": platform.python_version(),
                    "machine": platform.machine(),
                    **{name: words for name, words in tools.items() if words},
                },
                "resolvedDependencies": materials(commit),
            },
            "runDetails": {"builder": {"id": "urn:headgate:builder:make"}, "metadata": {"startedOn": when}},
        },
    }


def main(words: list[str]) -> int:
    """Write both files; return the exit status."""
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(words[0])
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name not in (STATEMENT, SUMS))
    if not files:
        print(f"nothing in {folder}", file=sys.stderr)
        return 1
    commit = os.environ.get("SOURCE_COMMIT") or said("git", "rev-parse", "HEAD")
    date = int(os.environ.get("SOURCE_DATE_EPOCH") or said("git", "log", "-1", "--format=%ct"))
    text = json.dumps(statement(files, commit, date), indent=2) + "\n"
    (folder / STATEMENT).write_text(text)
    # As `sha256sum --check` reads it.
    listed = [*files, folder / STATEMENT]
    (folder / SUMS).write_text("".join(f"{digest(path)['sha256']}  {path.name}\n" for path in listed))
    print(f"{folder / SUMS}: {len(listed)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
