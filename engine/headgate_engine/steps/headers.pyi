from collections.abc import Iterable

from headgate_engine.plan.step import Step

FRAMING: frozenset[bytes]

class HeaderEdit:
    """Fields to add, set and remove, checked and rendered once."""

    def __init__(
        self,
        added: Iterable[tuple[str, str]],
        replaced: Iterable[tuple[str, str]],
        removed: Iterable[str],
    ) -> None: ...

class RequestHeaderStep(Step):
    """Edits request fields; `host` or `:authority` changes the authority. ValueError for illegal names or values."""

    def __init__(
        self,
        added: Iterable[tuple[str, str]] = (),
        replaced: Iterable[tuple[str, str]] = (),
        removed: Iterable[str] = (),
    ) -> None: ...

class ResponseHeaderStep(Step):
    """Edits response fields, also of answers the gateway makes itself."""

    def __init__(
        self,
        added: Iterable[tuple[str, str]] = (),
        replaced: Iterable[tuple[str, str]] = (),
        removed: Iterable[str] = (),
    ) -> None: ...
