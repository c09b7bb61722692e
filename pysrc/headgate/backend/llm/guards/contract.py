"""What guards are asked and what they answer."""

from __future__ import annotations

from collections.abc import Awaitable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from headgate.dialect.llm.transcript.contract import Run, Scope, Transcript
from headgate.errors import GatewayError, Source
from headgate_engine.context.request import Reply
from headgate_engine.guard.scan import Budget

Phase = Literal["request", "response"]
Pairs = list[tuple[str, str]]


class GuardFailure(GatewayError):
    """A guard could not tell: its service did not answer, or with something that cannot be used."""

    source = Source.INTERNAL


@dataclass(frozen=True, slots=True)
class Refused:
    """The guard refuses. `reply`: the answer that it wants; None: that of the configuration. `rule`: for the log."""

    reply: Reply | None = None
    rule: str = ""


@dataclass(slots=True)
class Verdicts:
    """What guards have said of a request, over all attempts at providers: a question that was answered is not asked
    again, and a check counts once. `answers`: by question, what a service said or why it could not tell. `counted`:
    (identity of an entry of the configuration, action).
    """

    answers: dict[Hashable, Any] = field(default_factory=dict)
    counted: set[tuple[int, str]] = field(default_factory=set)


# Those of the request that is being judged, for what asks services.
VERDICTS: Final[ContextVar[Verdicts | None]] = ContextVar("verdicts", default=None)


@dataclass(slots=True)
class Known:
    """What a request's guards know of it. `headers`: per guard and phase, those its expressions gave, `:path`,
    `:method` and `:authority` among them. `forwarded`: the client's headers; `budget`: what scanning may cost.
    """

    headers: dict[tuple[int, Phase], Pairs] = field(default_factory=dict)
    forwarded: Pairs = field(default_factory=list)
    traceparent: str | None = None
    budget: Budget = field(default_factory=Budget)


@dataclass(slots=True)
class Asked:
    """One question. `transcript`: all texts of the body; `scopes`: those that count. `headers`: of this guard."""

    phase: Phase
    transcript: Transcript
    scopes: frozenset[Scope]
    headers: Pairs
    budget: Budget

    @property
    def body(self) -> bytes:
        return self.transcript.body

    @property
    def runs(self) -> list[Run]:
        """The runs in scope."""
        return self.transcript.of(self.scopes)

    def texts(self) -> list[str]:
        """Return what the runs say, empty ones left out."""
        found = (run.text(self.body).decode("utf-8", "replace") for run in self.runs)
        return [text for text in found if text]


# None: nothing against it. bytes: the body with masks. Refused: no.
Answer = None | bytes | Refused


class Guard(Protocol):
    """One compiled guard. `kind`: for logs and counters. `asks`: it may have to wait for a service."""

    kind: str
    asks: bool

    def judge(self, asked: Asked) -> Answer | Awaitable[Answer]:
        """Judge texts; raises GuardFailure when it cannot tell."""

