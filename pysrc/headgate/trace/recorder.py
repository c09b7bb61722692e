"""Records one request: the engine (link/traced) and the HTTP client call the recorder at every stage.

No method raises: an error in this module ends the trace, never the request.
"""

from __future__ import annotations

import base64
import functools
import logging
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar, cast

from headgate.trace import events
from headgate.trace.events import ERROR, INFO, SUCCESS, WARN, Json
from headgate.trace.explain import Skip, explain
from headgate.trace.outlet import Outlet
from headgate.trace.state import Secrets, plain, request_state
from headgate_engine.context.redact import REDACTED, redacted
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.expr.program import Program
from headgate_engine.llm.attempt import LlmAttempt
from headgate_engine.plan.plans import BackendPlan, ListenerPlan, RouteGroup, RoutePlan
from headgate_engine.plan.step import Step
from headgate_engine.steps.authorization import AuthorizationStep

logger = logging.getLogger("headgate.trace")

# Maximum body bytes in each state; body snapshots show more.
STATE_BODY: Final = 16384

F = TypeVar("F", bound=Callable[..., Any])
# Scope names of steps and handlers whose calls are not ordinary HTTP calls of a policy.
SCOPES: Final = {"requestMirror": "mirror", "mcp": "mcp", "llm": "llm"}


class Descriptions(Protocol):
    """Descriptions of plans by higher layers: policies and candidate routes, as the configuration dump shows them."""

    def frontend(self) -> Json: ...
    def gateway(self, listener: ListenerPlan) -> Json: ...
    def route(self, route: RoutePlan) -> Json: ...
    def backend(self, backend: BackendPlan) -> Json: ...
    def route_key(self, route: RoutePlan) -> str: ...
    def candidates(self, listener: ListenerPlan, host: str) -> list[str]: ...
    def members(self, group: RouteGroup) -> list[str]: ...
    def conceals(self, text: str) -> bool: ...


def safe(method: F) -> F:
    """Wrap a method so that an exception ends the trace."""

    @functools.wraps(method)
    def call(self: Recorder, *arguments: Any) -> Any:
        if self.closed:
            return None
        try:
            return method(self, *arguments)
        except Exception:  # task boundary: the request goes on untraced
            logger.exception("trace failed")
            self.closed = True
            self._outlet.close()
            return None

    return cast(F, call)


