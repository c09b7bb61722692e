"""MCP sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from headgate.backend.mcp.failure import McpFailure
from headgate.backend.mcp.session import OwnTally, SessionIds, SessionLimits, Sessions, owner_of

IDS = SessionIds(bytes(32))


class Server:
    dead = False
    stopped = 0
    released = 0

    def __init__(self) -> None:
        self.stopping = asyncio.Event()

    async def stop(self) -> None:
        self.stopping.set()
        self.stopped += 1
        self.dead = True

    async def release(self) -> None:
        self.released += 1


async def until(condition: Callable[[], object]) -> None:
    """Wait, however long a busy machine takes."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - it has no event to wait for
            await asyncio.sleep(0.01)


class Who:
    """What policies found out of who asks."""

    def __init__(
        self, jwt: dict[str, Any] | None = None, user: str | None = None, key: bytes | None = None
    ) -> None:
        self.jwt, self.basic_user, self.api_key_text = jwt, user, key
        self.api_key: dict[str, Any] | None = None
        self.dynamic: dict[str, Any] | None = None


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
        found = Sessions(0, IDS, SessionLimits(0.05, 100), clock=lambda: now[0])
        idle, busy, used = (found.add(Server()) for _ in range(3))  # type: ignore[arg-type]
        busy.busy = 1
        now[0] = 10.0
        assert found.find(used.id) is used
        await until(lambda: idle.server.stopped == 1)  # type: ignore[attr-defined]
        assert found.find(idle.id) is None
        assert found.find(busy.id) is busy
        assert found.find(used.id) is used
        await found.aclose()
        assert len(found) == 0

    asyncio.run(run())


def test_a_dead_server_s_session_is_not_found() -> None:
    async def run() -> None:
        found = Sessions(0, IDS, SessionLimits(60, 100))
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
        found = Sessions(0, IDS, SessionLimits(60, 2))
        found.add(Server())
        with found.room():
            with pytest.raises(McpFailure) as failure, found.room():
                pass
            assert failure.value.status == 503
        with found.room():
            found.add(Server())
        with pytest.raises(McpFailure), found.room():
            pass
        await found.aclose()

    asyncio.run(run())


def test_idle_time_begins_when_the_last_use_ends() -> None:
    now = [0.0]

    async def run() -> None:
        found = Sessions(0, IDS, SessionLimits(0.05, 100), clock=lambda: now[0])
        session = found.add(Server())
        with found.in_use(session):
            now[0] = 100.0
        await asyncio.sleep(0.15)
        assert found.find(session.id) is session
        now[0] = 200.0
        await until(lambda: len(found) == 0)
        assert found.find(session.id) is None
        await found.aclose()

    asyncio.run(run())


def test_a_session_is_its_owner_s_alone() -> None:
    async def run() -> None:
        found = Sessions(0, IDS, SessionLimits(60, 100))
        session = found.add(Server(), "ada")
        assert found.find(session.id, "ada") is session
        for other in ("bob", "", "ADA"):
            assert found.find(session.id, other) is None
        nobody = found.add(Server())
        assert found.find(nobody.id) is nobody
        assert found.find(nobody.id, "ada") is None
        await found.aclose()

    asyncio.run(run())


def test_who_owns() -> None:
    ada = {"iss": "https://a.test", "sub": "ada", "exp": 1}
    different = [
        owner_of(None),
        owner_of(Who(ada)),
        owner_of(Who({**ada, "sub": "bob"})),
        owner_of(Who({**ada, "iss": "https://b.test"})),
        owner_of(Who({"iss": "https://a.test", "client_id": "ada"})),
        owner_of(Who({"iss": "https://a.test", "client_id": "bob"})),
        owner_of(Who({"iss": "https://a.test"})),
        owner_of(Who(user="ada")),
        owner_of(Who(key=b"ada")),
        owner_of(Who(key=b"\xff")),
        owner_of(Who(ada, key=b"ada")),
    ]
    assert len(set(different)) == len(different)
    assert different[0] == owner_of(Who()) == ""
    assert owner_of(Who({**ada, "exp": 2, "scope": "more"})) == owner_of(Who(ada)), "a renewed token is the same subject's"
    assert "ada" not in owner_of(Who(key=b"ada"))


def test_resumable_sessions_make_room_for_others() -> None:
    async def run() -> None:
        tally = OwnTally()
        found = Sessions(0, IDS, SessionLimits(60, 2), tally=tally, resumable=True)
        first, second = Server(), Server()
        found.adopt("1", first)
        busy = found.adopt("2", second)
        assert found.find("1") is not None, "the longest unused one is the other now"
        with found.in_use(busy):
            found.adopt("3", Server())
            assert found.find("1") is None
            kept = found.find("3")
            assert kept is not None
            with found.in_use(kept):
                for wanted in (lambda: found.adopt("4", Server()), lambda: found.room().__enter__()):
                    with pytest.raises(McpFailure, match="too many sessions: 2 are in use"):
                        wanted()
        with found.room():
            assert len(found) == 1
        await asyncio.sleep(0)
        assert (first.stopped, first.released) == (0, 1)
        assert (second.stopped, tally.total) == (0, 1)
        await found.aclose()
        assert (len(found), tally.total) == (0, 0)

    asyncio.run(run())


