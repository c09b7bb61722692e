"""Where there is no gateway, building one is refused in a sentence instead of by the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# setup.py, as an interpreter of another platform runs it.
ELSEWHERE = """
import runpy, sys
sys.platform = {platform!r}
sys.argv = ["setup.py", "egg_info", "--egg-base", {folder!r}]
runpy.run_path("setup.py", run_name="__main__")
"""


@pytest.mark.parametrize("platform", ["darwin", "win32", "freebsd14"])
def test_an_installation_elsewhere_says_what_to_do_instead(platform: str, tmp_path: Path) -> None:
    program = ELSEWHERE.format(platform=platform, folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    # One line: no traceback, and nothing of the build.
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"headgate runs on Linux, and this is {platform}:")
    assert "container or a virtual machine" in line
    assert "docs/install.md" in line
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_make_says_it_as_well(tmp_path: Path) -> None:
    """ci/need.sh, which `make run` and `make test` begin with."""
    (tmp_path / "uname").write_text("#!/bin/sh\necho Darwin\n")
    (tmp_path / "uname").chmod(0o755)
    command = [ROOT / "ci/need.sh", sys.executable]
    elsewhere = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=elsewhere, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Linux: this is Darwin" in done.stderr
    assert "Linux" not in subprocess.run(command, capture_output=True, text=True, timeout=60).stderr


def test_the_page_has_what_the_sentence_promises() -> None:
    page = (ROOT / "docs/install.md").read_text()
    assert "## macOS and Windows" in page
