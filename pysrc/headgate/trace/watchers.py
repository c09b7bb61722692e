"""Who waits for a request, as a worker sees it: first come, first served, each takes one request of all workers'."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from headgate.trace.outlet import Outlet
from headgate.trace.recorder import Descriptions, Recorder
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program
from headgate_engine.shared.claims import Claims


class Watcher:
    """One that waits. `descriptor`: where its events go; `program` None: any request will do."""

    def __init__(self, number: int, descriptor: int, program: Program | None) -> None:
        self.number = number
        self.descriptor = descriptor
        self.program = program

    def wants(self, ctx: RequestContext) -> bool:
        """Tell whether the request is what it waits for; an expression that fails is not."""
        return self.program is None or self.program.test(ctx) == 1

    def close(self) -> None:
        """Let go of the descriptor."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)


class Watchers:
    """The list of one worker. `changed(list or None)` is called with None when nobody waits any more."""

    def __init__(self, claims: Claims, changed: Callable[[Watchers | None], None]) -> None:
        self._claims = claims
        self._changed = changed
        self.descriptions: Descriptions | None = None
        self._waiting: dict[int, Watcher] = {}
        self.body_limit = 0

    def add(self, watcher: Watcher) -> None:
        """Let one wait; its number tells its place."""
        self._waiting[watcher.number] = watcher
        self._changed(self)

    def drop(self, number: int) -> None:
        """Forget one that was served elsewhere, or is gone."""
        watcher = self._waiting.pop(number, None)
        if watcher is not None:
            watcher.close()
        if not self._waiting:
            self._changed(None)

    def take(self, ctx: RequestContext) -> Recorder | None:
        """Return the recorder for a request that somebody wants."""
        for number, watcher in list(self._waiting.items()):
            if not self._claims.offered(number):
                self.drop(number)
            elif watcher.wants(ctx) and self._claims.take(number):
                descriptor, watcher.descriptor = watcher.descriptor, -1
                self.drop(number)
                if is_read(descriptor) and self.descriptions is not None:
                    return Recorder(Outlet(descriptor), ctx, self.descriptions, self.body_limit)
                os.close(descriptor)
        return None


def is_read(descriptor: int) -> bool:
    """Tell whether somebody still holds the other end of a pipe."""
    import select

    poll = select.poll()
    poll.register(descriptor, 0)
    return not any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))