def test_idle_resumable_sessions_are_let_go_of_but_not_ended() -> None:
    now = [0.0]

    async def run() -> None:
        found = Sessions(0, IDS, SessionLimits(0.05, 100), clock=lambda: now[0], resumable=True)
        server = Server()
        found.adopt("1", server)
        now[0] = 10.0
        await until(lambda: server.released == 1)
        assert len(found) == 0
        assert (server.stopped, server.released) == (0, 1)
        found.adopt("2", server)
        await found.aclose()
        assert (server.stopped, server.released) == (0, 2)
        found.adopt("3", server)
        await found.remove("3")
        assert server.stopped == 1
        await found.aclose()

    asyncio.run(run())


def test_the_cap_is_of_all_workers() -> None:
    async def run() -> None:
        tally = OwnTally()
        here, there = (Sessions(worker, IDS, SessionLimits(60, 2), tally=tally) for worker in (0, 1))
        # What others bring back is of no account.
        beside = Sessions(0, IDS, SessionLimits(60, 2), tally=tally, resumable=True)
        for number in range(3):
            beside.adopt(str(number), Server())
        await beside.aclose()
        session = here.add(Server())
        there.add(Server())
        for table in (here, there):
            with pytest.raises(McpFailure, match="too many sessions: 2 are open"), table.room():
                pass
        await here.remove(session.id)
        with there.room():
            pass
        here.limit(SessionLimits(60, 1))
        with pytest.raises(McpFailure, match="1 are open"), here.room():
            pass
        await here.aclose()
        await there.aclose()
        assert (tally.total, tally.living) == (0, 0)

    asyncio.run(run())


def test_the_cap_holds_for_those_of_one_worker_among_resumable_ones() -> None:
    async def run() -> None:
        tally = OwnTally()
        here, there = (Sessions(worker, IDS, SessionLimits(60, 2), tally=tally, resumable=True) for worker in (0, 1))
        first = here.add(Server())
        for number in range(5):
            there.adopt(str(number), Server())
        there.add(Server())
        for table in (here, there):
            # It shows only at the end that a session has to stay here.
            with pytest.raises(McpFailure, match="too many sessions: 2 are open"), table.room():
                table.add(Server())
        here.adopt("x", Server())
        await here.remove(first.id)
        there.add(Server())
        assert tally.living == 2
        await here.aclose()
        await there.aclose()
        assert tally.living == 0

    asyncio.run(run())


def test_sessions_of_one_worker_among_resumable_ones() -> None:
    """What no id can bring back is not let go of for others, and is ended when it is idle."""
    now = [0.0]

    async def run() -> None:
        tally = OwnTally()
        found = Sessions(0, IDS, SessionLimits(0.05, 2), clock=lambda: now[0], tally=tally, resumable=True)
        pinned, remote = Server(), Server()
        first = found.add(pinned)
        found.adopt("1", remote)
        second = found.add(Server())
        await asyncio.sleep(0)
        assert (remote.released, remote.stopped) == (1, 0)
        for wanted in (lambda: found.adopt("2", Server()), lambda: found.add(Server())):
            with pytest.raises(McpFailure, match="too many sessions: 2 are"):
                wanted()
        assert found.find(first.id) is first
        await found.remove(second.id)
        found.adopt("1", remote)
        now[0] = 10.0
        await until(lambda: pinned.stopped == 1 and remote.released == 2)
        assert (pinned.stopped, pinned.released) == (1, 0)
        assert (remote.stopped, remote.released) == (0, 2)
        assert tally.total == 0
        await found.aclose()

    asyncio.run(run())


def test_marked_ids_are_told_from_others() -> None:
    async def run() -> None:
        plain, prefixed = (Sessions(3, IDS, SessionLimits(60, 2)) for _ in range(2))
        prefixed.id_prefix = "gwb."
        theirs, ours = plain.add(Server()).id, prefixed.add(Server()).id
        assert ours.startswith("gwb.")
        assert not theirs.startswith("gwb.")
        assert (prefixed.owner(ours), prefixed.owner(theirs)) == (3, None)
        assert (plain.owner(ours), plain.owner(theirs)) == (None, 3)
        await plain.aclose()
        await prefixed.aclose()

    asyncio.run(run())


