"""A token bucket in Python's unbounded integers, one tick after the other where that is cheap."""

from __future__ import annotations

from dataclasses import dataclass

SECOND_NS = 1_000_000_000
Answer = tuple[bool, int, int, int]


@dataclass
class ExactBucket:
    """`level` is exact at `ticks` whole intervals after `created_ns`."""

    max_tokens: int
    tokens_per_fill: int
    fill_interval_ns: int
    created_ns: int
    level: int = 0
    ticks: int = 0

    def __post_init__(self) -> None:
        self.level = self.max_tokens

    def _advance(self, now_ns: int) -> int:
        """Pay out what is due; returns the ns to the next tick."""
        passed = max(0, now_ns - self.created_ns)
        due = max(0, passed // self.fill_interval_ns - self.ticks)
        if due <= 100:
            for _ in range(due):
                self.level = min(self.max_tokens, self.level + self.tokens_per_fill)
        else:
            self.level = min(self.max_tokens, self.level + due * self.tokens_per_fill)
        self.ticks += due
        return self.fill_interval_ns - passed % self.fill_interval_ns

    def ask(self, n: int, now_ns: int, take: bool) -> Answer:
        to_tick = self._advance(now_ns)
        if n < 1 or n > self.max_tokens:
            return False, self.max_tokens, 0, 0
        if n > self.level:
            return False, self.max_tokens, 0, to_tick // SECOND_NS
        left = self.level - n if take else self.level
        self.level = left
        return True, self.max_tokens, left, to_tick // SECOND_NS

    def settle(self, n: int, now_ns: int) -> None:
        self._advance(now_ns)
        self.level = min(self.max_tokens, max(0, self.level + n))
