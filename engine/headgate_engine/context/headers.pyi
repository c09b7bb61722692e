from collections.abc import Iterable

def hide_headers(names: Iterable[str]) -> None:
    """Treat the values of these fields, and of no others that were named before, as credentials in this process.

    redacted() hides them in messages that are read from now on. Raises ValueError if there are too many.
    """

class MessageHead:
    """Start line and fields of a message. Edits apply to the message that is sent."""

    @property
    def method(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def query(self) -> str: ...
    @property
    def authority(self) -> str: ...
    @property
    def status(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def content_length(self) -> int:
        """In bytes; -1 if the message has none."""
    def get(self, name: str) -> str | None:
        """Return the value of the first field with that name, in any case. None without one."""
    def get_list(self, name: str) -> list[str]:
        """Return the values of all fields with that name, in any case, in their order."""
    def items(self) -> list[tuple[str, str]]:
        """Return (name, value) of all fields in their order."""
    def add(self, name: str, value: str) -> None:
        """Append a field. Raises ValueError for an invalid name or value."""
    def set(self, name: str, value: str) -> None:
        """Replace all fields with that name by one."""
    def remove(self, name: str) -> int:
        """Remove all fields with that name. Return their number."""
    def set_request(self, method: str, target: str, authority: str) -> None:
        """Make this the head of a request. Raises ValueError for parts that are invalid in a request line."""
