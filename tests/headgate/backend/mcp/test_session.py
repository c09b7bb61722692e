"""MCP sessions."""

from __future__ import annotations

import asyncio

import pytest

from headgate.backend.mcp.failure import McpFailure
from headgate.backend.mcp.session import SessionIds, Sessions

IDS = SessionIds(bytes(32))


class Server:
    dead = False
    stopped = 0

    async def stop(self) -> None:
        self.stopped += 1
        self.dead = True


def test_an_id_tells_its_owner_and_cannot_be_guessed() -> None:
    found = {IDS.new(3) for _ in range(100)}
    assert len(found) == 100
    assert {IDS.owner(item) for item in found} == {3}
    assert all("!" <= c <= "~" for item in found for c in item)


@pytest.mark.parametrize("text", ["", "abc", "-x", "x-1", "99999-x", "1.0-x"])
def test_what_is_no_id_of_ours_has_no_owner(text: str) -> None:
    assert IDS.owner(text) is None


def test_an_id_of_another_key_or_a_changed_one_is_none_of_ours() -> None:
    found = IDS.new(1)
    assert SessionIds(b"k" * 32).owner(found) is None
    changed = ("A" if found[0] != "A" else "B") + found[1:]
    assert IDS.owner(changed) is None


def test_idle_sessions_end_busy_and_used_ones_stay() -> None:
    now = [0.0]

    async def run() -> None:
        found = Sessions(0, 0.05, IDS, clock=lambda: now[0])
        idle, busy, used = (found.add(Server()) for _ in range(3))  # type: ignore[arg-type]
        busy.busy = 1
        now[0] = 10.0
        assert found.find(used.id) is used
        await asyncio.sleep(0.15)
        assert found.find(idle.id) is None
        assert idle.server.stopped == 1  # type: ignore[attr-defined]
        assert found.find(busy.id) is busy
        assert found.find(used.id) is used
        await found.aclose()
        assert len(found) == 0

    asyncio.run(run())


def test_a_dead_server_s_session_is_not_found() -> None:
    async def run() -> None:
        found = Sessions(0, 60, IDS)
        server = Server()
        session = found.add(server)  # type: ignore[arg-type]
        server.dead = True
        assert found.find(session.id) is None
        found.forget(server)  # type: ignore[arg-type]
        assert len(found) == 0
        await found.aclose()

    asyncio.run(run())


def test_a_full_table_is_a_503_and_sessions_that_start_count() -> None:
    async def run() -> None:
        found = Sessions(0, 60, IDS, cap=2)
        found.add(Server())  # type: ignore[arg-type]
        with found.room():
            with pytest.raises(McpFailure) as failure, found.room():
                pass
            assert failure.value.status == 503
        with found.room():
            found.add(Server())  # type: ignore[arg-type]
        with pytest.raises(McpFailure), found.room():
            pass
        await found.aclose()

    asyncio.run(run())


def test_idle_time_begins_when_the_last_use_ends() -> None:
    now = [0.0]

    async def run() -> None:
        found = Sessions(0, 0.05, IDS, clock=lambda: now[0])
        session = found.add(Server())  # type: ignore[arg-type]
        with found.in_use(session):
            now[0] = 100.0
        await asyncio.sleep(0.15)
        assert found.find(session.id) is session
        now[0] = 200.0
        await asyncio.sleep(0.15)
        assert found.find(session.id) is None
        await found.aclose()

    asyncio.run(run())
