"""Positions of values and comments in a text, for edits that change nothing else.

The text must be valid for `document.read.read`. Offsets count characters.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

Span = tuple[int, int]
Path = tuple[str | int, ...]
_PROPERTY: Final = re.compile(r"[&!]\S*\s*")
_COMMENT: Final = "#"


class Spans:
    """The positions of values and comments in one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root = yaml.compose(text, Loader=yaml.CSafeLoader)

    def scalar(self, path: Path) -> Span:
        """Return the span of the scalar at a path, including quotes, without a trailing line end.

        Raises StopIteration or IndexError if the path does not exist.
        """
        node: Any = self._root
        for step in path:
            if isinstance(step, int):
                node = node.value[step]
            else:
                node = next(value for key, value in node.value if key.value == step)
        start, end = node.start_mark.index, node.end_mark.index
        # The span excludes anchor and tag, so that they stay in front of a new value.
        while self._text[start : start + 1] in ("&", "!"):
            start += _PROPERTY.match(self._text, start).end() - start  # type: ignore[union-attr]
        while end > start and self._text[end - 1] in " \t\r\n":
            end -= 1
        return start, end

    def comments(self) -> list[Span]:
        """Return the spans of the comments, from `#` to the end of the line."""
        found: list[Span] = []
        before = 0
        for token in yaml.scan(self._text, Loader=yaml.CSafeLoader):
            self._between(before, token.start_mark.index, found)
            before = max(before, token.end_mark.index)
        self._between(before, len(self._text), found)
        return found

    def _between(self, start: int, end: int, found: list[Span]) -> None:
        at = self._text.find(_COMMENT, start, end)
        while at >= 0:
            stop = self._text.find("\n", at, end)
            stop = end if stop < 0 else stop
            found.append((at, stop))
            at = self._text.find(_COMMENT, stop, end)


def edited(text: str, changes: dict[Span, str]) -> str:
    """Return the text with the given spans replaced. The spans must not overlap."""
    pieces, at = [], 0
    for (start, end), new in sorted(changes.items()):
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]])
