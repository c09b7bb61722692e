"""`extProc` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.extras import missing
from headgate.config.policy.conditional import conditions
from headgate.config.policy.expression import check_map
from headgate.config.policy.remote_service import dump_policies, dump_target
from headgate.document.nodes import MapEntry
from headgate.errors import Problem
from headgate.ir.policy.ext_proc import DEFAULT_TIMEOUT_MS, STREAMED, ExtProc, Pairs, ProcessingOptions, SentParts

LIBRARY = "envoy.service.ext_proc"


def parse(context: Context, record: Record) -> tuple[ExtProc, ...] | None:
    """Return the entries: one without a condition, or those of the form with conditions."""
    found = [_entry(context, entry, condition) for entry, condition in conditions(context, record)]
    return tuple(one for one in found if one is not None) or None


def _entry(context: Context, record: Record, condition: str | None) -> ExtProc | None:
    if (message := missing(LIBRARY)) is not None:
        context.fault(Problem.ENVIRONMENT, record, "", message)
    metadata = _metadata(context, record)
    request = check_map(context, record, "requestAttributes", context.phase)
    response = check_map(context, record, "responseAttributes", "response")
    options = _options(record.get("processingOptions"))
    service = None if context.directory is None else context.directory.remote_service(record)
    if service is None:
        return None
    return ExtProc(
        service=service,
        fail_open=record.get("failureMode") == "failOpen",
        timeout_ms=service.policies.request_timeout_ms or DEFAULT_TIMEOUT_MS,
        metadata=metadata,
        request_attributes=request,
        response_attributes=response,
        options=options,
        condition=condition,
    )


def _metadata(context: Context, record: Record) -> tuple[tuple[str, Pairs], ...]:
    entries = record.get("metadataContext")
    if not entries:
        return ()
    node = record.at("metadataContext")
    inner = Record(node.node if isinstance(node, MapEntry) else record.node, f"{record.path}.metadataContext", entries)
    return tuple((name, check_map(context, inner, name, context.phase)) for name in entries)


def _options(record: Record | None) -> ProcessingOptions:
    if record is None:
        return ProcessingOptions()
    request, response = (
        SentParts(
            headers=record.get(f"{side}HeaderMode", "send") == "send",
            body=record.get(f"{side}BodyMode", STREAMED),
            trailers=record.get(f"{side}TrailerMode", "send") == "send",
        )
        for side in ("request", "response")
    )
    return ProcessingOptions(request=request, response=response, override=record.get("allowModeOverride", False))


def dump(entries: tuple[ExtProc, ...]) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    shown = [_dump(one) for one in entries]
    return shown[0] if len(shown) == 1 and "condition" not in shown[0] else {"conditional": shown}


def _dump(entry: ExtProc) -> dict[str, Any]:
    found: dict[str, Any] = {} if entry.condition is None else {"condition": entry.condition}
    found |= dump_target(entry.service)
    found["failureMode"] = "failOpen" if entry.fail_open else "failClosed"
    if entry.metadata:
        found["metadataContext"] = {name: dict(pairs) for name, pairs in entry.metadata}
    if entry.request_attributes:
        found["requestAttributes"] = dict(entry.request_attributes)
    if entry.response_attributes:
        found["responseAttributes"] = dict(entry.response_attributes)
    options: dict[str, Any] = {}
    for side, parts in (("request", entry.options.request), ("response", entry.options.response)):
        options[f"{side}HeaderMode"] = "send" if parts.headers else "skip"
        options[f"{side}BodyMode"] = parts.body
        options[f"{side}TrailerMode"] = "send" if parts.trailers else "skip"
    found["processingOptions"] = {**options, "allowModeOverride": entry.options.override}
    return found | {"policies": dump_policies(entry.service, entry.timeout_ms)}
