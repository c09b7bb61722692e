"""What tests of pprof and others share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def read(folder: Path, data: bytes, *options: str) -> str:
    """What `go tool pprof` makes of a profile."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go")
    path = folder / "profile.pb"
    path.write_bytes(data)
    # The first call builds the tool.
    done = subprocess.run([go, "tool", "pprof", *options, str(path)], capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stderr
    return done.stdout
