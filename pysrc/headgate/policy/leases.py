"""Where requests of a worker wait for leases of the limits of virtual keys, while the supervisor asks the store.

What is asked for within one turn of the loop goes into one message.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from headgate_engine.limit.account import LeaseState, UsageLimits

# Entries of one message, which has room for 128 KiB: a name may have 128 characters of four bytes.
MOST_WANTS: Final = 128
# How long a request waits for the supervisor, in seconds: longer than a store may take.
ANSWER_SECONDS: Final = 10.0


class LeaseWant(NamedTuple):
    """What requests that wait want of a limit: at least `least` (one of them), and `total` all together. `most` is the
    limit itself.
    """

    scope: str
    name: str
    window: str
    unit: str
    least: int
    total: int
    most: int


class LeaseDesk:
    """The leases of one worker. `say` sends a message with its number to the supervisor."""

    def __init__(self) -> None:
        self.say: Callable[[int, tuple[LeaseWant, ...]], None] = lambda number, wants: None
        self._state = LeaseState()
        self._down = False
        self._wants: dict[tuple[str, str, str, str], LeaseWant] = {}
        self._next: asyncio.Future[None] | None = None
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._number = 0

    async def asked(self, limits: tuple[UsageLimits, ...], wanted: tuple[int, int, int]) -> None:
        """Return when the store was asked for so many requests, tokens and picodollars of each limit, or is away."""
        waiting = self.ahead(limits, wanted)
        if waiting is not None:
            await asyncio.shield(waiting)

    def ahead(self, limits: tuple[UsageLimits, ...], wanted: tuple[int, int, int]) -> asyncio.Future[None] | None:
        """Request that many more while the caller continues. Return what is awaited, None if it is there."""
        now = int(time.time())
        found = [
            LeaseWant(one.account.scope, one.account.name, window, unit, n, n, most)
            for one in limits
            for window, unit, n, most in one.lacking(*wanted, now)
        ]
        if not found:
            return None
        for want in found:
            self._add(want)
        if self._next is None:
            loop = asyncio.get_running_loop()
            self._next = loop.create_future()
            loop.call_soon(self._send)
            # The supervisor may hang.
            timer = loop.call_later(ANSWER_SECONDS, self._give_up, self._next)
            self._next.add_done_callback(lambda _: timer.cancel())
        return self._next

    def _add(self, want: LeaseWant) -> None:
        key = want[:4]
        before = self._wants.get(key)
        if before is not None:
            least, total = min(before.least, want.least), before.total + want.total
            want = want._replace(least=least, total=total, most=max(before.most, want.most))
        self._wants[key] = want

    def _send(self) -> None:
        wants, self._wants = tuple(self._wants.values()), {}
        waiting, self._next = self._next, None
        if waiting is None:
            return
        for start in range(0, len(wants), MOST_WANTS):
            self._number += 1
            # Who waits for several messages waits for the last one: they are answered in order.
            if start + MOST_WANTS >= len(wants):
                self._waiting[self._number] = waiting
                waiting.add_done_callback(partial(self._forget, self._number))
            self.say(self._number, wants[start : start + MOST_WANTS])

    def _forget(self, number: int, _: asyncio.Future[None]) -> None:
        self._waiting.pop(number, None)

    def use(self, state: LeaseState) -> None:
        """Tell what limits are held against whether the store is not reachable."""
        self._state = state
        state.set_down(self._down)

    def set_down(self, *, down: bool) -> None:
        """Note whether the store can be asked."""
        self._down = down
        self._state.set_down(down)

    def _give_up(self, waiting: asyncio.Future[None]) -> None:
        """Have those go on who wait for a supervisor that hangs, as without the store; for a while nobody asks it."""
        if not waiting.done():
            self._state.set_down(True)
            asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._ask_again)
            waiting.set_result(None)

    def _ask_again(self) -> None:
        self._state.set_down(self._down)

    def came(self, number: int) -> None:
        """Go on: the supervisor has asked the store for what the message wanted."""
        waiting = self._waiting.pop(number, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


# That of this process.
DESK: Final = LeaseDesk()
