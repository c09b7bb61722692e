"""The table in which requests find their sessions."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_engine.mcp.sessions import SessionEntry, SessionTable, TargetSession


class Server:
    dead = False


def table_of(*names: str, ordered: bool = True) -> tuple[SessionTable, list[float]]:
    now = [0.0]
    table = SessionTable(lambda: now[0], ordered)
    for name in names:
        table.put(SessionEntry(name, Server(), now[0], ""))
    return table, now


def test_a_session_is_found_by_its_owner_alone_while_it_lives() -> None:
    table, now = table_of()
    session = SessionEntry("a", Server(), 0.0, "me")
    assert table.put(session)
    assert not table.put(session)
    now[0] = 7.0
    assert table.find("a") is None
    assert table.find("b", "me") is None
    assert session.used == 0.0
    assert table.find("a", "me") is session
    assert session.used == 7.0
    session.server.dead = True
    assert table.find("a", "me") is None
    assert ("a" in table, "b" in table, len(table)) == (True, False, 1)


def test_the_longest_unused_one_stands_first() -> None:
    table, _ = table_of("a", "b", "c")
    for name in ("a", "a", "b"):
        assert table.find(name) is not None
    assert [one.id for one in table.entries()] == ["c", "a", "b"]
    table.put(SessionEntry("d", Server(), 0.0, ""))
    assert table.find("b") is not None
    assert [one.id for one in table.entries()] == ["c", "a", "d", "b"]
    # One that was taken out and comes again stands where it came.
    assert table.take("b") is not None
    assert table.take("b") is None
    table.put(SessionEntry("b", Server(), 0.0, ""))
    table.put(SessionEntry("e", Server(), 0.0, ""))
    assert table.find("b") is not None
    assert [one.id for one in table.entries()] == ["c", "a", "d", "e", "b"]


def test_without_order_they_stay_as_they_came() -> None:
    table, _ = table_of("a", "b", ordered=False)
    assert table.find("a") is not None
    assert [one.id for one in table.entries()] == ["a", "b"]


def test_use_is_counted_and_its_end_is_noted() -> None:
    table, now = table_of("a")
    [session] = table.entries()
    table.begin_use(session)
    table.begin_use(session)
    now[0] = 3.0
    table.end_use(session)
    assert (session.busy, session.used) == (1, 3.0)


def test_a_name_at_a_target_may_change() -> None:
    there = TargetSession("s", "2025-03-26")
    assert (there.name, there.version) == ("s", "2025-03-26")
    there.name = there.version = None
    assert (there.name, there.version) == (None, None)


@pytest.mark.parametrize("bad", [None, 5, object()])
def test_wrong_types_are_refused(bad: Any) -> None:
    table, _ = table_of("a")
    for call in (table.find, table.begin_use, table.end_use, table.put, table.take):
        with pytest.raises(TypeError):
            call(bad)
    with pytest.raises(TypeError):
        SessionEntry(bad, Server(), 0.0, "")
    with pytest.raises(TypeError):
        SessionEntry("a", Server(), 0.0, bad)
