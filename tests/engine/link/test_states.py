"""The states of a request as a table."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from headgate_engine.link.states import EVENTS, STATES, TRANSITIONS, step

README = Path(__file__).resolve().parents[3] / "engine" / "README.md"


def test_the_table_names_each_pair_once() -> None:
    pairs = [(state, event) for state, event, _ in TRANSITIONS]
    assert len(pairs) == len(set(pairs))
    assert {state for state, _, _ in TRANSITIONS} | {after for _, _, after in TRANSITIONS} == set(STATES)
    assert {event for _, event, _ in TRANSITIONS} == set(EVENTS)


def test_every_state_is_reached_from_the_first() -> None:
    reached, grown = {STATES[0]}, True
    while grown:
        more = {after for before, _, after in TRANSITIONS if before in reached} - reached
        grown = bool(more)
        reached |= more
    assert reached == set(STATES)


@pytest.mark.parametrize("state", [state for state in STATES if state != "DONE"])
def test_every_state_can_end(state: str) -> None:
    assert step(state, "FINISH") == "DONE"


@pytest.mark.parametrize("event", EVENTS)
def test_nothing_happens_to_a_request_that_is_done(event: str) -> None:
    assert step("DONE", event) is None


@pytest.mark.parametrize("state", ["TAKEN", "RESPONDING", "RESPONDING_GUARDS", "TUNNEL", "DONE"])
def test_nothing_is_tried_again_once_an_answer_is_due_to_the_client(state: str) -> None:
    assert step(state, "RETRY") is None


@pytest.mark.parametrize("seed", range(50))
def test_random_events_follow_the_table_and_end(seed: int) -> None:
    listed = {(before, event): after for before, event, after in TRANSITIONS}
    chance = random.Random(seed)
    state = STATES[0]
    for _ in range(500):
        event = chance.choice(EVENTS[:-1])
        after = step(state, event)
        assert after == listed.get((state, event))
        if after is not None:
            committed = STATES.index(state) >= STATES.index("TAKEN")
            assert not committed or STATES.index(after) > STATES.index("TAKEN"), "no way back from an answer"
            state = after
    assert step(state, "FINISH") == "DONE"


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        step("NOWHERE", "FINISH")


def test_the_documented_diagram_is_this_table() -> None:
    """FINISH, which every state takes, is left out."""
    lines = ["stateDiagram-v2", "    [*] --> RUNNING"]
    lines += [f"    {before} --> {after}: {event}" for before, event, after in TRANSITIONS if event != "FINISH"]
    diagram = "\n".join([*lines, "    DONE --> [*]"])
    assert f"```mermaid\n{diagram}\n```" in README.read_text()
