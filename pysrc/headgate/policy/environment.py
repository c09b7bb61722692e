"""The environment in which the policies of a worker are compiled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.frontend import MAX_MODEL_RESPONSE_BYTES
from headgate.ir.policy.document_source import DocumentSource
from headgate.policy.claims import RouteClaims
from headgate.telemetry.metrics import series_key
from headgate_engine.expr.program import Program
from headgate_engine.link.client import HttpClient
from headgate_engine.llm.content_capture import CaptureOptions
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment

if TYPE_CHECKING:
    from headgate.crypto.sealed import Sealer
    from headgate.expr.custom import CustomFunctions
    from headgate.ir.policies import BackendPolicies
    from headgate.ir.policy.prompt_guard import GuardRule
    from headgate.policy.cloud.store import CredentialStore
    from headgate.policy.key_sets import KeyStore
    from headgate.policy.shared.limiter import SharedLimiter
    from headgate_engine.guard.scan import Scanner
    from headgate_engine.link.grpc_call import GrpcCaller
    from headgate_engine.plan.step import Step
    from headgate_engine.steps.virtual_key import KeyTable

FAILURES = "gw_expression_failures_total"
# Expressions that are let go of between two yields: some tens of microseconds.
FORGOTTEN: Final = 64


@dataclass(slots=True)
class Environment:
    """Resources for the compilation of policies.

    `segment`: memory that all workers share. `max_body`: maximum bytes of a body that steps may buffer. `max_answer`:
    the same for a model's answer. `keys`: returns the keys of a source, which survive reloads. `client(endpoint,
    kind="Policy", subtype="Http")`: returns the HTTP client for an endpoint, whose calls are counted under these
    labels. `spawn(name, coroutine)`: starts a task of the worker. `sealer(purpose)`: returns a sealer whose key all
    workers and replicas share. `credentials`: returns the cloud credentials. `wanted`: the parts of LLM requests and
    responses that expressions compiled so far read. `claims`: the resources of the plan that is being compiled.
    `programs`: precompiled expressions by text and phase. `grpc(endpoint, subtype)`: returns what makes unary gRPC
    calls to an endpoint. `steps_of_call(policies, host, env)`: returns what the policies of a service do to each call.
    `reads_body`: set when an expression is asked for that reads the request body. `phase`: of the expressions of the
    policies that are being compiled. `scanners`: what prompt guards search with, by rules. `shared`: returns what asks
    the store that replicas share, None without one. `key_table(wanted=...)`: returns the virtual keys, None where
    the configuration has no section of them and the table is not wanted.
    """

    segment: Segment
    max_body: int
    keys: Callable[[DocumentSource], KeyStore]
    client: Callable[..., HttpClient]
    spawn: Callable[..., asyncio.Task[None]]
    functions: Callable[[], CustomFunctions] = dict
    sealer: Callable[[str], Sealer] | None = None
    credentials: Callable[[], CredentialStore] | None = None
    wanted: CaptureOptions = field(default_factory=CaptureOptions)
    claims: RouteClaims = field(default_factory=RouteClaims)
    programs: Mapping[tuple[str, str], Program] = field(default_factory=dict)
    reads_body: bool = False
    scanners: dict[tuple[GuardRule, ...], Scanner] = field(default_factory=dict)
    phase: str = "route"
    max_answer: int = MAX_MODEL_RESPONSE_BYTES
    grpc: Callable[..., GrpcCaller] | None = None
    steps_of_call: Callable[[BackendPolicies, str, Environment], tuple[Step, ...]] | None = None
    shared: Callable[[], SharedLimiter | None] = lambda: None
    key_table: Callable[..., KeyTable | None] = lambda **_: None
    _programs: dict[tuple[str, str], Program] = field(default_factory=dict)
    _failures: dict[str, Counter] = field(default_factory=dict)

    def _compiled(self, text: str, phase: str) -> Program:
        from headgate.expr.compile import compile_expression  # see headgate.expr.faults

        return compile_expression(text, phase, self.functions())

    def key_store(self, source: DocumentSource) -> KeyStore:
        """Return the keys of a source and claim the source for the current plan."""
        self.claims.sources.append(source)
        return self.keys(source)

    def program(self, text: str, phase: str) -> Program:
        """Return the compiled expression; equal texts in the same phase share one object."""
        key = (text, phase)
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = self.programs.get(key) or self._compiled(text, phase)
            found.failures = self._failures_of(phase)
            self.wanted.note(found.variables)
        if not found.variables <= self.claims.variables:
            self.claims.variables |= found.variables
        self.reads_body |= found.needs_request_body
        return found

    def forget_programs(self) -> Generator[None, None, None]:
        """Let go of the expressions that were compiled, in steps; others hold those that are still in use."""
        while self._programs:
            for _ in range(min(FORGOTTEN, len(self._programs))):
                self._programs.popitem()
            yield

    def _failures_of(self, phase: str) -> Counter:
        """Return the counter of failures in a phase, which all expressions of the phase share."""
        found = self._failures.get(phase)
        if found is None:
            found = self._failures[phase] = Counter(self.segment, series_key(FAILURES, {"phase": phase}))
        return found
