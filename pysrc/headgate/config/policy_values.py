"""Policies of one level to the IR, and what backend policies of several levels come to."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.process_settings import keepalives
from headgate.config.shape.modifiers import free_header
from headgate.config.tls_material import backend_tls
from headgate.document.fields import header_value
from headgate.errors import Problem
from headgate.ir.endpoint import Keepalives
from headgate.ir.policies import (
    BackendAuth,
    BackendPolicies,
    DirectResponse,
    HeaderModifier,
    LocalRateLimit,
    RoutePolicies,
    Timeout,
)
from headgate.ir.tls import BackendTls

UNIT_NS: Final = {"seconds": 10**9, "minutes": 60 * 10**9, "hours": 3600 * 10**9}
# Where "Bearer <key>" would double a scheme that the key already has.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9._~+/-]* +\S")
# A CEL text literal without escapes or with those that JSON has too.
_LITERAL = re.compile(r"\s*(\"(?:[^\"\\\n]|\\[\"\\/bfnrt]|\\u[0-9a-fA-F]{4})*\"|'[^'\\\n]*')\s*")


def literal(expression: str) -> str | None:
    """Return the text of a CEL expression that is one text literal, None for any other."""
    found = _LITERAL.fullmatch(expression)
    if found is None:
        return None
    quoted = found[1]
    return str(json.loads(quoted, strict=False)) if quoted[0] == '"' else quoted[1:-1]


def header_modifier(
    context: Context, record: Record | None, *, response: bool = False
) -> HeaderModifier | None:
    """Return header changes; a response has no authority to change."""
    if record is None:
        return None
    add = tuple((record.get("add") or {}).items())
    replaced = tuple((record.get("set") or {}).items())
    removed = tuple(dict.fromkeys(record.get("remove") or ()))
    names = [name for name, _ in (*add, *replaced)] + list(removed)
    if response and ":authority" in names:
        context.fault(Problem.VALUE, record, "", "a response has no ':authority'")
    return HeaderModifier(add=add, set=replaced, remove=removed)


def _direct_response(context: Context, record: Record) -> DirectResponse:
    headers = []
    for name, expression in (record.get("headers") or {}).items():
        value = literal(expression)
        inner = Record(record.node, f"{record.path}.headers", {})
        if value is None:
            context.fault(
                Problem.UNSUPPORTED, inner, name, " with a CEL expression that is not a text literal"
            )
            continue
        try:
            headers.append((free_header(name), header_value(value)))
        except ValueError as error:
            context.fault(Problem.VALUE, inner, name, str(error))
    body = record.get("body", "")
    content = body.encode() if isinstance(body, str) else bytes(body)
    return DirectResponse(status=record["status"], body=content, headers=tuple(headers))


def _limit(context: Context, record: Record, owner: str, index: int) -> LocalRateLimit | None:
    if "unit" in record:
        if "tokens" in record:
            context.fault(Problem.UNSUPPORTED, record, "tokens", "")
            return None
        fill, interval = record["requests"], UNIT_NS[record["unit"]]
        most = fill + record.get("burst", 0)
    else:
        if record.get("type", "requests") is None:
            return None
        most, fill, interval = (
            record.get("maxTokens", 0),
            record.get("tokensPerFill", 0),
            record["fillInterval"],
        )
        if interval == 0:
            context.fault(Problem.VALUE, record, "fillInterval", "the interval must be longer than 0")
        if most < fill:
            message = "max tokens cannot be less than the refill amount"
            context.fault(Problem.VALUE, record, "maxTokens", message)
    key = f"limit/{owner}/{index}/{most}-{fill}-{interval}"
    return LocalRateLimit(key=key, max_tokens=most, tokens_per_fill=fill, fill_interval_ns=interval)


def rate_limits(context: Context, value: Any, owner: str) -> tuple[LocalRateLimit, ...]:
    """Return the buckets of a list of entries; the form with conditions was reported by the check."""
    if not isinstance(value, list):
        return ()
    limits = (_limit(context, record, owner, index) for index, record in enumerate(value))
    return tuple(limit for limit in limits if limit is not None)


def route_policies(context: Context, record: Record | None, owner: str) -> RoutePolicies:
    """Return the route policies that one level sets; `owner` is its identity, for its buckets."""
    if record is None or not record.values:
        return RoutePolicies()
    timeout = record.get("timeout")
    direct = record.get("directResponse")
    return RoutePolicies(
        timeout=(
            Timeout(
                request_timeout_ms=timeout.get("requestTimeout"),
                backend_request_timeout_ms=timeout.get("backendRequestTimeout"),
            )
            if timeout is not None
            else None
        ),
        request_headers=header_modifier(context, record.get("requestHeaderModifier")),
        response_headers=header_modifier(context, record.get("responseHeaderModifier"), response=True),
        direct_response=(
            _direct_response(context, direct) if direct is not None and "status" in direct else None
        ),
        local_rate_limits=rate_limits(context, record.get("localRateLimit"), owner),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOptions:
    """The backend policies that one level sets, those of the connection among them."""

    tls: BackendTls | None = None
    auth: BackendAuth | None = None
    request_headers: HeaderModifier | None = None
    response_headers: HeaderModifier | None = None
    request_timeout_ms: int | None = None
    connect_timeout_ms: int | None = None
    keepalives: Keepalives | None = None

    def under(self, stronger: BackendOptions) -> BackendOptions:
        """Return these with everything that `stronger` sets replaced, kind by kind."""
        if stronger == NO_OPTIONS:
            return self
        found = {field.name: getattr(stronger, field.name) for field in fields(stronger)}
        return replace(self, **{name: value for name, value in found.items() if value is not None})

    def policies(self) -> BackendPolicies:
        """Return the part that is not about the connection."""
        return BackendPolicies(
            request_headers=self.request_headers,
            response_headers=self.response_headers,
            request_timeout_ms=self.request_timeout_ms,
            auth=self.auth,
        )


NO_OPTIONS: Final = BackendOptions()


def backend_auth(context: Context, record: Record | None) -> BackendAuth | None:
    """Return the fixed credential of `backendAuth`."""
    value = record.get("key") if record is not None else None
    if record is None or value is None:
        return None
    located = isinstance(value, Record) and "value" in value
    location = value.get("location") if located else None
    key = context.secret(value, "value") if located else context.secret(record, "key")
    if key is None:
        return None
    header = location.get("header") if location is not None else None
    if header is not None:
        return BackendAuth(key=key, header=header["name"], prefix=header.get("prefix") or "")
    return bearer(key)


def bearer(key: Any) -> BackendAuth:
    """Return `Authorization: Bearer <key>`; a key that has a scheme (`Basic ...`) is sent as it is."""
    return BackendAuth(key=key, prefix="" if _SCHEME.match(key.secret.reveal()) else "Bearer ")


def backend_options(context: Context, record: Record | None) -> BackendOptions:
    """Return the backend policies of one level, written as a `policies` map."""
    if record is None or not record.values:
        return NO_OPTIONS
    http, tcp, tls = record.get("http"), record.get("tcp"), record.get("backendTLS")
    return BackendOptions(
        tls=backend_tls(context, tls) if tls is not None else None,
        auth=backend_auth(context, record.get("backendAuth")),
        request_headers=header_modifier(context, record.get("requestHeaderModifier")),
        response_headers=header_modifier(context, record.get("responseHeaderModifier"), response=True),
        request_timeout_ms=http.get("requestTimeout") if http is not None else None,
        connect_timeout_ms=tcp["connectTimeout"] if tcp is not None else None,
        keepalives=keepalives(tcp["keepalives"]) if tcp is not None else None,
    )


def route_backend_options(context: Context, record: Record | None) -> BackendOptions:
    """Return the backend policies among the policies of a route; header changes there are the route's own."""
    if record is None or not ("backendTLS" in record or "backendAuth" in record):
        return NO_OPTIONS
    kept = {key: record[key] for key in ("backendTLS", "backendAuth") if key in record}
    return backend_options(context, Record(record.node, record.path, kept))
