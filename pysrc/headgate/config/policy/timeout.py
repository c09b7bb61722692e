"""`timeout` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.document.fields import show_milliseconds
from headgate.ir.policies import Timeout


def parse(context: Context, record: Record) -> Timeout:
    """Return the policy; every checked value is a good one."""
    return Timeout(
        request_timeout_ms=record.get("requestTimeout"),
        backend_request_timeout_ms=record.get("backendRequestTimeout"),
    )


def dump(timeout: Timeout) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    pairs = (
        ("requestTimeout", timeout.request_timeout_ms),
        ("backendRequestTimeout", timeout.backend_request_timeout_ms),
    )
    return {name: show_milliseconds(value) for name, value in pairs if value is not None}
