"""Pauses between tries of one task."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

LEAST_SECONDS: Final = 0.1
MOST_SECONDS: Final = 15.0
GROWTH: Final = 2.0
_MOST_TURNS: Final = 32


class Pauses:
    """Seconds to wait after each failure in a row, twice as long each time, and at random up to a half less.

    `chance`: 0 to 1.
    """

    def __init__(self, chance: Callable[[], float] = random.random, most: float = MOST_SECONDS) -> None:
        self._chance = chance
        self._most = most
        self._turns = 0

    def next(self) -> float:
        seconds = min(LEAST_SECONDS * GROWTH**self._turns, self._most)
        self._turns = min(self._turns + 1, _MOST_TURNS)
        return seconds * (1 - self._chance() / 2)

    def reset(self) -> None:
        """A try has succeeded."""
        self._turns = 0
