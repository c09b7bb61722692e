"""Changes by expressions."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """One half: names with expressions, in the order metadata, replace, add, set, remove, body."""

    metadata: Pairs = ()
    replace: str | None = None
    add: Pairs = ()
    set: Pairs = ()
    remove: tuple[str, ...] = ()
    body: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """Both halves; `condition`: of this entry in the form with conditions."""

    request: Transform | None = None
    response: Transform | None = None
    condition: str | None = None
