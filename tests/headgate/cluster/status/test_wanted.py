"""Which statuses are others than before."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from headgate.cluster.snapshot import GATEWAY, HTTP_ROUTE, GroupKind, Json, ObjectKey
from headgate.cluster.status.wanted import WantedStatuses
from headgate.cluster.translate.conditions import ObjectStatus


def status(name: str, content: Json, kind: GroupKind = HTTP_ROUTE) -> ObjectStatus:
    return ObjectStatus(kind, ObjectKey("shop", name), content)


def test_only_differences_are_told() -> None:
    wanted = WantedStatuses()
    first = [status("a", {"parents": [1]}), status("b", {"parents": [2]})]
    assert wanted.changed({"x": first}) == first
    assert wanted.changed({"x": [status("a", {"parents": [1]}), first[1]]}) == []
    assert wanted.changed({"x": [first[0], status("b", {"parents": [3]})]}) == [status("b", {"parents": [3]})]


def test_of_what_nothing_is_said_any_more_the_entries_are_emptied() -> None:
    wanted = WantedStatuses()
    wanted.changed({"x": [status("a", {"parents": [1]}), status("p", {"ancestors": [1]})], "y": [status("g", {"conditions": []}, GATEWAY)]})
    found = wanted.changed({"x": []})
    assert sorted(found) == [status("g", {}, GATEWAY), status("a", {"parents": []}), status("p", {"ancestors": []})]
    assert wanted.changed({}) == []


@pytest.mark.parametrize("names", ["xy", "yx"])
def test_what_goes_to_another_group_is_not_gone(names: str) -> None:
    wanted = WantedStatuses()
    one = status("a", {"parents": [1]})
    wanted.changed({name: [one] if name == "x" else [] for name in names})
    assert wanted.changed({name: [one] if name == "y" else [] for name in names}) == []
    assert wanted.changed({name: [] for name in names}) == [status("a", {"parents": []})]


def test_groups_that_are_the_same_are_not_looked_through() -> None:
    wanted = WantedStatuses()
    many = [status(f"r{number}", {"parents": [number]}) for number in range(1000)]
    wanted.changed({"many": many, "few": [status("a", {"parents": [1]})]})
    assert wanted.changed({"many": many, "few": [status("a", {"parents": [2]})]}) == [status("a", {"parents": [2]})]
    assert wanted.compared == 1


def compared_one_by_one(before: Iterable[ObjectStatus], after: Iterable[ObjectStatus]) -> list[ObjectStatus]:
    """What differs between all statuses of two translations."""
    known, now = ({one[:2]: one for one in found} for found in (before, after))
    found = [one for about, one in now.items() if about not in known or known[about].content != one.content]
    return found + [status(about[1].name, {"parents": []}, about[0]) for about in known.keys() - now.keys()]


@pytest.mark.parametrize("seed", range(20))
def test_it_is_as_if_all_were_compared(seed: int) -> None:
    chance = random.Random(seed)
    wanted = WantedStatuses()
    groups: dict[str, list[ObjectStatus]] = {}
    for _ in range(60):
        before = [one for group in groups.values() for one in group]
        places = {one.key.name: name for name, group in groups.items() for one in group}
        contents = {one.key.name: one.content for one in before}
        for _ in range(chance.randint(0, 3)):
            name = f"r{chance.randrange(12)}"
            match chance.randrange(3):
                case 0:
                    places.pop(name, None)
                case 1:
                    places[name] = chance.choice("abc")
                case 2:
                    contents[name] = {"parents": [chance.randrange(3)]}
        fresh: dict[str, list[ObjectStatus]] = {name: [] for name in chance.sample("abc", chance.randint(2, 3)) if name in places.values()}
        for name, place in places.items():
            fresh.setdefault(place, []).append(status(name, contents.setdefault(name, {"parents": []})))
        # A group in which nothing has changed stays the same list, or is an equal one.
        groups = {name: groups[name] if groups.get(name) == found and chance.random() < 0.8 else found for name, found in fresh.items()}
        after = [one for group in groups.values() for one in group]
        assert sorted(wanted.changed(groups), key=str) == sorted(compared_one_by_one(before, after), key=str)
