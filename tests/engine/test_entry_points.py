"""Whatever a compiled module's functions, classes, methods and attributes are given: an exception, never the end of the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import entry_walk
import pytest

WALK = Path(entry_walk.__file__)


def walked(module: str, journal: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONMALLOC": "debug"}
    return subprocess.run([sys.executable, str(WALK), module, str(journal)], env=environ, capture_output=True, text=True)


@pytest.mark.parametrize("module", entry_walk.module_names())
def test_odd_arguments_raise(module: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    done = walked(module, journal)
    where = journal.read_text(errors="replace") if journal.exists() else "the import"
    reason = signal.Signals(-done.returncode).name if done.returncode < 0 else done.stderr
    assert done.returncode == 0, f"{where}: {reason}"


def test_a_module_that_ends_the_process_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deadly.py").write_text("import os\n\ndef fatal(one=None):\n    if one is None:\n        os.abort()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert walked("deadly", tmp_path / "journal").returncode == -signal.SIGABRT
    assert (tmp_path / "journal").read_text() == "fatal"
