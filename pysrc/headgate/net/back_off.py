"""Pauses between failed connects to the services that policies call."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final

# The first pause is short, because policies that fail closed refuse requests until a restarted service is back. The
# rest follows gRPC's connection back-off (https://github.com/grpc/grpc/blob/master/doc/connection-backoff.md).
LEAST_PAUSE_S: Final = 0.1
MOST_PAUSE_S: Final = 5.0
GROWTH: Final = 1.6
JITTER: Final = 0.2

Connect = Callable[[Callable[[], asyncio.BaseProtocol]], Awaitable[None]]


class NotTried(OSError):
    """No connect was tried, because the last one failed a moment ago."""


class ConnectBackOff:
    """Connects to one address. After a failure, further connects fail at once until a pause is over.

    The pause grows with each failure in a row, and varies by JITTER, so that gateways do not come back all at once. It
    is over with the first connect that succeeds. `clock`: seconds; `chance`: 0 to 1.
    """

    def __init__(
        self,
        connect: Connect,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._chance = chance
        self._failures = 0
        self._until = 0.0
        self._reason = ""

    async def __call__(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        """Open a transport for `factory()`. Raises OSError (NotTried in a pause), or TimeoutError."""
        if self._failures and self._clock() < self._until:
            raise NotTried(f"{self._reason}; it is not retried yet")
        failures = self._failures
        try:
            await self._connect(factory)
        except OSError as error:  # TimeoutError is one
            # Those that were tried at the same time fail together, and count once.
            if self._failures == failures:
                self._failed(error)
            raise
        self._failures = 0

    def _failed(self, error: OSError) -> None:
        pause = min(LEAST_PAUSE_S * GROWTH**self._failures, MOST_PAUSE_S)
        self._until = self._clock() + pause * (1 + JITTER * (2 * self._chance() - 1))
        # The exponent has a bound: the pause is at its longest long before.
        self._failures = min(self._failures + 1, 32)
        self._reason = error.strerror or str(error) or "connect timeout"
