from typing import Self

class TextPiece:
    """C face only: a string of an event that continues the text of a choice."""

class StreamFrame:
    """C face only: one block of a stream."""

class ChoiceText:
    """C face only: the text of one choice."""

class StreamTexts:
    """C face only: reads what the events of a stream say."""

    def __new__(cls, format: str, judged: bool) -> Self: ...
