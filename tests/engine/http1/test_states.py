"""The state machine as data."""

from __future__ import annotations

from headgate_engine.http1.states import INPUTS, STATES, TRANSITIONS, step


def test_every_pair_not_listed_is_refused() -> None:
    listed = {(before, name): after for before, name, after in TRANSITIONS}
    for state in STATES:
        for name in INPUTS:
            assert step(state, name) == listed.get((state, name))


def test_no_pair_is_listed_twice() -> None:
    assert len({(before, name) for before, name, _ in TRANSITIONS}) == len(TRANSITIONS)


def test_every_state_can_be_reached_and_faults_are_final() -> None:
    reached = {"IDLE"}
    while True:
        more = {after for before, _, after in TRANSITIONS if before in reached} - reached
        if not more:
            break
        reached |= more
    assert reached == set(STATES)
    assert {after for before, _, after in TRANSITIONS if before == "ERROR"} == {"ERROR"}
