"""Parts of a configuration, delivered one by one."""

from __future__ import annotations

import json
import random
from typing import Any

from headgate.config.delivered import DeliveredPart, DeliveredParts, bind_host, written
from headgate.document.nodes import plain
from headgate.document.read import read


def part(place: str, value: dict[str, Any], parent: str = "", order: int = 0) -> DeliveredPart:
    return DeliveredPart(place, parent, ((0, order),), written(json.dumps(value, ensure_ascii=False)))


def said(parts: DeliveredParts, file: dict[str, Any] | None = None) -> Any:
    return plain(read(parts.text(file or {}).text, "file", {}))


BIND = {"bind/1": part("binds", {"port": 1})}
LISTENER = {"listener/a": part("listeners", {"name": "a"}, "bind/1")}
ROUTE = {"route/x": part("routes", {"name": "x"}, "listener/a")}


def test_parts_stand_in_their_lists_in_order() -> None:
    parts = DeliveredParts()
    others = {f"route/{n}": part("routes", {"name": n}, "listener/a", order) for n, order in (("b", 2), ("c", 1))}
    parts.change({**others, **ROUTE, **LISTENER, **BIND, "backend/q": part("backends", {"name": "q"})})
    assert said(parts, {"config": {"a": 1}, "backends": [{"name": "own"}]}) == {
        "config": {"a": 1},
        "backends": [{"name": "own"}, {"name": "q"}],
        "binds": [{"port": 1, "listeners": [{"name": "a", "routes": [{"name": "x"}, {"name": "c"}, {"name": "b"}]}]}],
    }


def test_every_line_is_known_by_its_part() -> None:
    parts = DeliveredParts()
    parts.change({**ROUTE, **LISTENER, **BIND})
    text, lines = parts.text({"config": {}})
    assert list(zip(text.splitlines(), lines[1:], strict=True)) == [
        ('"config": {}', ""),
        ('"binds":', ""),
        ('- "port": 1', "bind/1"),
        ('  "listeners":', "bind/1"),
        ('  - "name": "a"', "listener/a"),
        ('    "routes":', "listener/a"),
        ('    - {"name": "x"}', "route/x"),
    ]


def test_a_dollar_of_a_part_names_no_variable_and_that_of_the_file_does() -> None:
    parts = DeliveredParts()
    text = "${X} $X \u2028\x85 \x7f \u00e9 \U0001f600 \" \\ \n\t"
    parts.change({"b": part("backends", {"$X": text}), **BIND, "listener/a": part("listeners", {"n": "$X"}, "bind/1")})
    found = plain(read(parts.text({"config": "$X"}).text, "file", {"X": "1"}))
    assert found == {"config": "1", "backends": [{"$X": text}], "binds": [{"port": 1, "listeners": [{"n": "$X"}]}]}


def test_a_refused_part_is_what_it_was_and_then_left_out() -> None:
    parts = DeliveredParts()
    parts.change({"b": part("backends", {"v": 1}), "c": part("backends", {"v": 5})})
    parts.settle()
    parts.change({"b": part("backends", {"v": 2})})
    parts.refuse({"b": "two"})
    assert said(parts)["backends"] == [{"v": 1}, {"v": 5}]
    parts.refuse({"b": "one"})
    assert said(parts)["backends"] == [{"v": 5}]
    assert parts.refused == {"b": "two"}
    parts.settle()
    parts.change({"b": part("backends", {"v": 3})})
    assert said(parts)["backends"] == [{"v": 3}, {"v": 5}]
    assert parts.refused == {}
    # What was refused is not good, and what was good before it is.
    parts.refuse({"b": "three"})
    assert said(parts)["backends"] == [{"v": 1}, {"v": 5}]


def test_refused_parts_are_tried_again_when_something_changes_that_they_may_depend_on() -> None:
    parts = DeliveredParts()
    parts.change({**ROUTE, **LISTENER, **BIND})
    parts.refuse({"route/x": "no backend"})
    parts.change({"route/y": part("routes", {"name": "y"}, "listener/a")})
    assert list(parts.refused) == ["route/x"]
    parts.change({"b": part("backends", {})})
    assert parts.refused == {}
    parts.refuse({"route/x": "no backend"})
    parts.change({}, ["b"])
    assert parts.refused == {}


def test_a_part_whose_parent_is_gone_is_refused() -> None:
    parts = DeliveredParts()
    parts.change({**ROUTE, **LISTENER, **BIND})
    parts.refuse({"listener/a": "bad"})
    assert said(parts) == {"binds": [{"port": 1}]}
    assert set(parts.refused) == {"listener/a", "route/x"}
    parts.change({**LISTENER})
    assert said(parts)["binds"][0]["listeners"][0]["routes"] == [{"name": "x"}]


def test_a_change_that_fails_as_a_whole_is_taken_back() -> None:
    parts = DeliveredParts()
    parts.change({"b": part("backends", {"v": 1})})
    parts.settle()
    parts.change({"b": part("backends", {"v": 2}), "c": part("backends", {"v": 3})})
    assert parts.refuse_unsettled("no")
    assert said(parts)["backends"] == [{"v": 1}]
    assert not parts.refuse_unsettled("no")


def test_ports_lead_to_their_parts() -> None:
    parts = DeliveredParts()
    parts.change({**BIND, "bind/2": part("binds", {"port": 2})})
    assert parts.binds_at([2]) == ["bind/2"]


def test_any_sequence_of_changes_says_what_its_last_state_says() -> None:
    chance = random.Random(7)
    for _ in range(200):
        parts, state = DeliveredParts(), dict[str, DeliveredPart]()
        for _ in range(30):
            new = {
                f"k{chance.randrange(8)}": part(
                    chance.choice(("backends", "routes")), {"v": chance.randrange(99)}, order=chance.randrange(3)
                )
                for _ in range(chance.randrange(3))
            }
            gone = [key for key in state if chance.random() < 0.2 and key not in new]
            for key in gone:
                del state[key]
            state |= new
            parts.change(new, gone)
            if chance.random() < 0.3:
                parts.refuse({key: "no" for key in state if chance.random() < 0.3})
            if chance.random() < 0.5:
                parts.settle()
        # A change of what all may depend on: refused parts are shown again.
        parts.change({"last": part("backends", {})})
        fresh = DeliveredParts()
        fresh.change({**state, "last": part("backends", {})})
        assert parts.text({}) == fresh.text({})


def test_ports_may_listen_on_one_address() -> None:
    assert bind_host({"BIND_ADDRESS": "127.0.0.9", "XDS_ADDRESS": "http://x"}) == "127.0.0.9"
    assert bind_host({"BIND_ADDRESS": "127.0.0.9"}) is None
    assert bind_host({"XDS_ADDRESS": "http://x"}) is None
