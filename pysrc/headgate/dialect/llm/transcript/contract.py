"""Texts of a body: pieces with their places, runs that are read as one text, turns of the conversation."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from headgate_engine.guard.spans import items, members, said

QUOTE: Final = 34
Span = tuple[int, int]
NOWHERE: Final[Span] = (0, 0)


class Scope(StrEnum):
    """Which part of a conversation a text belongs to (specification: ContentScope)."""

    SYSTEM_PROMPT = "systemPrompt"
    MESSAGES = "messages"
    TOOL_INPUT = "toolInput"
    TOOL_OUTPUT = "toolOutput"


DEFAULT_SCOPES: Final = frozenset((Scope.SYSTEM_PROMPT, Scope.MESSAGES))


@dataclass(slots=True)
class Piece:
    """One value at start..stop: a string with its quotes, or raw JSON read as it stands (`raw`).

    element: from its array item's start to the start of the item behind that, NOWHERE when it cannot be left out.
    clears: (start, stop, raw JSON) that must go with a change, because it repeats the text or counts its characters.
    """

    start: int
    stop: int
    raw: bool = False
    element: Span = NOWHERE
    clears: tuple[tuple[int, int, bytes], ...] = ()


@dataclass(slots=True)
class Run:
    """Pieces that a pattern sees as one text, with `joiner` between them."""

    scope: Scope
    joiner: bytes
    pieces: list[Piece] = field(default_factory=list)

    def text(self, body: bytes) -> bytes:
        """Return the text as UTF-8."""
        return text_of(body, self.pieces, self.joiner)


@dataclass(slots=True)
class Turn:
    """One message of the conversation: its role as written, and what is said in it but for tool calls."""

    role: str
    joiner: bytes
    pieces: list[Piece] = field(default_factory=list)

    def text(self, body: bytes) -> bytes:
        """Return the text as UTF-8, empty pieces left out; empty without any."""
        return self.joiner.join(found for piece in self.pieces if (found := piece_text(body, piece)))


@dataclass(slots=True)
class Transcript:
    """The texts of one body."""

    body: bytes
    runs: list[Run] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    def of(self, scopes: frozenset[Scope]) -> list[Run]:
        """Return the runs of those scopes."""
        return [run for run in self.runs if run.scope in scopes]


def piece_text(body: bytes, piece: Piece) -> bytes:
    """Return what a piece says as UTF-8."""
    return body[piece.start : piece.stop] if piece.raw else said(body, piece.start, piece.stop)


def text_of(body: bytes, pieces: list[Piece], joiner: bytes) -> bytes:
    """Return what pieces say as one text."""
    if len(pieces) == 1:
        return piece_text(body, pieces[0])
    return joiner.join(piece_text(body, piece) for piece in pieces)


class Builder:
    """Collects the texts of a checked JSON body. Members that stand twice all count: who reads next may take any."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.found = Transcript(body)
        self._open: Run | None = None
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
        return [said(self.body, *span).decode("utf-8", "replace") for span in spans]

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

    def add(self, scope: Scope, piece: Piece, turn: Turn | None = None, joiner: bytes = b" ") -> None:
        """Note a piece; it goes on with the run when that has not been cut."""
        run = self._open
        if run is None or run.scope is not scope or run.joiner != joiner:
            run = self._open = Run(scope, joiner)
            self.found.runs.append(run)
        run.pieces.append(piece)
        if turn is not None:
            turn.pieces.append(piece)

    def alone(self, scope: Scope, span: Span, turn: Turn | None = None) -> None:
        """Note a value that is a text of its own: a string, or raw JSON."""
        self.cut()
        self.add(scope, Piece(*span, raw=not self.is_text(span)), turn)
        self.cut()

    def strings(self, scope: Scope, fields: dict[str, list[Span]], *names: str) -> None:
        """Note all strings of those names, each as a text of its own."""
        for name in names:
            for span in fields.get(name, ()):
                if self.is_text(span):
                    self.alone(scope, span)

    def values(self, scope: Scope, fields: dict[str, list[Span]], *names: str) -> None:
        """Note all values of those names, strings or not; null says nothing."""
        for name in names:
            for start, stop in fields.get(name, ()):
                if self.body[start:stop] != b"null":
                    self.alone(scope, (start, stop))


def elements(rows: list[Span]) -> list[tuple[Span, Span]]:
    """Return each item of an array with what leaving it out takes away."""
    starts = [start for start, _ in rows[1:]]
    removable = [(row[0], after) for row, after in zip(rows, starts, strict=False)]
    return list(zip(rows, [*removable, NOWHERE], strict=False))
