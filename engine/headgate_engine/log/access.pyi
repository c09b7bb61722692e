from collections.abc import Iterable, Mapping

from headgate_engine.log.fields import LogFields

FIELDS: tuple[str, ...]
ORDER: tuple[str, ...]
MAX_REMOVED: int

class AccessLogFormat:
    """How access-log lines look. format: `text` or `json`; remove: keys left out (at most 32), else ValueError. fields:
    what expressions add, and which requests they leave out.

    A request is given to `line` as a mapping of log keys: `gateway` and `route` as (namespace, name), `http.host` and
    `http.path` (with query) as bytes, `http.version` as minor version, `duration` in ns, `fields` for what is not in
    FIELDS; the rest as the line shows it.
    """

    def __init__(self, format: str = "text", remove: Iterable[str] = (), fields: LogFields | None = None) -> None: ...
    @property
    def as_json(self) -> bool: ...
    @property
    def remove(self) -> tuple[str, ...]: ...
    def line(self, wall_ns: int, request: Mapping[str, object]) -> bytes:
        """Return the line of a request given in parts, by the code of the request path."""

    def nanoseconds_per_line(self, request: Mapping[str, object], *, rounds: int = 10000) -> float:
        """Return the mean time of a line, measured in C; for benchmarks. rounds: 1..10**8, else ValueError."""
