"""The texts of a body: pieces with their offsets, runs of pieces that form one text, and turns of the conversation.

The engine reads them (headgate_engine.guard.readers). Objects of these classes are made on demand.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Final

from headgate.document.lazy_dataclass import dataclass
from headgate_engine.guard import transcript
from headgate_engine.guard.encoded import encoded_text
from headgate_engine.guard.spans import string_value

Span = tuple[int, int]
NOWHERE: Final[Span] = (0, 0)


class TextScope(StrEnum):
    """The part of a conversation that a text belongs to."""

    SYSTEM_PROMPT = "systemPrompt"
    MESSAGES = "messages"
    TOOL_INPUT = "toolInput"
    TOOL_OUTPUT = "toolOutput"


DEFAULT_SCOPES: Final = frozenset((TextScope.SYSTEM_PROMPT, TextScope.MESSAGES))


@dataclass(slots=True)
class Piece:
    """One value at the offsets `start` to `stop`: a JSON string with its quotes, or any other JSON as text (`raw`).

    `element` is the span from the start of its array item to the start of the next one; NOWHERE means that the item
    cannot be removed. `clears` are (start, stop, raw JSON) replacements that must accompany a change of the text,
    because the replaced values repeat the text or count its characters. `coded` is where the base64 of a text file
    begins in the string; 0 means that the string is the text.
    """

    start: int
    stop: int
    raw: bool = False
    element: Span = NOWHERE
    clears: tuple[tuple[int, int, bytes], ...] = ()
    coded: int = 0


@dataclass(slots=True)
class Run:
    """Pieces that guards inspect as one text, with `joiner` between them."""

    scope: TextScope
    joiner: bytes
    pieces: list[Piece] = field(default_factory=list)

    def text(self, body: bytes) -> bytes:
        """Return the text of all pieces as UTF-8."""
        return text_of(body, self.pieces, self.joiner)


@dataclass(slots=True)
class Turn:
    """One message of the conversation: its role as written, and the pieces of its text without tool calls."""

    role: str
    joiner: bytes
    pieces: list[Piece] = field(default_factory=list)

    def text(self, body: bytes) -> bytes:
        """Return the text of all non-empty pieces as UTF-8."""
        return self.joiner.join(found for piece in self.pieces if (found := piece_text(body, piece)))


class Transcript:
    """The texts of one body."""

    __slots__ = ("_runs", "_turns", "texts")

    def __init__(self, texts: transcript.BodyTexts) -> None:
        self.texts = texts
        self._runs: dict[int, Run] = {}
        self._turns: list[Turn] | None = None

    @property
    def body(self) -> bytes:
        return self.texts.body

    def run(self, index: int) -> Run:
        """Return one run. Raises IndexError."""
        found = self._runs.get(index)
        if found is None:
            scope, joiner, pieces = self.texts.run(index)
            found = self._runs[index] = Run(TextScope(scope), joiner, [Piece(*piece) for piece in pieces])
        return found

    @property
    def runs(self) -> list[Run]:
        """Return all runs."""
        return [self.run(index) for index in range(len(self.texts))]

    @property
    def turns(self) -> list[Turn]:
        """Return all turns."""
        if self._turns is None:
            told = self.texts.conversation()
            self._turns = [Turn(role, joiner, [Piece(*piece) for piece in pieces]) for role, joiner, pieces in told]
        return self._turns

    def of(self, scopes: frozenset[TextScope]) -> list[Run]:
        """Return the runs of the given scopes."""
        return [self.run(index) for index in range(len(self.texts)) if self.texts.scope(index) in scopes]


def piece_text(body: bytes, piece: Piece) -> bytes:
    """Return the text of a piece as UTF-8."""
    if piece.coded:
        return encoded_text(body, piece.coded, piece.stop - 1)
    return body[piece.start : piece.stop] if piece.raw else string_value(body, piece.start, piece.stop)


def text_of(body: bytes, pieces: list[Piece], joiner: bytes) -> bytes:
    """Return the text of several pieces, joined by `joiner`, as UTF-8."""
    if len(pieces) == 1:
        return piece_text(body, pieces[0])
    return joiner.join(piece_text(body, piece) for piece in pieces)
