"""`extAuthz` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.extras import missing
from headgate.config.policy.conditional import conditions
from headgate.config.policy.expression import check, check_map, checked
from headgate.config.policy.remote_service import dump_policies, dump_target
from headgate.errors import Problem
from headgate.ir.policy.ext_authz import (
    DEFAULT_BODY_BYTES,
    DEFAULT_ENTRIES,
    DEFAULT_TIMEOUT_MS,
    AuthzBody,
    AuthzCache,
    AuthzGrpc,
    AuthzHttp,
    ExtAuthz,
)
from headgate_engine.context.field_names import HOP_BY_HOP

# Fields that the call to the service sets itself.
OWN_FIELDS = HOP_BY_HOP | {"content-length", "host"}
PSEUDO = frozenset((":method", ":path", ":authority", ":scheme"))


def parse(context: Context, record: Record) -> tuple[ExtAuthz, ...] | None:
    """Return the entries: one without a condition, or those of the form with conditions."""
    found = [_entry(context, entry, condition) for entry, condition in conditions(context, record)]
    return tuple(one for one in found if one is not None) or None


def _entry(context: Context, record: Record, condition: str | None) -> ExtAuthz | None:
    protocol = record.get("protocol")
    http = None if protocol is None else protocol.get("http")
    grpc = None if protocol is None else protocol.get("grpc")
    sent = record.get("includeRequestHeaders")
    entry: dict[str, Any] = {
        "grpc": _grpc(context, grpc) if http is None else None,
        "http": None if http is None else _http(context, http),
        "failure_status": _failure(context, record),
        "sent": None if sent is None else _names(context, record, "includeRequestHeaders", pseudo=True),
        "body": _body(context, record.get("includeRequestBody")),
        "cache": _cache(context, record.get("cache")),
        "condition": condition,
    }
    if http is not None and (unsent := [name for name in entry["sent"] or () if name in PSEUDO]):
        shown = f"{', '.join(unsent)} of includeRequestHeaders"
        context.warnings.append(f"{record.path}: {shown}: pseudo-headers are not sent to an HTTP service")
    if http is None and (message := missing("envoy.service.auth")) is not None:
        context.fault(Problem.ENVIRONMENT, record, "protocol" if protocol is not None else "", message)
    if context.directory is None:
        return None
    service = context.directory.remote_service(record, grpc=http is None)
    if service is None:
        return None
    return ExtAuthz(service=service, timeout_ms=service.policies.request_timeout_ms or DEFAULT_TIMEOUT_MS, **entry)


def _grpc(context: Context, record: Record | None) -> AuthzGrpc:
    if record is None:
        return AuthzGrpc()
    return AuthzGrpc(
        context=tuple((record.get("context") or {}).items()),
        metadata=check_map(context, record, "metadata", context.phase),
    )


def _http(context: Context, record: Record) -> AuthzHttp:
    return AuthzHttp(
        path=checked(context, record, "path", context.phase),
        redirect=checked(context, record, "redirect", context.phase),
        body=checked(context, record, "body", context.phase),
        kept=_names(context, record, "includeResponseHeaders"),
        added=_added(context, record),
        metadata=check_map(context, record, "metadata", "answer"),
    )


def _added(context: Context, record: Record) -> tuple[tuple[str, str], ...]:
    pairs = check_map(context, record, "addRequestHeaders", context.phase)
    for name, _ in pairs:
        if not _is_name(name) or name.lower() in OWN_FIELDS:
            context.fault(Problem.VALUE, record, "addRequestHeaders", f"{name!r} cannot be set")
    return tuple((name.lower(), text) for name, text in pairs)


def _names(context: Context, record: Record, key: str, *, pseudo: bool = False) -> tuple[str, ...]:
    names = [name.lower() for name in record.get(key) or ()]
    for name in names:
        if not _is_name(name) and not (pseudo and name in PSEUDO):
            context.fault(Problem.VALUE, record, key, f"{name!r} is not a valid header name")
    return tuple(dict.fromkeys(names))


def _is_name(name: str) -> bool:
    """Return whether this is a token (RFC 9110 section 5.1)."""
    return bool(name) and all(char.isascii() and (char.isalnum() or char in "!#$%&'*+-.^_`|~") for char in name)


def _failure(context: Context, record: Record) -> int | None:
    mode = record.get("failureMode")
    if isinstance(mode, Record):
        status = int(mode["denyWithStatus"])
        if not 200 <= status <= 599:
            context.fault(Problem.VALUE, mode, "denyWithStatus", "expected a status from 200 to 599")
        return status
    return None if mode == "allow" else 403


def _body(context: Context, record: Record | None) -> AuthzBody | None:
    if record is None:
        return None
    if record.get("maxRequestBytes") == 0:
        context.fault(Problem.VALUE, record, "maxRequestBytes", "at least 1")
    return AuthzBody(
        max_bytes=record.get("maxRequestBytes", DEFAULT_BODY_BYTES),
        partial=record.get("allowPartialMessage", False),
        as_bytes=record.get("packAsBytes", False),
    )


def _cache(context: Context, record: Record | None) -> AuthzCache | None:
    if record is None:
        return None
    keys = tuple(str(text) for text in record.get("key") or ())
    for text in keys:
        check(context, record, "key", text, context.phase)
    ttl = checked(context, record, "ttl", context.phase)
    entries = record.get("maxEntries", DEFAULT_ENTRIES)
    if not keys:
        context.warnings.append(f"{record.path}: without a key nothing is cached")
    if entries < 1:
        context.fault(Problem.VALUE, record, "maxEntries", "at least 1")
    return None if ttl is None else AuthzCache(keys=keys, ttl=ttl, max_entries=entries)


def dump(entries: tuple[ExtAuthz, ...]) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    shown = [_dump(one) for one in entries]
    return shown[0] if len(shown) == 1 and "condition" not in shown[0] else {"conditional": shown}


def _dump(entry: ExtAuthz) -> dict[str, Any]:
    found: dict[str, Any] = {} if entry.condition is None else {"condition": entry.condition}
    found |= dump_target(entry.service)
    if entry.http is not None:
        found["protocol"] = {"http": _dump_http(entry.http)}
    elif entry.grpc is not None:
        pairs = (("context", entry.grpc.context), ("metadata", entry.grpc.metadata))
        found["protocol"] = {"grpc": {key: dict(value) for key, value in pairs if value}}
    status = entry.failure_status
    found["failureMode"] = "allow" if status is None else "deny" if status == 403 else {"denyWithStatus": status}
    if entry.sent is not None:
        found["includeRequestHeaders"] = list(entry.sent)
    if entry.body is not None:
        found["includeRequestBody"] = {
            "maxRequestBytes": entry.body.max_bytes,
            "allowPartialMessage": entry.body.partial,
            "packAsBytes": entry.body.as_bytes,
        }
    if entry.cache is not None:
        cache = entry.cache
        found["cache"] = {"key": list(cache.keys), "ttl": cache.ttl, "maxEntries": cache.max_entries}
    return found | {"policies": dump_policies(entry.service, entry.timeout_ms)}


def _dump_http(http: AuthzHttp) -> dict[str, Any]:
    texts = (("path", http.path), ("redirect", http.redirect), ("body", http.body))
    found: dict[str, Any] = {key: text for key, text in texts if text is not None}
    if http.kept:
        found["includeResponseHeaders"] = list(http.kept)
    for key, pairs in (("addRequestHeaders", http.added), ("metadata", http.metadata)):
        if pairs:
            found[key] = dict(pairs)
    return found
