"""`directResponse` to the IR and back."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.shape.modifiers import free_header
from headgate.document.fields import header_value
from headgate.errors import Problem
from headgate.ir.policies import DirectResponse

# A CEL text literal without escapes or with those that JSON has too.
_LITERAL: Final = re.compile(r"\s*(\"(?:[^\"\\\n]|\\[\"\\/bfnrt]|\\u[0-9a-fA-F]{4})*\"|'[^'\\\n]*')\s*")


def literal(expression: str) -> str | None:
    """Return the text of a CEL expression that is one text literal, None for any other."""
    found = _LITERAL.fullmatch(expression)
    if found is None:
        return None
    quoted = found[1]
    return str(json.loads(quoted, strict=False)) if quoted[0] == '"' else quoted[1:-1]


def parse(context: Context, record: Record) -> DirectResponse | None:
    """Return the policy; the form with conditions was reported by the check."""
    if "status" not in record:
        return None
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


def dump(response: DirectResponse) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    try:
        body: Any = response.body.decode()
    except UnicodeDecodeError:
        body = list(response.body)
    return {"status": response.status, "body": body, "headers": dict(response.headers)}
