"""Reads the texts of a body in Python: what headgate_engine.guard.readers is compared with."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from headgate.dialect.llm.transcript.contract import Piece, Run, Span, TextScope, Turn
from headgate_engine.guard.spans import items, members, string_value

__all__ = ["Builder", "Piece", "Run", "Span", "TextScope", "Transcript", "Turn", "elements"]
QUOTE: Final = 34
# Words of more bytes are not told apart.
LONG: Final = 64
MEDIA: Final = ("text/", "application/json", "application/x-ndjson", "application/xml", "application/yaml", "application/x-yaml")
NOWHERE: Final[Span] = (0, 0)


@dataclass(slots=True)
class Transcript:
    """The texts of one body."""

    body: bytes
    runs: list[Run] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)


class Builder:
    """Collects the texts of a checked JSON body. Members that stand twice all count: who reads next may take any."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.found = Transcript(body)
        self._open: Run | None = None
        self.noted: list[Piece] = []
        # Blanks may stand in front of the object that readers look for at 0.
        self._lead = len(body) - len(body.lstrip(b" \t\r\n"))

    # -- reading -----------------------------------------------------------------------------------------------------
    def fields(self, at: int) -> dict[str, list[Span]]:
        """Return the members of the object at `at` by name; empty when it is none."""
        fields: dict[str, list[Span]] = {}
        for name, start, stop in members(self.body, at or self._lead):
            fields.setdefault(name, []).append((start, stop))
        return fields

    def rows(self, fields: dict[str, list[Span]], *names: str) -> list[Span]:
        """Return the items of all arrays of those names."""
        return [row for name in names for start, _ in fields.get(name, ()) for row in items(self.body, start)]

    def is_text(self, span: Span) -> bool:
        """Whether a value is a string."""
        return self.body[span[0]] == QUOTE

    def texts(self, fields: dict[str, list[Span]], *names: str) -> list[Span]:
        """Return the strings of those names."""
        return [span for name in names for span in fields.get(name, ()) if self.is_text(span)]

    def words(self, fields: dict[str, list[Span]], name: str) -> list[str]:
        """Return what the strings of that name say."""
        spans = [span for span in fields.get(name, ()) if self.is_text(span)]
        return [string_value(self.body, *span).decode("utf-8", "replace") for span in spans]

    # -- noting ------------------------------------------------------------------------------------------------------
    def turn(self, role: str, joiner: bytes) -> Turn:
        """Begin a turn."""
        self.cut()
        turn = Turn(role, joiner)
        self.found.turns.append(turn)
        return turn

    def cut(self) -> None:
        """End the run: what comes next is another text."""
        self._open = None

    def add(self, scope: TextScope, piece: Piece, turn: Turn | None = None, joiner: bytes = b" ") -> None:
        """Note a piece; it goes on with the run when that has not been cut."""
        run = self._open
        if run is None or run.scope is not scope or run.joiner != joiner:
            run = self._open = Run(scope, joiner)
            self.found.runs.append(run)
        run.pieces.append(piece)
        self.noted.append(piece)
        if turn is not None:
            turn.pieces.append(piece)

    def keep_item(self, first: int, texts: list[Span]) -> None:
        """Keep the item of some texts, which were noted as the pieces from `first` on, if it has other pieces, too."""
        if len(self.noted) - first > 1:
            for piece in self.noted[first : first + len(texts)]:
                piece.element = NOWHERE

    def alone(self, scope: TextScope, span: Span, turn: Turn | None = None) -> None:
        """Note a value that is a text of its own: a string, or raw JSON."""
        self.cut()
        self.add(scope, Piece(*span, raw=not self.is_text(span)), turn)
        self.cut()

    def strings(self, scope: TextScope, fields: dict[str, list[Span]], *names: str, turn: Turn | None = None) -> None:
        """Note all strings of those names, each as a text of its own. `turn`: the message that they belong to."""
        for name in names:
            for span in fields.get(name, ()):
                if self.is_text(span):
                    self.alone(scope, span, turn)

    def files(self, scope: TextScope, fields: dict[str, list[Span]], name: str, kind: str = "", turn: Turn | None = None,
              unnamed: bool = False) -> None:
        """Note text files in base64: if a member names their type (`unnamed`: or none does), or as data URLs."""
        kinds = self.words(fields, kind) if kind else []
        readable = any(is_readable(word) for word in kinds) or (unnamed and not kinds)
        for start, stop in self.texts(fields, name):
            coded = start + 1 if readable else 0 if kind else self._after_head(start, stop)
            if coded:
                self.cut()
                self.add(scope, Piece(start, stop, coded=coded), turn)
                self.cut()

    def _after_head(self, start: int, stop: int) -> int:
        """Return where the base64 of a data URL of text begins; 0: it is none."""
        text = re.compile(rb"((?:\\u(?!002[Cc])....|\\[^u]|[^\\,])*)(?:,|\\u002[Cc])", re.DOTALL)
        found = text.match(self.body, start + 1, stop - 1)
        if found is None:
            return 0
        head = string_value(b'"' + found[1] + b'"', 0, len(found[1]) + 2).lower()
        # Blanks count nowhere. Of a long head the beginning has the media type.
        head = head.translate(None, b" \t\n\x0c\r")
        texts = head.startswith(tuple(b"data:" + one.encode() for one in MEDIA))
        return found.end() if texts and head.endswith(b"base64") else 0

    def values(self, scope: TextScope, fields: dict[str, list[Span]], *names: str) -> None:
        """Note all values of those names, strings or not; null says nothing."""
        for name in names:
            for start, stop in fields.get(name, ()):
                if self.body[start:stop] != b"null":
                    self.alone(scope, (start, stop))


def is_media(word: str) -> bool:
    """Whether a media type is one of text."""
    return len(word.encode()) > LONG or word.lower().startswith(MEDIA)


def is_readable(word: str) -> bool:
    """Whether a media type is one of text, or a format of Converse."""
    return word in ("txt", "md", "csv", "html") or is_media(word)


def elements(rows: list[Span]) -> list[tuple[Span, Span]]:
    """Return each item of an array with what leaving it out takes away."""
    starts = [start for start, _ in rows[1:]]
    removable = [(row[0], after) for row, after in zip(rows, starts, strict=False)]
    return list(zip(rows, [*removable, NOWHERE], strict=False))
