"""Lists in JSON texts, cut up by offsets."""

from typing import Any

from headgate_engine.peek.rpc import Message

class Item:
    """One item of a list."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raise TypeError."""
    @property
    def raw(self) -> bytes:
        """The whole item as it stands in the list."""
    @property
    def name(self) -> str | None:
        """What it is called; None when it is no object, or has no name."""
    @property
    def has_meta(self) -> bool:
        """Whether it has a member `_meta`."""
    @property
    def odd(self) -> bool:
        """Whether its name stands twice, of which the last one counts here: others may read the first."""
    def renamed(self, name: str) -> bytes:
        """Return the item with another name; nothing else changes. ValueError where it has none."""
    def decoded(self) -> Any:
        """Return the item as objects."""

def list_of(message: Message, member: bytes, key: bytes) -> tuple[tuple[int, int], list[Item]]:
    """Return where the array `result.<member>` of a response lies in its text, and its items.

    Their names stand under `key`. ((0, 0), []) where there is no such array; of two the last one counts.
    """
