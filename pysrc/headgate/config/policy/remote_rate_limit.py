"""`remoteRateLimit` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.extras import missing
from headgate.config.policy.conditional import conditions
from headgate.config.policy.expression import check, checked
from headgate.config.policy.remote_service import dump_policies, dump_target
from headgate.errors import Problem
from headgate.ir.policy.remote_rate_limit import DEFAULT_TIMEOUT_MS, LimitDescriptor, RemoteRateLimit

LIBRARY = "envoy.service.ratelimit"
# Phases of the expressions of a descriptor: for requests, for tokens before a model is asked, and behind its answer.
REQUESTS, TOKENS, ANSWERED = "route", "backend", "log"


def parse(context: Context, record: Record) -> tuple[RemoteRateLimit, ...] | None:
    """Return the entries: one without a condition, or those of the form with conditions."""
    found = [_entry(context, entry, condition) for entry, condition in conditions(context, record)]
    return tuple(one for one in found if one is not None) or None


def _entry(context: Context, record: Record, condition: str | None) -> RemoteRateLimit | None:
    if "domain" not in record:
        return None
    if (message := missing(LIBRARY)) is not None:
        context.fault(Problem.ENVIRONMENT, record, "", message)
    if not record["domain"]:
        context.fault(Problem.VALUE, record, "domain", "a domain needs a name")
    records = record.records("descriptors")
    if not records:
        context.fault(Problem.VALUE, record, "descriptors", "at least one is required")
    descriptors = tuple(_descriptor(context, one) for one in records)
    service = None if context.directory is None else context.directory.remote_service(record)
    if service is None:
        return None
    return RemoteRateLimit(
        service=service,
        domain=record["domain"],
        descriptors=descriptors,
        fail_open=record.get("failureMode") == "failOpen",
        timeout_ms=service.policies.request_timeout_ms or DEFAULT_TIMEOUT_MS,
        condition=condition,
    )


def _descriptor(context: Context, record: Record) -> LimitDescriptor:
    tokens = record.get("type") == "tokens"
    phase = TOKENS if tokens else REQUESTS
    entries = []
    for entry in record.records("entries"):
        check(context, entry, "value", str(entry["value"]), phase)
        if not entry["key"]:
            context.fault(Problem.VALUE, entry, "key", "an entry needs a key")
        entries.append((entry["key"], str(entry["value"])))
    if not entries:
        context.fault(Problem.VALUE, record, "entries", "at least one is required")
    return LimitDescriptor(
        entries=tuple(entries),
        tokens=tokens,
        cost=checked(context, record, "cost", ANSWERED if tokens else REQUESTS),
        limit=checked(context, record, "limitOverride", phase),
    )


def dump(entries: tuple[RemoteRateLimit, ...]) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    shown = [_dump(one) for one in entries]
    return shown[0] if len(shown) == 1 and "condition" not in shown[0] else {"conditional": shown}


def _dump(entry: RemoteRateLimit) -> dict[str, Any]:
    found: dict[str, Any] = {} if entry.condition is None else {"condition": entry.condition}
    return {
        **found,
        **dump_target(entry.service),
        "domain": entry.domain,
        "descriptors": [_dump_descriptor(one) for one in entry.descriptors],
        "failureMode": "failOpen" if entry.fail_open else "failClosed",
        "policies": dump_policies(entry.service, entry.timeout_ms),
    }


def _dump_descriptor(descriptor: LimitDescriptor) -> dict[str, Any]:
    found: dict[str, Any] = {
        "entries": [{"key": key, "value": text} for key, text in descriptor.entries],
        "type": "tokens" if descriptor.tokens else "requests",
    }
    if descriptor.cost is not None:
        found["cost"] = descriptor.cost
    if descriptor.limit is not None:
        found["limitOverride"] = descriptor.limit
    return found
