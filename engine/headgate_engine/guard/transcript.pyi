SCOPES: tuple[str, ...]
DEPTH: int

class BodyTexts:
    """The texts of a body; headgate_engine.guard.readers makes it.

    Offsets count bytes of the body. A piece is (start, stop, raw, element, clears): a string with its quotes, or raw
    JSON; `element`: from its array item's start to the start of the item behind it, (0, 0) when it cannot be left
    out; `clears`: (start, stop, raw JSON) that must go with a change.
    """

    @property
    def body(self) -> bytes: ...
    def __len__(self) -> int:
        """Return how many runs there are."""
    def run(
        self, index: int
    ) -> tuple[str, bytes, list[tuple[int, int, bool, tuple[int, int], tuple[tuple[int, int, bytes], ...]]]]:
        """Return scope, joiner and pieces of a run; IndexError."""
    def text(self, index: int) -> bytes:
        """Return what a run says as UTF-8; IndexError."""
    def scope(self, index: int) -> str:
        """Return the scope of a run; IndexError."""
    def conversation(
        self,
    ) -> list[tuple[str, bytes, list[tuple[int, int, bool, tuple[int, int], tuple[tuple[int, int, bytes], ...]]]]]:
        """Return role, joiner and pieces of each turn."""