class Recorder:
    """The trace of `ctx`. Body snapshots show the first `body_limit` bytes."""

    def __init__(self, outlet: Outlet, ctx: RequestContext, descriptions: Descriptions, body_limit: int) -> None:
        self._outlet = outlet
        self._ctx = ctx
        self._told = descriptions
        self.body_limit = body_limit
        self.closed = False
        self._began = time.monotonic_ns()
        self._busy = False
        self._call_started = 0
        self._evaluated: dict[str, Any] = {}
        self._before = ""
        self._nested = 0
        self._ended = False

    # -- writing -------------------------------------------------------------------------------------------------------
    def clock(self) -> int:
        """Return microseconds since the request began."""
        return (time.monotonic_ns() - self._began) // 1000

    def _emit(
        self, message: Json, severity: str = INFO, start: int | None = None, scope: tuple[str, ...] = ()
    ) -> None:
        self._outlet.write(events.frame(message, severity, self.clock(), start, scope))

    def _state(self) -> Json:
        self._busy = True
        try:
            return request_state(self._ctx, min(self.body_limit, STATE_BODY))
        finally:
            self._busy = False

    # -- stages --------------------------------------------------------------------------------------------------------
    @safe
    def started(self) -> None:
        """Record the first two events."""
        self._emit({"type": "requestStarted"})
        self.request_snapshot("initial request")

    @safe
    def request_snapshot(self, stage: str) -> None:
        """Record the current state of the request."""
        self._emit({"type": "requestSnapshot", "stage": stage, "requestState": self._state()})

    @safe
    def response_snapshot(self, stage: str) -> None:
        """Record the current state of the response."""
        self._emit({"type": "responseSnapshot", "stage": stage, "requestState": self._state()})

    @safe
    def body_snapshot(self, stage: str, seen: int, body: bytes | None) -> None:
        """Record the first bytes of a body, if there is one."""
        if seen:
            self._emit({"type": "bodySnapshot", "stage": stage, "body": base64.b64encode(body or b"").decode()})

    @safe
    def listener_chosen(self, listener: ListenerPlan | None) -> None:
        """Record the policies of the port and of the gateway phase."""
        phase = "frontend" if listener is None else "listenerFrontend"
        self._policies(phase, self._told.frontend())
        # Without a tracing policy nothing is sampled. A request that carries a trace context is marked as such.
        source = "client" if self._ctx.request.get("traceparent") is not None else "random"
        self._emit({"type": "traceSampling", "decision": f"not sampled ({source})"})
        if listener is not None:
            self._policies("gateway", self._told.gateway(listener))

    def _policies(self, phase: str, effective: Json) -> None:
        self._emit({"type": "policySelection", "phase": phase, "effectivePolicy": effective})

    @safe
    def route_chosen(self, listener: ListenerPlan, route: RoutePlan | None) -> None:
        """Record the route and its policies."""
        key = None if route is None else self._told.route_key(route)
        candidates = self._told.candidates(listener, self._ctx.authority)
        message = {"type": "routeSelection", "selectedRoute": key, "evaluatedRoutes": candidates}
        self._emit(message, ERROR if key is None else INFO)
        if route is not None and not route.delegates:
            self._policies("route", self._told.route(route))

    @safe
    def delegated(self, group: RouteGroup, parent: str, route: RoutePlan | None) -> None:
        """Record that the route `parent` has handed the request on to a group, and which of its routes has it now."""
        self.note("routeDelegation", {"from": parent, "group": group.name}, INFO if route is not None else ERROR)
        key = None if route is None else self._told.route_key(route)
        message = {"type": "routeSelection", "selectedRoute": key, "evaluatedRoutes": self._told.members(group)}
        self._emit(message, ERROR if key is None else INFO)
        if route is not None and not route.delegates:
            self._policies("route", self._told.route(route))

    @safe
    def stays(self, route: RoutePlan) -> None:
        """Record that a route which may delegate has chosen one of its backends."""
        self.note("routeDelegation", {"from": self._told.route_key(route), "group": None, "chosen": "a backend"})
        self._policies("route", self._told.route(route))

    @safe
    def backend_chosen(self, backend: BackendPlan, phase: str = "backend") -> None:
        """Record the policies of one attempt."""
        self._policies(phase, self._told.backend(backend))

    @safe
    def endpoint_chosen(self, address: bytes) -> None:
        """Record which endpoint of the backend gets the request."""
        self.note("endpoint", {"selected": address.decode("utf-8", "replace")})

    @safe
    def note(self, kind: str, details: Json | str, severity: str = INFO) -> None:
        """Record an event of a policy or of the gateway itself."""
        self._emit({"type": "policyEvent", "kind": kind, "details": details}, severity)

    # -- steps ---------------------------------------------------------------------------------------------------------
    @safe
    def step_starts(self) -> None:
        """Store the state that the step starts from."""
        self._evaluated.clear()
        self._before = f"{self._ctx.authority}{self._ctx.target}"

    @safe
    def step_ended(self, step: Step, phase: str, started: int, reply: Reply | None) -> None:
        """Record what a step did. `reply` is the step's response, if it made one."""
        kind = events.kind_of(step.name)[0]
        if isinstance(step, AuthorizationStep):
            rules = [
                {"name": text, "matched": self._evaluated.get(text) is True, "mode": mode} for mode, text in step.rules
            ]
            result = "allow" if reply is None else "deny"
            self._emit(
                {"type": "authorizationResult", "rules": rules, "result": result},
                SUCCESS if reply is None else ERROR,
                started,
            )
        details = explain(step, self._ctx, reply, self._before)
        if isinstance(details, Skip):
            self._policy(kind, {"type": "skip", "reason": str(details)}, INFO, started)
        else:
            failed = reply is not None and reply.status >= 400
            self._policy(kind, {"type": "apply", "details": details}, ERROR if failed else SUCCESS, started)
        if reply is None:
            self.request_snapshot(events.stage_of(step.name, phase))

    def _policy(self, kind: str, result: Json, severity: str, started: int | None) -> None:
        self._emit({"type": "policy", "kind": kind, "result": result}, severity, started)

    @safe
    def step_raised(self, step: Step, started: int, detail: str) -> None:
        """Record a step that raised or was cancelled."""
        result = {"type": "apply", "details": {"failed": detail}}
        self._policy(events.kind_of(step.name)[0], result, ERROR, started)

    @safe
    def response_step_ended(self, step: Step, level: str, started: int) -> None:
        """Record what a step changed in the response."""
        kind, words = events.kind_of(step.name)
        details = explain(step, self._ctx, None, self._before)
        self._policy(kind, {"type": "apply", "details": details}, SUCCESS, started)
        self.response_snapshot(words if level == "route" else f"{level} {words}")

    @safe
    def cel(self, program: Program, started: int, value: Any, error: str | None) -> None:
        """Record the value of an expression."""
        if self._busy:
            return
        self._evaluated[program.text] = value
        result: Any = {"error": error}
        if error is None:
            self._busy = True
            try:
                secrets = Secrets(self._ctx)
            finally:
                self._busy = False
            result = secrets.cleaned(program, plain(value, self.body_limit))
        text = program.text
        if self._told.conceals(text):
            text = result = REDACTED
        message = {"type": "cel", "expr": text, "requestState": self._state(), "result": result}
        self._emit(message, INFO if error is None else WARN, started)

    # -- backends ------------------------------------------------------------------------------------------------------
    @safe
    def call_started(self, target: str) -> None:
        """Record the start of the call to the backend."""
        self._call_started = self.clock()
        self._emit({"type": "backendCallStart", "target": target})

    @safe
    def call_ended(self, status: int | None, error: str | None) -> None:
        """Record the outcome of the call."""
        message = {"type": "backendCallResult", "status": status, "error": error}
        self._emit(message, events.severity_of_status(status, error), self._call_started)

    @safe
    def handler_answered(self) -> None:
        """Record the findings of the MCP handler."""
        found = {key.removeprefix("mcp."): value for key, value in self._ctx.log_field_items if key.startswith("mcp.")}
        if found:
            self.note("mcp", found, ERROR if "error.message" in found else INFO)

    @safe
    def llm_body(self, body: bytes) -> None:
        """Record the client's body before translation."""
        self.body_snapshot("llm request before translation", len(body or b""), (body or b"")[: self.body_limit])

    @safe
    def llm_attempt_ended(self, attempt: LlmAttempt) -> None:
        """Record the end of an attempt: its token counts and costs."""
        self.note("llm_attempt", attempt.record(), INFO if attempt.outcome == "answered" else WARN)

    @safe
    def llm_chosen(self, attempt: LlmAttempt) -> None:
        """Record provider, formats and model of an attempt that starts."""
        self._emit({"type": "llmRouteResolved", "provider": attempt.provider, "routeType": attempt.client_format})
        message = {
            "type": "llmRequestDetected",
            "provider": attempt.provider,
            "inputFormat": attempt.client_format,
            "upstreamRouteType": attempt.upstream_format,
            "requestModel": attempt.model,
            "streaming": attempt.streaming,
        }
        self._emit(message)

    @safe
    def stream_translated(self, attempt: LlmAttempt, content_type: str | None) -> None:
        """Record that the provider's stream is translated to the client's format, and the framing of the stream."""
        message = {
            "type": "llmStreamingTranslation",
            "provider": attempt.provider,
            "inputFormat": attempt.client_format,
            "upstreamRouteType": attempt.upstream_format,
            "streamFormat": "aws-eventstream" if "eventstream" in (content_type or "") else "sse",
        }
        self._emit(message)

    # -- calls on behalf of the request (link/client) ------------------------------------------------------------------
    def scoped(self, name: str) -> Nested:
        """Return a recorder for the calls of a step or handler."""
        return Nested(self, SCOPES.get(name, "http"))

    @safe
    def nested_started(self, scope: tuple[str, ...], target: str) -> int:
        """Record the start of a call other than the request's own; return the time in microseconds."""
        self._nested += 1
        self._emit({"type": "backendCallStart", "target": target}, INFO, None, scope)
        return self.clock()

    @safe
    def nested_ended(self, scope: tuple[str, ...], started: int, status: int | None, error: str | None) -> None:
        """Record the outcome of such a call."""
        self._nested -= 1
        message = {"type": "backendCallResult", "status": status, "error": error}
        self._emit(message, events.severity_of_status(status, error), started, scope)
        self._close_when_over()

    # -- the end -------------------------------------------------------------------------------------------------------
    @safe
    def finished(self, status: int, error: str | None, reason: str | None) -> None:
        """Record the end of the request. Status 0 means that no response was started."""
        shown = None if error is None else redacted(error)
        message: Json = {"type": "requestFinished", "status": status or None, "error": shown}
        if reason is not None:
            message["reason"] = reason
        # The error of a refusal says why; that the client was told so is no failure of the gateway.
        failed = shown if reason in (None, "Timeout", "UpstreamFailure") or status >= 500 else None
        self._emit(message, events.severity_of_status(status or None, failed))

    @safe
    def over(self) -> None:
        """Close the trace when the calls in progress have ended."""
        self._ended = True
        self._close_when_over()

    def _close_when_over(self) -> None:
        if self._ended and self._nested == 0:
            self.closed = True
            self._outlet.end()


class Nested:
    """Records the calls of a step or handler; the HTTP client finds it in its context."""

    __slots__ = ("_recorder", "_scope")

    def __init__(self, recorder: Recorder, scope: str) -> None:
        self._recorder = recorder
        self._scope = (scope,)

    def nested_started(self, target: str) -> int:
        """Record the start of a call; return the time in microseconds."""
        return self._recorder.nested_started(self._scope, target) or 0

    def nested_ended(self, started: int, status: int | None, error: str | None) -> None:
        """Record the outcome of a call."""
        self._recorder.nested_ended(self._scope, started, status, error)
