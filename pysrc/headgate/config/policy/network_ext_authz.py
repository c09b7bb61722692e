"""`networkExtAuthz` to the IR: `extAuthz` of a connection, which has no request yet. Its dump is that of `extAuthz`."""

from __future__ import annotations

from typing import Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy import ext_authz
from headgate.config.policy.expression import check
from headgate.errors import Problem
from headgate.ir.policy.ext_authz import CONNECTION_ENDS, ExtAuthz

# What only a request has, or an answer to it.
OF_REQUESTS: Final = ("includeRequestHeaders", "includeRequestBody")
OF_ANSWERS: Final = ("redirect", "body", "includeResponseHeaders", "metadata")


def parse(context: Context, record: Record) -> ExtAuthz | None:
    """Return the service that is asked about connections."""
    _refuse(context, record, OF_REQUESTS)
    protocol = record.get("protocol")
    http = None if protocol is None else protocol.get("http")
    if http is not None:
        _refuse(context, http, OF_ANSWERS)
    mode = record.get("failureMode")
    if isinstance(mode, Record):
        message = "a connection gets no status: use 'deny' to close it, or 'allow'"
        context.fault(Problem.VALUE, record, "failureMode", message)
        return None
    with context.reading("network"):
        found = ext_authz.parse(context, record)
        if http is None:
            check(context, record, "", CONNECTION_ENDS, "network")  # compiled with those of the file
    return None if found is None else found[0]


def _refuse(context: Context, record: Record, names: tuple[str, ...]) -> None:
    for name in names:
        if record.get(name):
            context.fault(Problem.VALUE, record, name, "connections have no request and no response")
