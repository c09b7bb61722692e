"""The text of a configuration cut at the items of a long list, so that an item that changes can be read alone.

An item begins on a line that has exactly `column` blanks and `- ` at its head. It ends where the next such line begins,
or where a line begins that is not blank, no comment, and indented less. That holds for block style only: the text is
read as a whole first and the places are compared (`known_routes`), and items that change later are read by themselves.
An item that can be read by itself leaves nothing open: a quoted text or a list in brackets that went on behind it would
be a fault in it, and a plain text or a block text ends in front of a line that is indented less than it is. So items
can be exchanged for others, if no value has a name (an anchor) that another one uses.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from headgate.document.lazy_dataclass import dataclass
from headgate_engine.lazy_pattern import lazy_pattern

# Fewer items than this are read with all of the text: it is short, or its items are long.
LEAST_ITEMS: Final = 32
MAX_COLUMN: Final = 16
# What stands at the head of a block text, or looks like it.
_BLOCK_TEXT: Final = lazy_pattern(r"[|>][-+0-9]*[ \t\r]*(?:#[^\n]*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cut:
    """What stands before the first item, and the items, each without its dash and with what stands behind it up to the
    next item. A text is `head`, then each item behind a line end, `column` blanks and a dash, and at last a line end.
    """

    column: int
    head: str
    items: list[str]


class ListItem(NamedTuple):
    """An item: what belongs to it, and what follows it in the text before the next item; empty inside a list."""

    body: str
    tail: str


def mark(column: int) -> str:
    """Return what precedes each item."""
    return "\n" + " " * column + "- "


def cut(text: str, column: int) -> Cut | None:
    """Cut a text at the items of one column; None where its last line does not end, and a value may depend on that."""
    if not text.endswith("\n"):
        # The line end behind a block text belongs to it; behind all else it means nothing.
        if _BLOCK_TEXT.search(text):
            return None
        text += "\n"
    head, *items = text[:-1].split(mark(column))
    return Cut(column, head, items)


def best_cut(text: str) -> Cut | None:
    """Return the cut into items of which a change is likely to touch the least; None where none is worth it."""
    best, least = None, 0.0
    for column in range(0, MAX_COLUMN + 1):
        # To count is cheaper than to cut, and most columns have no items.
        found = cut(text, column) if text.count(mark(column)) >= LEAST_ITEMS else None
        if found is None:
            continue
        # What a change has to read, in the mean over all characters of the text: an item, or else all of it.
        expected = (sum(len(one) ** 2 for one in found.items) + len(found.head) * len(text)) / len(text)
        if best is None or expected < least:
            best, least = found, expected
    return best


@cache
def _end(column: int) -> re.Pattern[str]:
    # A line of comment may be indented less than the item that it stands in, and ends nothing.
    return re.compile(rf"\n(?! {{{column + 1}}}| *(?:#|\r?\n|\r?\Z))")


def split_item(text: str, column: int) -> ListItem:
    """Split an item of a cut from what follows its list."""
    found = _end(column).search(text)
    return ListItem(text, "") if found is None else ListItem(text[: found.start()], text[found.start() :])
