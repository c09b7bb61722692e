"""`requestMirror` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.errors import Problem
from headgate.ir.policy.mirror import Mirror


def parse(context: Context, record: Record) -> Mirror | None:
    """Return the policy."""
    reference, fraction = record.get("backend"), record.get("percentage", 0)
    if not 0 <= fraction <= 1:
        context.fault(Problem.VALUE, record, "percentage", "a fraction from 0.0 to 1.0 is wanted")
    if reference is None or context.directory is None:
        return None
    target = context.directory.copies_to(reference)
    return None if target is None else Mirror(target=target, fraction=float(fraction))


def dump(mirror: Mirror) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    target = mirror.target
    shown: Any = {"name": target.name, "port": target.port} if target.kind == "service" else target.name
    return {"backend": {target.kind: shown}, "percentage": mirror.fraction}
