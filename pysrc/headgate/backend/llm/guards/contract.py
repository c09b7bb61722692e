"""The interface of guards: their input and their verdicts."""

from __future__ import annotations

from collections.abc import Awaitable, Hashable
from contextvars import ContextVar
from dataclasses import field
from typing import Any, Final, Literal, Protocol

from headgate.dialect.llm.transcript.contract import Run, TextScope, Transcript
from headgate.document.lazy_dataclass import dataclass
from headgate.errors import FailureSource, GatewayError
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.guard.scan import ScanBudget

Phase = Literal["request", "response"]
Pairs = list[tuple[str, str]]


class GuardFailure(GatewayError):
    """A guard has no verdict: its service failed or sent an invalid response."""

    source = FailureSource.INTERNAL


@dataclass(frozen=True, slots=True)
class GuardRefusal:
    """The guard refuses the text. `reply`: the guard's own reply, None for the configured one. `rule`: for the log."""

    reply: Reply | None = None
    rule: str = ""


@dataclass(slots=True)
class Verdicts:
    """The verdicts on one request over all attempts: no service is called twice, and each check counts once.

    `answers`: question to the service's response or its failure. `counted`: (id of a guard's configuration, action).
    """

    answers: dict[Hashable, Any] = field(default_factory=dict)
    counted: set[tuple[int, str]] = field(default_factory=set)


# The verdicts of the current request, for calls to services.
VERDICTS: Final[ContextVar[Verdicts | None]] = ContextVar("verdicts", default=None)

# The current request, on whose behalf services are called.
ORIGIN: Final[ContextVar[RequestContext | None]] = ContextVar("origin", default=None)


@dataclass(slots=True)
class Known:
    """Request data for the guards.

    `headers`: (index of the guard, phase) to the headers that its expressions computed, with `:path`, `:method` and
    `:authority`. `forwarded`: the client's headers. `budget`: the remaining time for pattern searches.
    """

    headers: dict[tuple[int, Phase], Pairs] = field(default_factory=dict)
    forwarded: Pairs = field(default_factory=list)
    traceparent: str | None = None
    budget: ScanBudget = field(default_factory=ScanBudget)


@dataclass(slots=True)
class GuardCheck:
    """One check. `transcript`: all texts of the body; `scopes`: the texts to check; `headers`: those of this guard."""

    phase: Phase
    transcript: Transcript
    scopes: frozenset[TextScope]
    headers: Pairs
    budget: ScanBudget

    @property
    def body(self) -> bytes:
        return self.transcript.body

    @property
    def runs(self) -> list[Run]:
        """Return the texts in scope as positions in the body."""
        return self.transcript.of(self.scopes)

    def texts(self) -> list[str]:
        """Return the texts in scope, without empty ones."""
        found = (run.text(self.body).decode("utf-8", "replace") for run in self.runs)
        return [text for text in found if text]


# None: allowed. bytes: allowed, with this masked body. Refused: not allowed.
Answer = None | bytes | GuardRefusal


class Guard(Protocol):
    """One compiled guard. `kind`: its name in logs and metrics. `asks`: it may call a service."""

    kind: str
    asks: bool

    def judge(self, asked: GuardCheck) -> Answer | Awaitable[Answer]:
        """Check texts; raises GuardFailure if there is no verdict."""

