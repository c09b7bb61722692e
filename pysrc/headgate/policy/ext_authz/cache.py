"""Decisions that are kept for requests with equal keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from headgate.document.lazy_dataclass import dataclass
from headgate.policy.ext_authz.decision import AuthzDecision
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program
from headgate_engine.expr.values import Duration, EvaluationError, Timestamp, Uint

# In the last part of the time of a decision, one request renews it while others still use it.
RENEWED_PART: Final = 10
RENEWED_S: Final = 5.0
# Decisions that carry more are not kept: a table of 10,000 of them has to stay small.
MAX_REPLY_BYTES: Final = 4096
MAX_KEY_LENGTH: Final = 4096
NS_PER_S: Final = 1_000_000_000

Key = tuple[object, ...]


@dataclass(slots=True)
class CachedDecision:
    """A decision, the monotonic seconds until which it is good, and from when it is renewed."""

    decision: AuthzDecision
    until: float
    renew: float


class DecisionCache:
    """The decisions of one policy in one worker. The least recently used one is dropped first.

    `clock`: monotonic seconds; `now`: seconds since the epoch.
    """

    def __init__(
        self,
        keys: Sequence[Program],
        ttl: Program,
        max_entries: int,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._programs = tuple(keys)
        self._ttl = ttl
        self._most = max_entries
        self._clock = clock
        self._now = now
        self._kept: dict[Key, CachedDecision] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def key(self, ctx: RequestContext) -> Key | None:
        """Return the key of a request, None if it has none: an expression fails or gives no scalar."""
        found: list[object] = []
        length = 0
        for program in self._programs:
            try:
                value = program.evaluate(ctx)
            except EvaluationError:
                return None
            if isinstance(value, str | bytes):
                length += len(value)
            elif not isinstance(value, bool | int | float | Uint | Duration | Timestamp | None):
                return None
            # 1, 1.0 and true are equal in Python.
            found.append((type(value).__name__, value))
        return tuple(found) if found and length <= MAX_KEY_LENGTH else None

    def get(self, key: Key) -> AuthzDecision | None:
        """Return a decision that is still good. None: the caller asks the service, and stores what it says."""
        found = self._kept.pop(key, None)
        if found is None:
            return None
        now = self._clock()
        if now >= found.until:
            return None
        self._kept[key] = found
        if now >= found.renew:
            # Others use it meanwhile, and until it ends if this attempt fails.
            found.renew = found.until
            return None
        return found.decision

    def put(self, key: Key, ctx: RequestContext, decision: AuthzDecision) -> None:
        """Store a decision that has been applied to the request, for as long as `ttl` says."""
        seconds = self._seconds(ctx)
        if seconds is None or seconds <= 0:
            self._kept.pop(key, None)
            return
        if decision.reply is not None and len(decision.reply.body) > MAX_REPLY_BYTES:
            return
        self._kept.pop(key, None)
        while len(self._kept) >= self._most:
            del self._kept[next(iter(self._kept))]
        now = self._clock()
        margin = min(seconds / RENEWED_PART, RENEWED_S)
        self._kept[key] = CachedDecision(decision, now + seconds, now + seconds - margin)

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