def test_an_id_may_say_what_a_successor_needs() -> None:
    async def run() -> None:
        sessions = Sessions(3, IDS, SessionLimits(60.0, 2))
        sessions.id_prefix = "gwb."
        first = Server()
        session = sessions.add(first, "ada", b"resume_token")
        assert sessions.owner(session.id) == 3
        successor = Sessions(3, IDS, SessionLimits(60.0, 2))
        successor.id_prefix = "gwb."
        assert successor.find(session.id, "ada") is None
        assert successor.resume_token(session.id) == b"resume_token"
        assert successor.resume_token(session.id[4:]) == b"", "an id of another kind of session"
        assert successor.resume_token(sessions.add(Server()).id) == b""
        assert successor.resume_token("gwb.nonsense") == b""
        server = Server()
        successor.restore(session.id, server, "ada")
        found = successor.find(session.id, "ada")
        assert found is not None
        assert found.server is server
        successor.tombstone(session.id)
        assert successor.resume_token(session.id) == b"", "it was ended"
        successor.add(Server())
        with pytest.raises(McpFailure):
            successor.restore("gwb.x", Server())
        await sessions.aclose()
        assert (first.stopped, first.released) == (0, 1), "its servers are not told that it is over"
        await successor.aclose()

    asyncio.run(run())


def test_an_idle_session_is_not_brought_back() -> None:
    async def run() -> None:
        now = [0.0]
        sessions = Sessions(0, IDS, SessionLimits(0.01, 10), clock=lambda: now[0])
        server = Server()
        session = sessions.add(server, "", b"resume_token")
        now[0] = 1.0
        async with asyncio.timeout(60):
            await server.stopping.wait()
        assert sessions.resume_token(session.id) == b""
        await sessions.aclose()

    asyncio.run(run())


def with_processes(tally: OwnTally, worker: int = 0, initialize_s: float = 60.0) -> Sessions:
    limits = SessionLimits(60, 100, processes=3, unfinished=2, initialize_s=initialize_s)
    found = Sessions(worker, IDS, limits, tally=tally)
    found.owns_processes = True
    return found


def test_sessions_that_begin_have_a_bound_of_their_own_in_all_workers() -> None:
    async def run() -> None:
        tally = OwnTally()
        here, there = (with_processes(tally, worker) for worker in (0, 1))
        with here.room():
            first = here.add(Server())
        with there.room(), pytest.raises(McpFailure, match="2 are not initialized") as refused, here.room():
            pass
        status, headers, body = refused.value.answer(b"7")
        assert (status, dict(headers)["retry-after"], dict(headers)["content-type"]) == (503, "10", "application/json")
        assert b'"id":7' in body.replace(b" ", b"")
        here.confirm(first)
        here.confirm(first)
        with here.room():
            second = there.add(Server())
        assert (tally.processes, tally.unfinished) == (2, 1)
        assert await there.remove(second.id)
        assert (tally.processes, tally.unfinished, tally.living, tally.total) == (1, 0, 1, 1)
        await asyncio.gather(here.aclose(), there.aclose())
        assert (tally.processes, tally.unfinished) == (0, 0)

    asyncio.run(run())


def test_processes_have_a_bound() -> None:
    async def run() -> None:
        tally = OwnTally()
        found = with_processes(tally)
        for _ in range(3):
            with found.room():
                found.confirm(found.add(Server()))
        with pytest.raises(McpFailure, match="too many processes: 3 sessions have one"), found.room():
            pass
        lasting = found.add(Server(), resume_token=b"x")
        await found.remove(lasting.id)
        with pytest.raises(McpFailure, match="too many processes"):
            found.restore(lasting.id, Server())
        found.forget(found.entries()[0].server)
        assert not found.restore(lasting.id, Server()).unfinished
        # Those without a process are counted by nobody.
        for _ in range(5):
            Sessions(0, IDS, SessionLimits(60, 100, 1, 1), tally=tally).add(Server())
        assert (tally.processes, tally.unfinished) == (3, 0)
        await found.aclose()

    asyncio.run(run())


def test_a_session_whose_client_does_not_come_back_ends() -> None:
    async def run() -> None:
        tally = OwnTally()
        found = with_processes(tally, initialize_s=0.01)
        left, kept, waiting = (found.add(Server()) for _ in range(3))
        for one in (left, kept):
            found.await_client(one)
            found.await_client(one)
        found.confirm(kept)
        await until(lambda: left.server.stopped)
        assert [one.id for one in found.entries()] == [kept.id, waiting.id], "nobody has answered that one"
        assert found.has_tombstone(left.id)
        assert (tally.processes, tally.unfinished) == (2, 1)
        await found.aclose()
        found.await_client(kept)
        assert kept.deadline is None

    asyncio.run(run())
