"""What a run costs before its first test: with `-n` every process of pytest-xdist pays it, with `--processes` one.

It imports all test modules. To rewrite their assertions takes three times as long as the rest of that, so it is done once,
beforehand, by as many processes as there are processors; pytest itself would do it in all processes at the same time. What was
collected is never garbage: the collector of cycles leaves it alone from then on.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

TESTS = Path(__file__).parent


def is_rewritten(path: Path) -> bool:
    """Return whether pytest rewrites the assertions of a file: those of tests and of conftest.py."""
    return path.name == "conftest.py" or path.name.startswith("test_")


def cache_of(path: Path) -> Path:
    return rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)


def stale(paths: list[Path]) -> list[Path]:
    """Return the files whose rewritten code is not kept, or is of an older text."""
    return [path for path in paths if rewrite._read_pyc(path, cache_of(path)) is None]


def rewritten(paths: list[Path], config: pytest.Config) -> None:
    """Keep the rewritten code of files where pytest looks for it. A file with a fault is left to pytest, which says what it is."""
    state = config.stash[rewrite.assertstate_key]
    for path in paths:
        try:
            found, code = rewrite._rewrite_test(path, config)
        except (SyntaxError, ValueError):
            continue
        cache_of(path).parent.mkdir(exist_ok=True)
        rewrite._write_pyc(state, code, found, cache_of(path))


def rewrite_all(config: pytest.Config, folder: Path = TESTS, processes: int | None = None) -> None:
    """Rewrite what is stale in `folder`, in processes of their own. Nothing is done where Python is to write no bytecode."""
    if sys.dont_write_bytecode or config.getoption("assertmode") != "rewrite":
        return
    left = stale(sorted(filter(is_rewritten, folder.rglob("*.py"))))
    count = min(processes or len(os.sched_getaffinity(0)), len(left))
    children = []
    for number in range(count):
        pid = os.fork()
        if pid == 0:
            try:
                rewritten(left[number::count], config)
            finally:
                os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)


@contextmanager
def without_collector() -> Iterator[None]:
    """Collect no cycles inside, and never look at what is there at the end. The little that is garbage then is not worth the look."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
