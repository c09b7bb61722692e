"""Version and source revision of this build."""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import Final

from headgate import __version__

UNKNOWN: Final = "unknown"
PACKAGE: Final = Path(__file__).parents[1]
# Written by the build (setup.py): `commit` and `date`.
BUILT: Final = PACKAGE / "build.json"


def build_info() -> dict[str, str]:
    """Return the fields of `--version`.

    `rust_version` has the version of Python; the name is kept for tools that parse the output.
    """
    return {
        "version": __version__,
        "git_revision": _built().get("commit") or UNKNOWN,
        "rust_version": f"py{sys.version.split()[0]}",
        "build_profile": "release",
        "build_target": f"{os.uname().machine}-{sys.platform}",
    }


def build_date() -> str:
    """Return the date of the built commit (RFC 3339), not of the build itself; `unknown` if there is none."""
    return _built().get("date") or UNKNOWN


@cache
def _built() -> dict[str, str]:
    try:
        found = json.loads(BUILT.read_text("ascii"))
    except (OSError, ValueError):
        found = {"commit": checked_out(PACKAGE.parents[1])} if PACKAGE.parent.name == "pysrc" else {}
    return {str(key): str(value) for key, value in found.items() if value} if isinstance(found, dict) else {}


def checked_out(tree: Path) -> str | None:
    """Return the commit that is checked out in a working tree, None if there is none. This reads `.git` without `git`.

    Source: https://git-scm.com/docs/gitrepository-layout.
    """
    try:
        folder = tree / ".git"
        if folder.is_file():        # a linked worktree: `gitdir: <path>`
            folder = tree / folder.read_text().removeprefix("gitdir:").strip()
        head = (folder / "HEAD").read_text().strip()
        if not head.startswith("ref:"):
            return head
        name = head.removeprefix("ref:").strip()
        common = folder / "commondir"
        places = [folder, folder / common.read_text().strip()] if common.exists() else [folder]
        for place in places:
            if (place / name).is_file():
                return (place / name).read_text().strip()
        packed = (places[-1] / "packed-refs").read_text().splitlines()
    except (OSError, ValueError):
        return None
    return next((line.split()[0] for line in packed if line.endswith(f" {name}") and line[0] not in "#^"), None)
