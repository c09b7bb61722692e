"""Documents that are given as they are, as a file, or as a URL."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.document.lazy_dataclass import replace
from headgate.errors import Problem
from headgate.ir.policy.document_source import DocumentSource


def parse(context: Context, record: Record, key: str) -> DocumentSource | None:
    """Return where the document of entry `key` is; None when absent or at fault. Its content is not looked at."""
    value = record.get(key)
    if isinstance(value, Record):
        if "url" in value:
            found_at = remote(context, value, "url")
            if value.get("path") is not None:
                context.fault(Problem.CONFLICT, value, "path", "is for a service: url has the path")
            return found_at and _refreshed(value, found_at)
        if "file" not in value:
            return _of_service(context, value)
        found = context.read_file(value, "file", value["file"]) if "file" in value else None
        if found is None:
            return None
        return DocumentSource(document=found[1].decode("utf-8", "replace"), file=found[0])
    return None if value is None else DocumentSource(document=str(value))


def remote(context: Context, record: Record, key: str) -> DocumentSource | None:
    """Return the source behind the URL of entry `key`; None when absent or at fault."""
    url = record.get(key)
    if url is None:
        return None
    try:
        return DocumentSource.remote(url)
    except ValueError as error:
        context.fault(Problem.VALUE, record, key, str(error))
        return None


def _refreshed(record: Record, source: DocumentSource) -> DocumentSource:
    every = record.get("cacheDuration")
    return source if every is None else replace(source, refresh_s=max(every // 1000, 1))


def _of_service(context: Context, record: Record) -> DocumentSource | None:
    """Return the source at a service, a backend or a host; None when it is at fault."""
    path = record.get("path") or "/"
    if not path.startswith("/") or any(not "!" <= char <= "~" or char == "#" for char in path):
        context.fault(Problem.VALUE, record, "path", "a path must begin with / and have no spaces")
        return None
    service = None if context.directory is None else context.directory.remote_service(record, grpc=False)
    if service is None:
        return None
    # See DocumentSource.remote about the key.
    places = [replace(place, key=f"documents+{place.key}") for place, _ in service.places]
    port = f":{service.port}" if service.port else ""
    found = DocumentSource(
        place=f"{service.kind} {service.name}{port}{path}",
        endpoint=places[0] if places else None,
        others=tuple(places[1:]),
        path=path,
    )
    return _refreshed(record, found)


def dump(source: DocumentSource) -> Any:
    """Return the form of the configuration dump."""
    if source.place is not None and source.url is None:
        return source.place
    return {"url": source.url} if source.url else {"file": source.file} if source.file else "inline"
