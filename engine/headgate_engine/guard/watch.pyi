from headgate_engine.guard.pattern_syntax import Positions

class PatternWatch:
    def __init__(self, positions: Positions) -> None: ...
    @property
    def state_count(self) -> int: ...
    def places(self, text: bytes) -> list[tuple[bool, bool]]:
        """Return for the place behind each byte if a match may be under way there, and if one may have ended."""
    def under_way(self, text: bytes, start: int = 0) -> bool:
        """Return whether a match from `start` or behind it may be under way, or have ended, at the end of the text."""
