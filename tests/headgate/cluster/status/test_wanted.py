"""Which statuses are others than before."""

from __future__ import annotations

from headgate.cluster.snapshot import GATEWAY, HTTP_ROUTE, GroupKind, Json, ObjectKey
from headgate.cluster.status.wanted import WantedStatuses
from headgate.cluster.translate.conditions import ObjectStatus


def status(name: str, content: Json, kind: GroupKind = HTTP_ROUTE) -> ObjectStatus:
    return ObjectStatus(kind, ObjectKey("shop", name), content)


def test_only_differences_are_told() -> None:
    wanted = WantedStatuses()
    first = [status("a", {"parents": [1]}), status("b", {"parents": [2]})]
    assert wanted.changed(first) == first
    assert wanted.changed([status("a", {"parents": [1]}), first[1]]) == []
    assert wanted.changed([first[0], status("b", {"parents": [3]})]) == [status("b", {"parents": [3]})]


def test_of_what_nothing_is_said_any_more_the_entries_are_emptied() -> None:
    wanted = WantedStatuses()
    wanted.changed([status("a", {"parents": [1]}), status("p", {"ancestors": [1]}), status("g", {"conditions": []}, GATEWAY)])
    found = wanted.changed([])
    assert sorted(found) == [status("g", {}, GATEWAY), status("a", {"parents": []}), status("p", {"ancestors": []})]
    assert wanted.changed([]) == []
