def hide_header(name: str) -> None:
    """Count a field's values as credentials in this process; ValueError when there are too many."""

class MessageHead:
    """Start line and fields of a message; edits are seen by whatever sends it on."""

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
        """-1 when no length is given."""
    def get(self, name: str) -> str | None:
        """Return the first field of that name, in any case."""
    def get_list(self, name: str) -> list[str]: ...
    def items(self) -> list[tuple[str, str]]: ...
    def add(self, name: str, value: str) -> None:
        """Append a field; ValueError for an illegal name or value."""
    def set(self, name: str, value: str) -> None:
        """Replace all fields of that name."""
    def remove(self, name: str) -> int:
        """Drop all fields of that name; return how many."""
    def set_request(self, method: str, target: str, authority: str) -> None:
        """Make this the head of a request; ValueError for what cannot stand in a request line."""
