"""Documents that are given as they are, as a file, or as a URL."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.errors import Problem
from headgate.ir.policy.document_source import DocumentSource


def parse(context: Context, record: Record, key: str) -> DocumentSource | None:
    """Return where the document of entry `key` is; None when absent or at fault. Its content is not looked at."""
    value = record.get(key)
    if isinstance(value, Record):
        if "url" in value:
            return remote(context, value, "url")
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


def dump(source: DocumentSource) -> Any:
    """Return the form of the configuration dump."""
    return {"url": source.url} if source.url else {"file": source.file} if source.file else "inline"
