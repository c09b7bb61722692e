"""`buffer` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.ir.policy.buffer import Buffer, BufferBody


def parse(context: Context, record: Record) -> Buffer:
    """Return the policy; every checked value is a good one."""
    return Buffer(request=_body(record.get("request")), response=_body(record.get("response")))


def _body(record: Record | None) -> BufferBody | None:
    if record is None:
        return None
    return BufferBody(max_bytes=record.get("maxBytes"), fail_open=record.get("failureMode") == "failOpen")


def dump(buffer: Buffer) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found: dict[str, Any] = {}
    for name, body in (("request", buffer.request), ("response", buffer.response)):
        if body is not None:
            found[name] = {"failureMode": "failOpen" if body.fail_open else "failClosed"}
            if body.max_bytes is not None:
                found[name]["maxBytes"] = body.max_bytes
    return found
