"""Noticing changed files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.net.tasks import spawn
from headgate.server.file_events import FileEvents
from headgate.server.watch import changes, fingerprint


def test_replacing_and_relinking_a_file_changes_its_fingerprint(tmp_path: Path) -> None:
    real, link = tmp_path / "a", tmp_path / "link"
    real.write_text("1")
    (tmp_path / "b").write_text("1")
    link.symlink_to(real)
    paths = [str(link)]
    first = fingerprint(paths)
    assert fingerprint(paths) == first
    link.unlink()
    link.symlink_to(tmp_path / "b")
    second = fingerprint(paths)
    assert second != first
    (tmp_path / "b").unlink()
    assert fingerprint(paths) not in (first, second)


def test_content_of_the_same_size_and_time(tmp_path: Path) -> None:
    """Tools that unpack archives set the time of the last modification back."""
    path = tmp_path / "a"
    path.write_text("1")
    first, status = fingerprint([str(path)]), path.stat()
    path.write_text("2")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert fingerprint([str(path)]) != first


class Watched:
    """Changes that are noticed of some files. An interval of an hour passes in no test: what is noticed then is told by
    the kernel.
    """

    def __init__(self, *paths: Path, interval_s: float = 3600.0) -> None:
        self._paths = [str(path) for path in paths]
        self._interval_s = interval_s
        self._seen: asyncio.Queue[None] = asyncio.Queue()

    async def __aenter__(self) -> Watched:
        self._start = fingerprint(self._paths)
        self._task = spawn("watch", self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _watch(self) -> None:
        async for _ in changes(lambda: self._paths, self._interval_s, self._start):
            self._seen.put_nowait(None)

    async def seen(self) -> None:
        """Wait for a change that is noticed."""
        async with asyncio.timeout(60):
            await self._seen.get()


def replace(path: Path, text: str) -> None:
    other = path.with_suffix(".new")
    other.write_text(text)
    os.replace(other, path)


def link(path: Path, target: str) -> None:
    other = path.with_suffix(".new")
    other.symlink_to(target)
    os.replace(other, path)


def write_in_place(path: Path) -> None:
    path.write_text("other")


def write_in_parts(path: Path) -> None:
    with open(path, "w") as file:
        for _ in range(100):
            file.write("part" * 100)
            file.flush()


@pytest.mark.parametrize("change", [write_in_place, write_in_parts, lambda path: replace(path, "new")])
@pytest.mark.parametrize("others", [0, 1])
def test_a_file_that_was_closed_or_replaced_is_noticed_at_once(
    change: Callable[[Path], None], others: int, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    path.write_text("0")

    async def run() -> None:
        async with Watched(path, *[tmp_path / "other"] * others) as watched:
            change(path)
            await watched.seen()

    asyncio.run(run())


def test_a_mounted_configuration_map_that_is_switched_is_noticed_at_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"..{name}").mkdir()
        (tmp_path / f"..{name}" / "c.yaml").write_text(name)
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "c.yaml").symlink_to("..data/c.yaml")

    async def run() -> None:
        async with Watched(tmp_path / "c.yaml") as watched:
            link(tmp_path / "..data", "..two")
            await watched.seen()

    asyncio.run(run())


def test_a_change_before_the_first_look_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0")

    async def run() -> None:
        watched = Watched(path)
        start = fingerprint([str(path)])
        path.write_text("01")
        async with watched:
            watched._start = start
            await watched.seen()

    asyncio.run(run())


@pytest.mark.parametrize("notices", [True, False])
def test_any_change_is_noticed_after_a_while(notices: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not notices:
        monkeypatch.setattr(FileEvents, "watch", lambda *_: None)
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_text("0")

    async def run() -> None:
        async with Watched(path, other, interval_s=0.05) as watched:
            other.write_text("1")
            await watched.seen()
            path.unlink()
            await watched.seen()
            path.write_text("01")
            await watched.seen()
            with path.open("a") as file:
                file.write("open")
                file.flush()
                await watched.seen()

    asyncio.run(run())


def test_a_burst_of_writes_is_one_change(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0")
    read: list[str] = []

    async def watch(seen: asyncio.Queue[None]) -> None:
        async for _ in changes(lambda: [str(path)], 0.05):
            read.append(path.read_text())
            seen.put_nowait(None)

    async def run() -> None:
        seen: asyncio.Queue[None] = asyncio.Queue()
        task = spawn("watch", watch(seen))
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            for burst in ("xxxxxx", "yyyy"):
                for number in range(1, len(burst) + 1):
                    path.write_text(burst[:number])
                await seen.get()
        task.cancel()

    asyncio.run(run())
    assert read == ["xxxxxx", "yyyy"]
