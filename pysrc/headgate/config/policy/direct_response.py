"""`directResponse` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.conditional import conditions
from headgate.config.policy.expression import check, checked
from headgate.config.shape.modifiers import free_header
from headgate.errors import Problem
from headgate.ir.policies import DirectResponse


def parse(context: Context, record: Record) -> tuple[DirectResponse, ...]:
    """Return the entries: one without a condition, or those of the form with conditions."""
    found = [_entry(context, entry, condition) for entry, condition in conditions(context, record)]
    return tuple(one for one in found if one is not None)


def _entry(context: Context, record: Record, condition: str | None) -> DirectResponse | None:
    if "status" not in record:
        return None
    headers = []
    for name, expression in (record.get("headers") or {}).items():
        inner = Record(record.node, f"{record.path}.headers", {})
        check(context, inner, name, expression, "route")
        try:
            headers.append((free_header(name), expression))
        except ValueError as error:
            context.fault(Problem.VALUE, inner, name, str(error))
    body = record.get("body", "")
    expression = checked(context, record, "bodyExpression", "route")
    if expression is not None and "body" in record:
        context.fault(Problem.CONFLICT, record, "bodyExpression", "only one of 'body' and 'bodyExpression' can be set")
    return DirectResponse(
        status=record["status"],
        body=body.encode() if isinstance(body, str) else bytes(body),
        body_expression=expression,
        headers=tuple(headers),
        condition=condition,
    )


def dump(responses: tuple[DirectResponse, ...]) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    shown = [_shown(one) for one in responses]
    return shown[0] if len(shown) == 1 and "condition" not in shown[0] else {"conditional": shown}


def _shown(response: DirectResponse) -> dict[str, Any]:
    found: dict[str, Any] = {} if response.condition is None else {"condition": response.condition}
    found["status"] = response.status
    if response.body_expression is not None:
        found["bodyExpression"] = response.body_expression
    else:
        try:
            found["body"] = response.body.decode()
        except UnicodeDecodeError:
            found["body"] = list(response.body)
    return found | {"headers": dict(response.headers)}
