"""All libraries of a process have their turn, a few in each step."""

from __future__ import annotations

import pytest

from headgate.server import library_pages
from headgate.server.library_pages import LIBRARIES_PER_STEP, drop_steps
from headgate_engine.library_pages import drop_library_pages


@pytest.mark.parametrize("every", [0, 1, LIBRARIES_PER_STEP, LIBRARIES_PER_STEP + 1, 5 * LIBRARIES_PER_STEP])
def test_each_library_has_its_turn(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []

    def drop(first: int, count: int) -> int:
        found = range(first, min(first + count, every))
        turns.extend(found)
        return len(found)

    monkeypatch.setattr(library_pages, "drop_library_pages", drop)
    steps = sum(1 for _ in drop_steps())
    assert turns == list(range(every))
    assert steps == every // LIBRARIES_PER_STEP


def test_it_ends_with_the_last_library_of_this_process() -> None:
    every = drop_library_pages(0, 1_000_000)
    assert every > LIBRARIES_PER_STEP
    assert sum(1 for _ in drop_steps()) == every // LIBRARIES_PER_STEP
