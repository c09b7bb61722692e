"""`requestMirror` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.errors import Problem
from headgate.ir.endpoint import Endpoint
from headgate.ir.policy.mirror import Mirror
from headgate.ir.tls import BackendTls


def parse(context: Context, record: Record) -> Mirror | None:
    """Return the policy; only hosts can be targets yet."""
    target, fraction = record.get("backend"), record.get("percentage", 0)
    if not 0 <= fraction <= 1:
        context.fault(Problem.VALUE, record, "percentage", "a fraction from 0.0 to 1.0 is wanted")
    if target is None:
        return None
    for kind in ("service", "backend"):
        if target.get(kind) is not None:
            context.fault(Problem.UNSUPPORTED, target, kind, " as the target of a mirror")
    host = target.get("host")
    if host is None:
        return None
    tls = BackendTls() if host.scheme == "https" else None
    plain = Endpoint(key="", host=host.host, port=host.port, unix_path=host.unix_path, tls=tls)
    endpoint = Endpoint(
        key=f"{'https' if tls else 'http'}://{plain.address}",
        host=host.host,
        port=host.port,
        unix_path=host.unix_path,
        tls=tls,
    )
    return Mirror(endpoint=endpoint, fraction=float(fraction))


def dump(mirror: Mirror) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    return {"backend": {"host": mirror.endpoint.address}, "percentage": mirror.fraction}
