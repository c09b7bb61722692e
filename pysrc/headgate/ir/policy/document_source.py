"""A document that the configuration holds, names as a file, or leaves to be fetched."""

from __future__ import annotations

from headgate.document import fields
from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.tls import BackendTls


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSource:
    """`document` as it is (`file` tells where it was read), or fetched: `path` at `endpoint` (`url` for logs)."""

    document: str | None = None
    file: str | None = None
    url: str | None = None
    endpoint: Endpoint | None = None
    path: str = "/"

    @staticmethod
    def remote(url: str) -> DocumentSource:
        """Return the source of a URL, which may have a query; ValueError when it is none."""
        base, mark, query = url.partition("?")
        target = fields.url(base)
        if any(char <= " " or char >= "\x7f" or char == "#" for char in query):
            raise ValueError("not a URL")
        # Not the pool of a backend at the same address: how these calls wait must not depend on its traffic.
        endpoint = Endpoint(
            key=f"documents+{target.scheme}://{target.host}:{target.port}",
            host=target.host,
            port=target.port,
            tls=BackendTls() if target.scheme == "https" else None,
        )
        return DocumentSource(url=url, endpoint=endpoint, path=(target.path or "/") + mark + query)
