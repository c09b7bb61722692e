"""`requestMirror` to the IR and back."""

from __future__ import annotations

from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.errors import Problem
from headgate.ir.policy.mirror import Mirror

# Of one route.
MOST_MIRRORS: Final = 16


def parse(context: Context, holder: Record, key: str) -> tuple[Mirror, ...]:
    """Return the mirrors of an entry, which is one or a list."""
    if holder.get(key) is None:
        return ()
    records = [holder[key]] if isinstance(holder[key], Record) else holder.records(key)
    if len(records) > MOST_MIRRORS:
        context.fault(Problem.VALUE, holder, key, f"{len(records)} mirrors, but {MOST_MIRRORS} is the maximum")
        return ()
    found = (_mirror(context, one) for one in records)
    return tuple(one for one in found if one is not None)


def _mirror(context: Context, record: Record) -> Mirror | None:
    reference, fraction = record.get("backend"), record.get("percentage", 0)
    if not 0 <= fraction <= 1:
        context.fault(Problem.VALUE, record, "percentage", "expected a fraction from 0.0 to 1.0")
    if reference is None or context.directory is None:
        return None
    target = context.directory.copies_to(reference)
    return None if target is None else Mirror(target=target, fraction=float(fraction))


def dump(mirrors: tuple[Mirror, ...]) -> Any:
    """Return the form of the configuration dump: one mirror as such, several as a list."""
    found = [_shown(one) for one in mirrors]
    return found[0] if len(found) == 1 else found


def _shown(mirror: Mirror) -> dict[str, Any]:
    target = mirror.target
    shown: Any = {"name": target.name, "port": target.port} if target.kind == "service" else target.name
    return {"backend": {target.kind: shown}, "percentage": mirror.fraction}
