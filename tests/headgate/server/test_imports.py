"""What a worker imports beside its traffic: one module in a turn of the loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Final

import pytest

from headgate.net.tasks import spawn
from headgate.server import imports

NAMES: Final = ("beside_one", "beside_two", "beside_three")


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of three modules, of which each imports the next. No permit is waited for in vain."""
    for name, needed in zip(NAMES, [*NAMES[1:], "threading"], strict=True):
        text = "import threading\nfrom headgate.server import imports\nTHREAD, AT = threading.get_ident(), imports.at()\n"
        (tmp_path / f"{name}.py").write_text(text + f"import {needed}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(imports, "WAIT_SECONDS", 3600.0)
    monkeypatch.setattr(imports, "at", lambda: 0, raising=False)
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.mark.usefixtures("modules")
def test_each_module_has_a_turn_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    gives: list[int] = []
    turns = 0

    def tick(loop: asyncio.AbstractEventLoop) -> None:
        nonlocal turns
        turns += 1
        loop.call_soon(tick, loop)

    class Counted(imports.ImportPermits):
        def give(self) -> None:
            gives.append(turns)
            super().give()

    async def imported() -> None:
        tick(asyncio.get_running_loop())
        await imports.import_beside((NAMES[0], "threading", "beside_nowhere"))

    monkeypatch.setattr(imports, "ImportPermits", Counted)
    monkeypatch.setattr(imports, "at", lambda: len(gives))
    finders, interval = list(sys.meta_path), sys.getswitchinterval()
    asyncio.run(imported())
    found = [sys.modules.pop(name) for name in NAMES]
    assert len({one.THREAD for one in found}) == 1
    assert threading.get_ident() != found[0].THREAD
    # No two of the modules had the same permit, and no two permits the same turn.
    ats = [one.AT for one in found]
    assert ats == sorted(set(ats))
    assert ats[0] > 0
    assert gives == sorted(set(gives))
    assert (sys.meta_path, sys.getswitchinterval()) == (finders, interval)


@pytest.mark.usefixtures("modules")
def test_what_is_left_is_imported_without_permits_when_nobody_waits_for_it() -> None:
    async def given_up() -> None:
        task = spawn("import", imports.import_beside(NAMES))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(given_up())  # its end waits for the thread
    assert all(sys.modules.pop(name) for name in NAMES)


def test_a_permit_is_for_the_thread_that_imports_and_for_one_module(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []

    class Permit(threading.Event):
        def clear(self) -> None:
            calls.append("clear")

        def wait(self, timeout: float | None = None) -> bool:
            calls.append(timeout)
            return True

    monkeypatch.setattr(threading, "Event", Permit)
    permits = imports.ImportPermits()
    permits.begin()
    monkeypatch.undo()
    other = threading.Thread(target=lambda: permits.find_spec("module", None))
    other.start()
    other.join()
    assert not calls
    permits.find_spec("module", None)
    # What was given while the thread was busy does not count, and a loop that stands still does not stop it.
    assert calls == ["clear", imports.WAIT_SECONDS]
    permits.give_all()
    permits.find_spec("module", None)
    assert calls == ["clear", imports.WAIT_SECONDS, "clear"]
