"""What this build is."""

from __future__ import annotations

import platform
import sys

from headgate import __version__


def build_info() -> dict[str, str]:
    """Return the keys of `--version`. `rust_version` keeps its name for tools that parse it and tells Python's."""
    return {
        "version": __version__,
        "git_revision": "unknown",
        "rust_version": f"py{platform.python_version()}",
        "build_profile": "release",
        "build_target": f"{platform.machine()}-{sys.platform}",
    }
