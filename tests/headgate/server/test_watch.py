"""Noticing changed files."""

from __future__ import annotations

import asyncio
from pathlib import Path

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


def test_a_burst_of_writes_is_one_change(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0")
    seen = 0

    async def watch() -> None:
        nonlocal seen
        async for _ in changes(lambda: [str(path)], 0.4):
            seen += 1

    async def run() -> None:
        task = asyncio.get_running_loop().create_task(watch())
        await asyncio.sleep(0.01)
        for number in range(6):
            path.write_text("x" * number)
            await asyncio.sleep(0.02)
        async with asyncio.timeout(60):
            while not seen:  # noqa: ASYNC110 - it has no event to wait for
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.9)
        task.cancel()

    asyncio.run(run())
    assert seen == 1
