"""Notices of the kernel about files."""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headgate.server.file_events import FileEvents, places

LONG = 60.0


def run(test: Callable[[FileEvents], Awaitable[None]]) -> None:
    async def whole() -> None:
        events = FileEvents()
        try:
            await test(events)
        finally:
            events.close()

    asyncio.run(whole())


async def until(events: FileEvents, holds: Callable[[], bool]) -> None:
    """Wait for notices until something holds."""
    while not holds():
        assert await events.wait(LONG)


def test_every_link_on_the_way_is_a_place(tmp_path: Path) -> None:
    """A mounted configuration map: `c.yaml` leads to `..data/c.yaml`, and `..data` to a folder that is replaced."""
    folder = tmp_path / "map"
    (folder / "..one").mkdir(parents=True)
    (folder / "..one" / "c.yaml").write_text("1")
    (folder / "..data").symlink_to("..one")
    (folder / "c.yaml").symlink_to("..data/c.yaml")
    (tmp_path / "link").symlink_to(folder)
    root = str(tmp_path)
    expected = {(root, "link"), (f"{root}/map", "c.yaml"), (f"{root}/map", "..data"), (f"{root}/map/..one", "c.yaml")}
    assert expected <= places(str(tmp_path / "link" / "c.yaml"))
    assert (f"{root}/map", "c.yaml") in places(f"{root}/map/..one/../c.yaml")


def test_links_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert {(str(tmp_path), "a"), (str(tmp_path), "b")} <= places(str(tmp_path / "a"))


def test_a_file_that_is_replaced_is_noticed_and_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1")

    async def test(events: FileEvents) -> None:
        events.watch([str(path)])
        assert events.works
        (tmp_path / "other").write_text("1")
        (tmp_path / "new").write_text("2")
        assert not await events.wait(0.05)
        os.replace(tmp_path / "new", path)
        assert await events.wait(LONG)

    run(test)


def test_who_writes_is_known_until_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1")

    async def test(events: FileEvents) -> None:
        events.watch([str(path)])
        with path.open("w") as file:
            file.write("2")
            file.flush()
            await until(events, lambda: events.is_writing)
        await until(events, lambda: not events.is_writing)
        with path.open("a") as file:
            file.write("3")
            file.flush()
            await until(events, lambda: events.is_writing)
            events.watch([])
            assert not events.is_writing, "nobody asks for it any more"

    run(test)


def test_a_folder_that_goes_and_comes_again_is_watched_again(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "a"
    path.write_text("1")

    async def test(events: FileEvents) -> None:
        events.watch([str(path)])
        path.unlink()
        folder.rmdir()
        await until(events, lambda: not events.works)
        folder.mkdir()
        events.watch([str(path)])
        assert events.works
        path.write_text("2")
        await until(events, lambda: not events.is_writing)

    run(test)


def test_where_there_are_no_notices_every_wait_takes_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing:
        @staticmethod
        def inotify_init1(_flags: int) -> int:
            return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Nothing())
    path = tmp_path / "a"

    async def test(events: FileEvents) -> None:
        events.watch([str(path)])
        assert not events.works
        path.write_text("1")
        assert not await events.wait(0.01)

    run(test)


def test_a_watch_that_is_refused_leaves_the_rest_at_work(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")

    async def test(events: FileEvents) -> None:
        events.watch([str(tmp_path / "a"), str(tmp_path / "none" / "b")])
        assert not events.works, "one folder is not there"
        (tmp_path / "a").write_text("2")
        assert await events.wait(LONG)

    run(test)
