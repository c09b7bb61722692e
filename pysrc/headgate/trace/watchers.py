"""The watchers that a worker knows. They are served in order, and each traces one request of any worker."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from headgate.trace.outlet import Outlet
from headgate.trace.recorder import Descriptions, Recorder
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program
from headgate_engine.shared.claims import SlotClaims


class Watcher:
    """A registered watcher. Events go to the file descriptor `descriptor`; without `program` any request matches."""

    def __init__(self, number: int, descriptor: int, program: Program | None) -> None:
        self.number = number
        self.descriptor = descriptor
        self.program = program

    def wants(self, ctx: RequestContext) -> bool:
        """Return True if the request matches; a request for which the expression fails does not."""
        return self.program is None or self.program.test(ctx) == 1

    def close(self) -> None:
        """Close the file descriptor."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)


class Watchers:
    """The watchers of one worker. `changed` gets this object after each addition, None when it is empty."""

    def __init__(self, claims: SlotClaims, changed: Callable[[Watchers | None], None]) -> None:
        self._claims = claims
        self._changed = changed
        self.descriptions: Descriptions | None = None
        self._waiting: dict[int, Watcher] = {}
        self.body_limit = 0

    def add(self, watcher: Watcher) -> None:
        """Add a watcher; its number determines its place in the order. A repeated one replaces itself."""
        before = self._waiting.pop(watcher.number, None)
        if before is not None:
            before.close()
        self._waiting[watcher.number] = watcher
        self._changed(self)

    def drop(self, number: int) -> None:
        """Remove a watcher that another worker served, or whose client is gone."""
        watcher = self._waiting.pop(number, None)
        if watcher is not None:
            watcher.close()
        if not self._waiting:
            self._changed(None)

    def take(self, ctx: RequestContext) -> Recorder | None:
        """Return a recorder for the request, None if no watcher matches."""
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
    """Return True if the read end of a pipe is still open."""
    import select

    poll = select.poll()
    poll.register(descriptor, 0)
    return not any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))
