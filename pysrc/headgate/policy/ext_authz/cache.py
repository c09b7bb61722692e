"""Decisions that are kept for requests with equal keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from headgate.policy.ext_authz.decision import AuthzDecision
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.keyed import KeyedValues
from headgate_engine.expr.program import Program
from headgate_engine.expr.values import Duration, EvaluationError, Timestamp, Uint

# In the last part of the time of a decision, one request renews it while others still use it.
RENEWED_PART: Final = 10
RENEWED_S: Final = 5.0
# Decisions that carry more are not kept: a table of 10,000 of them has to stay small.
MAX_REPLY_BYTES: Final = 4096
NS_PER_S: Final = 1_000_000_000

Key = tuple[object, ...]


class DecisionCache(KeyedValues):
    """The decisions of one policy in one worker. The least recently used one is dropped first.

    `clock`: monotonic seconds, None for those of the system; `now`: seconds since the epoch.
    """

    def __init__(
        self,
        keys: Sequence[Program],
        ttl: Program,
        max_entries: int,
        clock: Callable[[], float] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(keys, max_entries, clock)
        self._ttl = ttl
        self._now = now

    def put(self, key: Key, ctx: RequestContext, decision: AuthzDecision) -> None:
        """Store a decision that has been applied to the request, for as long as `ttl` says."""
        seconds = self._seconds(ctx)
        if seconds is None or seconds <= 0:
            self.drop(key)
            return
        if decision.reply is not None and len(decision.reply.body) > MAX_REPLY_BYTES:
            return
        self.keep(key, decision, seconds, min(seconds / RENEWED_PART, RENEWED_S))

    def _seconds(self, ctx: RequestContext) -> float | None:
        try:
            value = self._ttl.evaluate(ctx)
        except EvaluationError:
            return None
        if isinstance(value, Duration):
            return value.ns / NS_PER_S
        if isinstance(value, Timestamp):
            return value.ns / NS_PER_S - self._now()
        if isinstance(value, Uint):
            return value.value - self._now()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value - self._now()
        return None
