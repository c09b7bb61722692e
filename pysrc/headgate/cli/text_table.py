"""Tables of text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GAP = "  "


def printable(text: str) -> str:
    """Return a text for a terminal: names may be those that clients choose, and nothing in them may control it."""
    return "".join(char if char.isprintable() else "?" for char in text)


def text_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return header and rows, left aligned, two blanks between columns."""
    lines = [tuple(heads), *(tuple(map(printable, row)) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    return "".join(GAP.join(map(str.ljust, line, widths)).rstrip() + "\n" for line in lines)
