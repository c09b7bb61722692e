from collections.abc import Iterable

from headgate_engine.log.fields import LogFields
from headgate_engine.log.request_fields import RequestFields

FIELDS: tuple[str, ...]
ORDER: tuple[str, ...]

class AccessLogFormat(RequestFields):
    """The format of access-log lines.

    format: `text` or `json`. remove: keys to leave out (at most 32). fields: keys that expressions add, and the filter
    of requests. Raises ValueError for other values.

    `line` takes a request as a mapping of log keys: `gateway` and `route` as (namespace, name), `http.host` and
    `http.path` (with query) as bytes, `http.version` as minor version, `duration` in ns, `fields` for keys that are not
    in FIELDS; the others in the form of the line.
    """

    def __init__(self, format: str = "text", remove: Iterable[str] = (), fields: LogFields | None = None) -> None: ...
    @property
    def as_json(self) -> bool: ...
    @property
    def remove(self) -> tuple[str, ...]: ...
