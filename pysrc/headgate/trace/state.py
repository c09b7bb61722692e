"""The state of a request: the variables of expressions, without credentials."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from headgate.document.credentials import names_credential
from headgate.expr.compile import compile_expression
from headgate_engine.context.redact import REDACTED, redacted
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.functions import text_of
from headgate_engine.expr.program import Program
from headgate_engine.expr.values import Duration, EvaluationError, Redacted, Timestamp, Uint
from headgate_engine.expr.views import HeaderFields
from headgate_engine.mcp.telemetry import SESSION_LETTERS

Json = dict[str, Any]

# In the order of the trace.
VARIABLES: Final = (
    "request", "response", "source", "destination", "jwt", "apiKey", "basicAuth", "llm", "llmRequest", "mcp", "backend",
    "extauthz", "extproc", "mcpGuardrails", "metadata", "proxy", "env",
)  # fmt: skip
HIDDEN: Final = 8  # form of HeaderView (headgate_engine/expr/views.pyx)
# These appear under another name or are part of another field.
LEFT_OUT: Final = frozenset(("bodyPrefix",))
URLS: Final = frozenset(("uri", "pathAndQuery"))
# Whoever has the id of an MCP session can use it.
SESSION_ID: Final = "sessionId"
MAX_DEPTH: Final = 32
# A shorter value may be an ordinary word, so it is not treated as a secret.
MIN_SECRET: Final = 6


@cache
def _programs() -> tuple[tuple[str, Program], ...]:
    return tuple((name, compile_expression(name, "log", {})) for name in VARIABLES)


def request_state(ctx: RequestContext, body_limit: int) -> Json:
    """Return the variables that have a value. Bodies are cut to `body_limit` bytes."""
    found: Json = {}
    for name, program in _programs():
        try:
            value = program.evaluate(ctx)
        except EvaluationError:
            continue
        shown = plain(value, body_limit)
        if shown not in (None, {}, "", []):
            found[name] = shown
    heads = [found[name] for name in ("request", "response") if "headers" in found.get(name, ())]
    if ctx.jwt_token or ctx.api_key_text or any(_hides(one["headers"]) for one in heads):
        secrets = Secrets(ctx)
        for one in heads:
            one["headers"] = secrets.uncopied(one["headers"])
    return found


def _hides(headers: Json) -> bool:
    """Return True if a credential is among the fields, so that there may be a copy of it."""
    return any(one == REDACTED or (isinstance(one, list) and REDACTED in one) for one in headers.values())


def plain(value: Any, body_limit: int, depth: int = 0) -> Any:
    """Return a value as JSON: bytes as base64, times as text, sensitive fields as `<redacted>`, no nulls."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Redacted):
        return REDACTED
    if isinstance(value, str):
        return value if type(value) is str else str.__str__(value)
    if isinstance(value, bytes):
        return base64.b64encode(value[:body_limit]).decode()
    if isinstance(value, Duration):
        return seconds(value.ns)
    if isinstance(value, Timestamp):
        return text_of(value)
    if isinstance(value, Uint):
        return value.value
    if depth > MAX_DEPTH:
        return "..."
    if isinstance(value, HeaderFields):
        return {name: _field(name, text) for name, text in value.formed(HIDDEN).cel_items()}
    if isinstance(value, Mapping):
        return _map(value, body_limit, depth)
    if isinstance(value, list | tuple):
        return [plain(one, body_limit, depth + 1) for one in value]
    return str(value)


def _map(value: Mapping[Any, Any], body_limit: int, depth: int) -> Json:
    found: Json = {}
    for key, one in value.items():
        name = str(key)
        if name in LEFT_OUT and depth == 0:
            continue
        shown = plain(one, body_limit, depth + 1)
        if depth == 0 and isinstance(shown, str):
            shown = redacted(shown) if name in URLS else _session(shown) if name == SESSION_ID else shown
        if shown is not None:
            found[name] = shown
    return found


def _field(name: str, text: Any) -> Any:
    """Return a header field, whose credentials the view has hidden where the engine knows the name."""
    if not names_credential(name):
        return text
    return [REDACTED] * len(text) if isinstance(text, list) else REDACTED


def _session(session_id: str) -> str:
    """Return an id as logs have it, so that both can be compared; of a short one no more than half."""
    return f"{session_id[: min(SESSION_LETTERS, len(session_id) // 2)]}..."


def seconds(ns: int) -> str:
    """Return a duration in seconds with its unit: `0.001614666s`."""
    return f"{ns / 1e9:.9f}s"


class Secrets:
    """The credentials of a request, used to redact the values of expressions."""

    def __init__(self, ctx: RequestContext) -> None:
        self._names: set[str] = set()
        values: set[str] = set()
        for head in (ctx.request, ctx.response_head):
            if head is None:
                continue
            view = HeaderFields(head)
            shown = dict(view.formed(HIDDEN).cel_items())
            for name, text in view.cel_items():
                if shown.get(name) != text or names_credential(name):
                    self._names.add(name)
                    for one in text if isinstance(text, list) else [text]:
                        values.update(one.replace(";", " ").replace("=", " ").split())
                        values.add(one)
        for raw in (ctx.jwt_token, ctx.api_key_text):
            if raw:
                values.add(raw.decode("latin-1"))
        self._values = {value for value in values if len(value) >= MIN_SECRET}

    def cleaned(self, program: Program, value: Any) -> Any:
        """Return the value of an expression as JSON, or `<redacted>` if it may contain a credential."""
        if value is None or isinstance(value, bool | int | float):
            return value
        text = program.text.lower()
        if any(word in text for word in ("unredacted", "rawtoken", "apikey.key")) or any(
            name in text for name in self._names
        ):
            return REDACTED
        return self._without(value)

    def uncopied(self, headers: Json) -> Json:
        """Return header fields without those to which a policy has copied a credential."""
        return {name: REDACTED if self._holds(text) else text for name, text in headers.items()}

    def _holds(self, text: Any) -> bool:
        if isinstance(text, list):
            return any(self._holds(one) for one in text)
        return any(secret in text for secret in self._values)

    def _without(self, value: Any) -> Any:
        if isinstance(value, str):
            hidden = any(secret in value or (len(value) >= MIN_SECRET and value in secret) for secret in self._values)
            return REDACTED if hidden else redacted(value)
        if isinstance(value, list):
            return [self._without(one) for one in value]
        if isinstance(value, dict):
            return {key: self._without(one) for key, one in value.items()}
        return value
