"""Transformations of requests and responses by expressions."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """The changes of a request or of a response: (name, expression) pairs.

    They are applied in the order metadata, replace, add, set, remove, body.
    """

    metadata: Pairs = ()
    replace: str | None = None
    add: Pairs = ()
    set: Pairs = ()
    remove: tuple[str, ...] = ()
    body: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """The changes of requests and responses.

    `condition` is the expression under which this entry applies, if the policy has conditional entries.
    """

    request: Transform | None = None
    response: Transform | None = None
    condition: str | None = None
