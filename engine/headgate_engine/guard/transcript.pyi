SCOPES: tuple[str, ...]
DEPTH: int

class BodyTexts:
    """The texts of a body. headgate_engine.guard.readers makes it.

    Offsets count bytes of the body. A piece is (start, stop, raw, element, clears, coded): a string with its quotes, or
    raw JSON; coded: where the base64 of a text file begins in the string, 0 for none. element: from its array
    item's start to the start of the next item, (0, 0) if it cannot be removed. clears: (start, stop, raw JSON) that
    must be replaced if the piece changes.
    """

    @property
    def body(self) -> bytes: ...
    def __len__(self) -> int:
        """Return the number of runs."""
    def run(
        self, index: int
    ) -> tuple[str, bytes, list[tuple[int, int, bool, tuple[int, int], tuple[tuple[int, int, bytes], ...], int]]]:
        """Return scope, joiner and pieces of a run. Raises IndexError."""
    def text(self, index: int) -> bytes:
        """Return the text of a run as UTF-8. Raises IndexError."""
    def scope(self, index: int) -> str:
        """Return the scope of a run. Raises IndexError."""
    def conversation(
        self,
    ) -> list[tuple[str, bytes, list[tuple[int, int, bool, tuple[int, int], tuple[tuple[int, int, bytes], ...], int]]]]:
        """Return role, joiner and pieces of each turn."""
