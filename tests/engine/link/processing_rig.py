"""A session between a request and its client that does what a test says, as one of an external processor would."""

from __future__ import annotations

from collections.abc import Callable

from rig import Rig

from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import RequestContext
from headgate_engine.link.processed import KEPT, PASSES, ProcessedStream
from headgate_engine.plan.step import PythonStep


class Session:
    """By itself it lets everything pass. `told`: what it was told."""

    def __init__(self, ctx: RequestContext) -> None:
        self.told: list[str] = []
        self.stream = ProcessedStream(ctx, self)

    def begin(self) -> int | None:
        """What the step that has made it returns."""

    def data(self, response: bool, data: bytes, /) -> None:
        self.told.append(f"data {response} {len(data)}")

    def full(self, response: bool, /) -> None:
        self.told.append(f"full {response}")

    def end(self, response: bool, trailers: MessageHead | None, /) -> None:
        self.told.append(f"end {response}")

    def head(self, head: MessageHead, content: bool, /) -> None:
        self.told.append(f"head {head.status}")
        self.stream.begin_response(KEPT)
        self.stream.set_mode(True, PASSES)

    def own_answer(self, /) -> None:
        self.told.append("own answer")

    def closed(self, /) -> None:
        self.told.append("closed")

    def unblocked(self, /) -> None:
        """The client takes more: nothing of what a session here sends is large."""


def sessions(rig: Rig, *kinds: Callable[[RequestContext], Session]) -> list[Session]:
    """Each request of the rig's route goes through a session of each kind; the sessions that there were."""
    found: list[Session] = []

    def step(kind: Callable[[RequestContext], Session]) -> PythonStep:
        def begin(ctx: RequestContext) -> int | None:
            found.append(kind(ctx))
            return found[-1].begin()

        return PythonStep("processing", begin)

    rig.route.request_steps = tuple(step(kind) for kind in kinds)
    return found
