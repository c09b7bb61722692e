from collections.abc import Iterable

from headgate_engine.plan.step import Step

FRAMING: frozenset[bytes]

class HeaderEdit:
    """Fields to add, to set and to remove, in this order, validated and rendered once.

    Applying an edit takes one pass over the fields of the message, whatever the number of changes.
    """

    def __init__(
        self,
        added: Iterable[tuple[str, str]] = (),
        replaced: Iterable[tuple[str, str]] = (),
        removed: Iterable[str] = (),
    ) -> None: ...

class RequestHeaderStep(Step):
    """Edits request fields. `host` or `:authority` changes the authority.

    Raises ValueError for invalid names or values.
    """

    def __init__(
        self,
        added: Iterable[tuple[str, str]] = (),
        replaced: Iterable[tuple[str, str]] = (),
        removed: Iterable[str] = (),
    ) -> None: ...

class ResponseHeaderStep(Step):
    """Edits response fields, also of the gateway's own replies."""

    def __init__(
        self,
        added: Iterable[tuple[str, str]] = (),
        replaced: Iterable[tuple[str, str]] = (),
        removed: Iterable[str] = (),
    ) -> None: ...
