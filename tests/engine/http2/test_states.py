"""The state machines as data."""

from __future__ import annotations

import pytest

from headgate_engine.http2.states import MACHINES, step


@pytest.mark.parametrize("machine", MACHINES)
def test_every_pair_not_listed_is_refused(machine: str) -> None:
    states, inputs, transitions = MACHINES[machine]
    listed = {(before, name): after for before, name, after in transitions}
    assert len(listed) == len(transitions)
    for state in states:
        for name in inputs:
            assert step(machine, state, name) == listed.get((state, name))


@pytest.mark.parametrize("machine", MACHINES)
def test_every_state_can_be_reached_and_the_last_is_final(machine: str) -> None:
    states, _, transitions = MACHINES[machine]
    reached = {states[0]}
    for _ in states:
        reached |= {after for before, _, after in transitions if before in reached}
    assert reached == set(states)
    assert {after for before, _, after in transitions if before == states[-1]} <= {states[-1]}


def test_both_sides_of_a_stream_mirror_each_other() -> None:
    _, _, transitions = MACHINES["stream"]
    swap = {"HALF_CLOSED_LOCAL": "HALF_CLOSED_REMOTE", "HALF_CLOSED_REMOTE": "HALF_CLOSED_LOCAL"}
    mirrored = {
        (swap.get(before, before), name.replace("SEND", "x").replace("RECV", "SEND").replace("x", "RECV"), swap.get(after, after))
        for before, name, after in transitions
        if before != "CLOSED"
    }
    assert mirrored == {row for row in transitions if row[0] != "CLOSED"}
