"""What a worker does beside its traffic."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from headgate.server import worker


def test_a_thread_that_imports_rests_before_each_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["beside_one", "beside_two", "beside_three"]
    for name, needed in zip(names, [*names[1:], "threading"], strict=True):
        (tmp_path / f"{name}.py").write_text(f"import {needed}\nimport threading\nTHREAD = threading.get_ident()\n")
    monkeypatch.syspath_prepend(tmp_path)
    rests: list[int] = []
    monkeypatch.setattr(worker.time, "sleep", lambda _seconds: rests.append(threading.get_ident()))
    finders, interval = list(sys.meta_path), sys.getswitchinterval()
    asyncio.run(worker.import_beside(("beside_one", "threading", "beside_nowhere")))
    found = {sys.modules.pop(name).THREAD for name in names}
    assert len(found) == 1
    assert threading.get_ident() not in found
    # Each of the three, and the one that is not there.
    assert rests == [*found] * 4
    assert (sys.meta_path, sys.getswitchinterval()) == (finders, interval)


def test_pauses_are_for_the_thread_that_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[int] = []
    monkeypatch.setattr(worker.time, "sleep", lambda _seconds: rests.append(threading.get_ident()))
    pauses = worker.ImportPauses()
    other = threading.Thread(target=lambda: pauses.find_spec("module", None))
    other.start()
    other.join()
    assert not rests
    pauses.find_spec("module", None)
    assert rests == [threading.get_ident()]
