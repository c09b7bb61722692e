"""Statuses with this controller's part in them."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.cluster.snapshot import Json
from headgate.cluster.status.merge import MOST_ENTRIES, conditions, emptied, merged

OWN = "headgate.dev/headgate"
NOW = "2026-01-02T00:00:00Z"
BEFORE = "2026-01-01T00:00:00Z"


def condition(type_: str = "Accepted", status: str = "True", since: str | None = None, **more: Any) -> Json:
    found = {"type": type_, "status": status, "reason": "R", "message": "m", "observedGeneration": 1, **more}
    return found if since is None else {**found, "lastTransitionTime": since}


def parent(name: str, controller: str = OWN, since: str | None = None, **more: Any) -> Json:
    return {"parentRef": {"name": name}, "controllerName": controller, "conditions": [condition(since=since, **more)]}


def ancestor(name: str, controller: str = OWN) -> Json:
    return {"ancestorRef": {"name": name, "group": "g"}, "controllerName": controller, "conditions": [condition()]}


def test_a_condition_has_the_time_when_its_status_changed() -> None:
    assert conditions([], [condition()], NOW) == [condition(since=NOW)]
    assert conditions([condition(since=BEFORE)], [condition(message="n")], NOW) == [condition(since=BEFORE, message="n")]
    assert conditions([condition(since=BEFORE)], [condition(status="False")], NOW) == [condition(status="False", since=NOW)]


def test_conditions_of_other_programs_are_kept_and_own_old_ones_are_not() -> None:
    known = [condition("Theirs", since=BEFORE), condition("Attached", since=BEFORE)]
    assert conditions(known, [condition()], NOW) == [condition(since=NOW), condition("Theirs", since=BEFORE)]


def test_there_are_eight_conditions_at_most_and_ours_come_first() -> None:
    theirs = [condition(f"T{number}", since=BEFORE) for number in range(8)]
    found = conditions(theirs, [condition(), condition("Programmed")], NOW)
    assert [one["type"] for one in found] == ["Accepted", "Programmed", *(f"T{number}" for number in range(6))]


def test_nothing_is_written_that_is_there() -> None:
    status = {"conditions": [condition(since=BEFORE)], "addresses": [{"value": "a"}], "theirs": 1,
              "listeners": [{"name": "web", "attachedRoutes": 1, "conditions": [condition(since=BEFORE)]}]}  # fmt: skip
    wanted = {"conditions": [condition()], "addresses": [{"value": "a"}],
              "listeners": [{"name": "web", "attachedRoutes": 1, "conditions": [condition()]}]}  # fmt: skip
    assert merged(status, wanted, NOW) == {}
    assert merged({}, {"addresses": [], "parents": []}, NOW) == {}
    wanted["listeners"][0]["attachedRoutes"] = 2  # type: ignore[index]
    written = merged(status, wanted, NOW)
    assert list(written) == ["listeners"]
    assert written["listeners"][0]["conditions"] == [condition(since=BEFORE)]


def test_entries_of_other_controllers_stay_where_they_are() -> None:
    status = {"parents": [parent("old", since=BEFORE), parent("a", "other", since=BEFORE), parent("b", since=BEFORE)]}
    wanted = {"parents": [parent("new"), parent("b", status="False")]}
    assert merged(status, wanted, NOW)["parents"] == [
        parent("a", "other", since=BEFORE), parent("b", status="False", since=NOW), parent("new", since=NOW),
    ]  # fmt: skip


def test_what_is_no_longer_ours_to_say_is_taken_away() -> None:
    status = {"parents": [parent("a", "other", since=BEFORE), parent("b", since=BEFORE)]}
    content = emptied(status)
    assert content == {"parents": []}
    assert merged(status, content, NOW) == {"parents": [parent("a", "other", since=BEFORE)]}
    assert emptied({"parents": [parent("a", "other")]}) is None
    assert emptied({"conditions": [condition()]}) is None


@pytest.mark.parametrize("theirs", [0, 3, 15, 16])
def test_there_are_sixteen_ancestors_at_most_and_the_last_says_what_is_left_out(theirs: int) -> None:
    status = {"ancestors": [ancestor(f"t{number}", "other") for number in range(theirs)]}
    found = merged(status, {"ancestors": [ancestor(f"o{number}") for number in range(20)]}, NOW).get("ancestors", status["ancestors"])
    assert len(found) == MOST_ENTRIES["ancestors"]
    assert found[:theirs] == status["ancestors"]
    if theirs < 16:
        assert found[-1]["ancestorRef"]["name"] == "StatusSummary"
        assert found[-1]["conditions"][0]["message"] == f"{20 - (16 - theirs) + 1} more entries are left out"


def test_parents_beyond_the_limit_are_left_out() -> None:
    assert len(merged({}, {"parents": [parent(str(number)) for number in range(40)]}, NOW)["parents"]) == MOST_ENTRIES["parents"]


def test_an_entry_without_a_controller_is_ours_if_it_is_about_what_we_decide() -> None:
    """Definitions of InferencePools that are older than the name of a controller do not store it."""

    def nameless(name: str, **more: Any) -> Json:
        return {key: one for key, one in parent(name, since=BEFORE, **more).items() if key != "controllerName"}

    wanted = {"parents": [parent("a")]}
    assert merged({"parents": [nameless("a"), nameless("theirs")]}, wanted, NOW) == {}
    # What was written twice is there once.
    assert merged({"parents": [nameless("a"), nameless("a")]}, wanted, NOW) == {"parents": [nameless("a")]}
    changed = merged({"parents": [nameless("theirs"), nameless("a", status="False")]}, wanted, NOW)
    assert changed == {"parents": [nameless("theirs"), parent("a", since=NOW)]}
