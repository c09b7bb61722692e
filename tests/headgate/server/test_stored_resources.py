"""Stored resources that other gateways change: every version is taken up, whatever else reads the database."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from headgate.config.resources import database
from headgate.config.resources.stored import StoredSnapshot
from headgate.ir.request_log import RequestLogStore
from headgate.server.stored_resources import ResourceKeeper
from headgate_engine.shared.segment import Segment

STORE = RequestLogStore(path="/nowhere/keys.db")


class Reloads:
    """A gateway whose reloads read what `versions` says in turn; None for one that fails."""

    def __init__(self, *versions: int | None) -> None:
        self.current: Any = SimpleNamespace(resources=StoredSnapshot())
        self.left = list(versions)

    async def reload(self) -> None:
        version = self.left.pop(0)
        # Meanwhile somebody asks for a resource that was stored after the reload has read.
        database._known[database._key(STORE)] = StoredSnapshot(9)
        if version is not None:
            self.current = SimpleNamespace(resources=StoredSnapshot(version))

    def see(self, *versions: int) -> None:
        """Let its keeper see these versions in the database, one after the other."""
        segment = Segment.create(state_bytes=1 << 20)

        async def main() -> None:
            keeper = ResourceKeeper(None, segment, lambda: self.current, self.reload)  # type: ignore[arg-type]
            for version in versions:
                await keeper._seen(version)

        try:
            asyncio.run(main())
        finally:
            database._known.pop(database._key(STORE), None)


def test_a_version_that_another_reader_saw_first_is_taken_up() -> None:
    gateway = Reloads(1, 9)
    gateway.see(1, 9, 9)
    assert (gateway.current.resources.version, gateway.left) == (9, [])


def test_a_reload_that_went_on_with_an_earlier_version_is_made_again() -> None:
    gateway = Reloads(0, 1)
    gateway.see(1, 1, 1)
    assert (gateway.current.resources.version, gateway.left) == (1, [])


def test_a_reload_that_failed_is_made_again_for_another_version_only() -> None:
    gateway = Reloads(None, 2)
    gateway.see(1, 1, 1, 2)
    assert (gateway.current.resources.version, gateway.left) == (2, [])
