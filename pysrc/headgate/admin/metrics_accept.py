"""The format of the metrics page, by what a client accepts (RFC 9110 section 12.5.1)."""

from __future__ import annotations

import enum
from typing import Final


class Page(enum.Enum):
    """Formats of metrics, in the order in which equally wanted ones are chosen."""

    TEXT = "text"
    OPENMETRICS = "openmetrics"
    PROTOBUF = "protobuf"


KINDS: Final = {
    "text/plain": Page.TEXT,
    "text/*": Page.TEXT,
    "*/*": Page.TEXT,
    "application/openmetrics-text": Page.OPENMETRICS,
    "application/vnd.google.protobuf": Page.PROTOBUF,
    "application/protobuf": Page.PROTOBUF,
    "application/x-protobuf": Page.PROTOBUF,
}


def wanted(accept: str) -> Page:
    """Return the format that an Accept header prefers by its q values; text if it names none."""
    best = dict.fromkeys(Page, 0.0)
    for entry in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in entry.split(";"))
        page = KINDS.get(kind)
        if page is None:
            continue
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                quality = _quality(value.strip())
        best[page] = max(best[page], quality)
    return max(best, key=best.__getitem__)


def _quality(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return 0.0
    return found if 0.0 <= found <= 1.0 else 0.0
