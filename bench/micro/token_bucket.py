"""headgate_engine.limit.bucket against a bucket in Python; ours is exact across processes, the oracle in one."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

from bench.micro.timing import Row, compare, same, show
from headgate_engine.limit.bucket import TokenBucket
from headgate_engine.shared.segment import Segment

SECOND = 1_000_000_000


class Plain:
    """The rule of the bucket under a lock."""

    def __init__(self, max_tokens: int, tokens_per_fill: int, fill_interval_ns: int, created_ns: int) -> None:
        self.max_tokens = max_tokens
        self.tokens_per_fill = tokens_per_fill
        self.fill_interval_ns = fill_interval_ns
        self.created = created_ns
        self.ticks = 0
        self.level = max_tokens
        self.lock = threading.Lock()

    def take_at(self, n: int, now_ns: int) -> tuple[bool, int]:
        with self.lock:
            ticks = (now_ns - self.created) // self.fill_interval_ns
            if ticks > self.ticks:
                self.level = min(self.max_tokens, self.level + (ticks - self.ticks) * self.tokens_per_fill)
                self.ticks = ticks
            allowed = n <= self.level
            if allowed:
                self.level -= n
            return allowed, self.level


def rows() -> Iterator[Row]:
    segment = Segment.create()
    numbers = (1000, 10, SECOND, SECOND)
    ours, oracle = TokenBucket(segment, b"check", *numbers), Plain(*numbers)
    for step in range(3000):
        now = SECOND + step * 7_000_000
        allowed, _, remaining, _ = ours.take_at(1, now)
        expected, level = oracle.take_at(1, now)
        same((allowed, remaining if allowed else 0), (expected, level if expected else 0))
    deep = 1 << 40
    ours, oracle = TokenBucket(segment, b"timed", deep, 1, SECOND, SECOND), Plain(deep, 1, SECOND, SECOND)
    yield compare("bucket: take a token", lambda: ours.take_at(1, SECOND), lambda: oracle.take_at(1, SECOND),
                  against="integers under a lock")  # fmt: skip
    clock, other = itertools.count(2 * SECOND, SECOND // 100), itertools.count(2 * SECOND, SECOND // 100)
    yield compare("bucket: take while time goes on", lambda: ours.take_at(1, next(clock)),
                  lambda: oracle.take_at(1, next(other)), against="integers under a lock")  # fmt: skip


if __name__ == "__main__":
    show(rows())
