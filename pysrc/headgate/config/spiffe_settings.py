"""Where the SPIFFE Workload API is: `config.spiffe.endpoint`, or the environment's SPIFFE_ENDPOINT_SOCKET."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import unquote

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.process_settings import WORKLOAD_API
from headgate.document.fields import MAX_PORT
from headgate.errors import Problem
from headgate.ir.process import WorkloadEndpoint

FORM: Final = "not unix:///path or tcp://address:port"


def endpoint_of(text: str) -> WorkloadEndpoint:
    """Parse the URI of a Workload API. Raises ValueError."""
    scheme, colon, rest = text.partition(":")
    if not colon or any(mark in rest for mark in "?#@\0"):
        raise ValueError(FORM)
    if scheme.lower() == "unix":
        path = unquote(rest.removeprefix("//"))
        if not path.startswith("/") or path == "/":
            raise ValueError(FORM)
        return WorkloadEndpoint(text=text, unix_path=path)
    host, _, digits = rest.removeprefix("//").rpartition(":")
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        raise ValueError(FORM) from None
    if scheme.lower() != "tcp" or not digits.isascii() or not digits.isdigit() or not 1 <= int(digits) <= MAX_PORT:
        raise ValueError(FORM)
    return WorkloadEndpoint(text=text, host=str(address), port=int(digits))


def endpoint_in(context: Context, record: Record, *, report: bool) -> WorkloadEndpoint | None:
    """Return where the Workload API is, None if nothing says it. `record` is `config`; `report`: report a fault.

    The file wins: the variable is how an agent makes itself known to all workloads of a machine. One of another form
    counts as none.
    """
    spiffe = record.get("spiffe")
    given = None if spiffe is None else spiffe.get("endpoint")
    try:
        if given is not None:
            return endpoint_of(given)
        text = context.environ.get(WORKLOAD_API)
        return endpoint_of(text) if text else None
    except ValueError as error:
        if report and given is not None:
            context.fault(Problem.VALUE, spiffe, "endpoint", str(error))
        return None
