"""Tables of text for a terminal."""

from __future__ import annotations

import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

import click

GAP: Final = "  "
CUT: Final = "…"
# Of a cell that is not a figure: how narrow it may become before a column is left out, and after that.
COMFORTABLE, LEAST = 14, 8
FIGURE: Final = re.compile(r"-?|\$?[0-9][0-9.,+]*(ms|s|%)?")
Lines = list[tuple[str, ...]]


def printable(text: str) -> str:
    """Return a text for a terminal: names may be those that clients choose, and nothing in them may control it."""
    return "".join(char if char.isprintable() else "?" for char in text)


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: two for each wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(
        2 if unicodedata.east_asian_width(char) in "WF" else 0 if unicodedata.combining(char) else 1 for char in text
    )


def padded(text: str, width: int) -> str:
    """Return a text with blanks behind it up to a width in columns."""
    return text + " " * (width - width_of(text))


def shortened(text: str, width: int) -> str:
    """Return a text that takes at most `width` columns; one that is cut ends with an ellipsis."""
    if width_of(text) <= width:
        return text
    # Room for marks that take no column. What is measured again and again is short.
    text = text[: 4 * width]
    while text and width_of(text) > width - 1:
        text = text[:-1]
    return text + CUT if width else ""


def terminal_width() -> int | None:
    """Return the columns of the terminal that output goes to; None where it goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fitted(lines: Lines, most: int, gap: int = len(GAP)) -> list[int]:
    """Return widths of columns that take at most `most` together, as far as cutting texts can do that. The first line
    has the heads. Figures are never cut.
    """
    widths = _natural(lines)
    least = _least(lines, widths, LEAST)
    excess = sum(widths) + gap * (len(widths) - 1) - most
    while excess > 0:
        # The widest gives, so that short names stay whole.
        at = max((at for at in range(len(widths)) if widths[at] > least[at]), key=widths.__getitem__, default=None)
        if at is None:
            break
        widths[at] -= 1
        excess -= 1
    return widths


def _natural(lines: Lines) -> list[int]:
    return [max(width_of(line[at]) for line in lines) for at in range(len(lines[0]))]


def _least(lines: Lines, widths: list[int], floor: int) -> list[int]:
    return [
        min(width, max(floor, width_of(lines[0][at])))
        if any(FIGURE.fullmatch(line[at]) is None for line in lines[1:])
        else width
        for at, width in enumerate(widths)
    ]


def kept(lines: Lines, most: int, spare: Sequence[str], gap: int = len(GAP)) -> list[int]:
    """Return which columns stay: those of `spare` are left out, the first of them first, until the others have room."""
    least = _least(lines, _natural(lines), COMFORTABLE)
    found = list(range(len(least)))
    for name in (one for one in spare if one in lines[0]):
        if sum(least[at] for at in found) + gap * (len(found) - 1) <= most:
            break
        found.remove(lines[0].index(name))
    return found


def text_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], most: int | None = None, spare: Sequence[str] = ()
) -> str:
    """Return header and rows, left aligned, two blanks between columns.

    `most`: the columns of the terminal. To fit, columns of `spare` are left out, and long cells are cut.
    """
    lines = [tuple(heads), *(tuple(map(printable, row)) for row in rows)]
    if most is None:
        widths = _natural(lines)
    else:
        columns = kept(lines, most, spare)
        lines = [tuple(line[at] for at in columns) for line in lines]
        widths = fitted(lines, most)
    return "".join(GAP.join(map(padded, map(shortened, line, widths), widths)).rstrip() + "\n" for line in lines)


def show_table(heads: Sequence[str], rows: Iterable[Sequence[str]], spare: Sequence[str] = ()) -> None:
    """Print a table that fits the terminal; a file or a pipe gets all of it."""
    click.echo(text_table(heads, rows, terminal_width(), spare), nl=False)
