"""The items of a list in a JSON text (RFC 8259), as offsets.

The text has passed the scan of peek.scan, so nothing is checked again. The brackets and quotes of valid JSON keep every
index inside the text, so boundscheck is off.
"""

from typing import Any

from headgate_engine.peek.rpc import RpcMessage

class Item:
    """One item of a list."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raise TypeError."""
    @property
    def raw(self) -> bytes:
        """The text of the item in the list."""
    @property
    def name(self) -> str | None:
        """The item's name; None if the item is not an object or has no name."""
    @property
    def has_meta(self) -> bool:
        """True if the item has a member `_meta`."""
    @property
    def odd(self) -> bool:
        """True if the item has two names. The last one counts here, but other parsers may use the first."""
    def renamed(self, name: str) -> bytes:
        """Return the item with another name and everything else unchanged. Raises ValueError if it has no name."""
    def decoded(self) -> Any:
        """Return the item as Python objects."""

def list_of(message: RpcMessage, member: bytes, key: bytes) -> tuple[tuple[int, int], list[Item]]:
    """Return the span of the array `result.<member>` in the text of a response, and its items.

    key: the member of an item that is its name. If there is no such array, the result is ((0, 0), []). If there are
    two, the last one counts.
    """
