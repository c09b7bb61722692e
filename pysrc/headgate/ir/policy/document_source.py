"""Sources of documents: inline text, a file, or a URL."""

from __future__ import annotations

from headgate.document import fields
from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.tls import BackendTls


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSource:
    """A document, or the place to fetch it from.

    `document` is the text itself, which was read from `file` if that is set. Otherwise the document is fetched from
    `path` at `endpoint`, or at one of `others` where that fails; `url` may hold credentials, `place` is the URL, or the
    name of the service, without them. A key set is fetched again after `refresh_s` seconds.
    """

    document: str | None = None
    file: str | None = None
    url: str | None = None
    place: str | None = None
    endpoint: Endpoint | None = None
    path: str = "/"
    others: tuple[Endpoint, ...] = ()
    refresh_s: int = 300

    @property
    def shown(self) -> str:
        """Return the place without credentials."""
        return self.place or self.file or "inline"

    @staticmethod
    def remote(url: str) -> DocumentSource:
        """Return the source for a URL, which may have a query. Raises ValueError if it is not a valid URL."""
        from headgate.document.credentials import shown_url  # workers need it for traces only

        base, mark, query = url.partition("?")
        target = fields.url(base)
        if any(char <= " " or char >= "\x7f" or char == "#" for char in query):
            raise ValueError("not a URL")
        # The key differs from that of a backend at the same address, so that a busy pool of the backend does not delay
        # these requests.
        endpoint = Endpoint(
            key=f"documents+{target.scheme}://{target.host}:{target.port}",
            host=target.host,
            port=target.port,
            tls=BackendTls() if target.scheme == "https" else None,
        )
        path = (target.path or "/") + mark + query
        return DocumentSource(url=url, place=shown_url(url), endpoint=endpoint, path=path)
