"""Where the request log is kept, and how much of it."""

from __future__ import annotations

from typing import Final

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret

MAX_RECORDS = 1_000_000
MAX_BYTES = 1 << 30
MAX_CONNECTIONS = 5
# Parameters of a URL of PostgreSQL that name the server or the database.
WHERE: Final = frozenset({"host", "port", "dbname", "database"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLogStore:
    """The database of the request log: the SQLite file `path` (absolute), or the PostgreSQL server at `url`.

    `shown` is what logs and dumps say of it: the path, or the URL without its user, password and parameters. At most
    `max_connections` are open to a PostgreSQL server, `reserved` of them by others than the request log. The oldest
    records are deleted beyond `max_records`, beyond `max_bytes`, and when they are older than `max_age_ms` (None: any
    age).
    """

    path: str = ""
    url: Secret | None = None
    shown: str = ""
    max_connections: int = MAX_CONNECTIONS
    reserved: int = 0
    max_records: int = MAX_RECORDS
    max_bytes: int = MAX_BYTES
    max_age_ms: int | None = None

    @property
    def database(self) -> tuple[str, ...]:
        """What tells this database from others, however it is used and whatever its user and passwords are."""
        if self.url is None:
            return (self.path,)
        from urllib.parse import parse_qsl, urlsplit  # where the database is PostgreSQL

        query = parse_qsl(urlsplit(self.url.reveal()).query)
        return (self.shown, *sorted(f"{name}={value}" for name, value in query if name in WHERE))
