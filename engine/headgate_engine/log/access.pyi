from collections.abc import Iterable

FIELDS: tuple[str, ...]
MAX_REMOVED: int

class AccessLogFormat:
    """How access-log lines look. format: `text` or `json`; remove: keys left out (at most 32), else ValueError."""

    def __init__(self, format: str = "text", remove: Iterable[str] = ()) -> None: ...
    @property
    def as_json(self) -> bool: ...
    @property
    def remove(self) -> tuple[str, ...]: ...
