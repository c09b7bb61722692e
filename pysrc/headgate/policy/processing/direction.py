"""One direction of a request that passes through an external processor: what was sent of it, and what is awaited."""

from __future__ import annotations

from headgate.document.lazy_dataclass import replace
from headgate.ir.policy.ext_proc import BodyMode, SentParts
from headgate_engine.context.headers import MessageHead


class Direction:
    """The request, or its response.

    `content`: it has a body. `streams`: the body goes out as it comes, and what comes back takes its place. `fed`:
    bytes of the body were sent. `cut`: the body that was gathered is the beginning of a longer one. `ended`: all of it
    has come. `done`: all that the processor changes has been sent on. `body`: what is kept of a body that was sent.
    `head`: of a response that has come.
    """

    __slots__ = (
        "awaits_body", "awaits_head", "awaits_trailers", "begun", "body", "content", "cut", "done", "ended", "fed",
        "head", "parts", "response", "streams", "trailers",
    )  # fmt: skip

    def __init__(self, parts: SentParts, *, response: bool) -> None:
        self.parts = parts
        self.response = response
        self.head: MessageHead | None = None
        self.trailers: MessageHead | None = None
        self.body = b""
        self.content = self.begun = self.streams = self.fed = self.cut = self.ended = self.done = False
        self.awaits_head = self.awaits_body = self.awaits_trailers = False

    @property
    def name(self) -> str:
        return "response" if self.response else "request"

    @property
    def waits(self) -> bool:
        """Whether an answer is due. A processor that streams may keep a body to its end."""
        if self.awaits_head or self.awaits_body or self.awaits_trailers:
            return True
        return self.streams and self.ended and not self.done

    @property
    def incomplete(self) -> bool:
        """Whether the processor has a part of the body that it has not given back."""
        return self.fed and not self.done

    def choose(self, body: BodyMode | None, trailers: bool | None) -> None:
        """Send other parts than was planned; None leaves a part as it is."""
        self.parts = replace(
            self.parts,
            body=self.parts.body if body is None else body,
            trailers=self.parts.trailers if trailers is None else trailers,
        )

    def choose_head(self, sent: bool) -> None:
        """Send the head, or not."""
        self.parts = replace(self.parts, headers=sent)
