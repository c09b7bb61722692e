"""Whatever a compiled module's functions, classes, methods and attributes are given: an exception, never the end of the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import entry_walk
import pytest

WALK = Path(entry_walk.__file__)


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, Path], int]]:
    """`walked(module, journal)`: the exit status of a process that walks a module, or the negative number of a signal."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "deadly.py").write_text("import os\n\ndef fatal(one=None):\n    if one is None:\n        os.abort()\n")
    environ = {**os.environ, "PYTHONMALLOC": "debug", "PYTHONPATH": str(folder)}
    errors = folder / "errors"
    with (
        errors.open("wb") as log,
        subprocess.Popen(
            [sys.executable, str(WALK)], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        asking, answers = process.stdin, process.stdout
        assert asking is not None
        assert answers is not None

        def run(module: str, journal: Path) -> int:
            asking.write(f"{module} {journal}\n")
            asking.flush()
            told = answers.readline()
            assert told, errors.read_text(errors="replace")
            return int(told)

        yield run
        asking.close()


@pytest.mark.parametrize("module", entry_walk.module_names())
def test_odd_arguments_raise(walked: Callable[[str, Path], int], module: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    status = walked(module, journal)
    where = entry_walk.told(journal) or "the import"
    reason = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    assert status == 0, f"{where}: {reason}"


def test_a_module_that_ends_the_process_is_told(walked: Callable[[str, Path], int], tmp_path: Path) -> None:
    assert walked("deadly", tmp_path / "journal") == -signal.SIGABRT
    assert entry_walk.told(tmp_path / "journal") == "fatal"
