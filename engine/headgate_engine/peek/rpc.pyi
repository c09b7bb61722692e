"""JSON-RPC 2.0 messages of MCP, told apart and re-labelled without building their contents."""

import enum
from typing import Any

NAME_SOURCE: dict[str, str]
"""Method to the member of `params` that a request is about."""

class Kind(enum.Enum):
    """What a message is."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESPONSE = "response"

class NotAMessage(ValueError):
    """The text is no JSON-RPC message; `code` says why. `raw_id`, `method`: where a request tells them."""

    code: int
    raw_id: bytes | None
    method: str | None
    def __init__(
        self, code: int, reason: str, raw_id: bytes | None = None, method: str | None = None
    ) -> None: ...

class Message:
    """One message, made by parse()."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raise TypeError."""
    @property
    def kind(self) -> Kind: ...
    @property
    def text(self) -> bytes:
        """Its bytes as received."""
    @property
    def method(self) -> str | None: ...
    @property
    def raw_id(self) -> bytes | None:
        """The bytes of its id."""
    @property
    def is_error(self) -> bool:
        """Whether it is an error response."""
    @property
    def params(self) -> bytes:
        """The bytes of its params, b"" for none."""
    @property
    def name(self) -> str | None:
        """What the message is about, by NAME_SOURCE; None when its method has no such thing."""
    @property
    def uri(self) -> str | None:
        """`params.uri`."""
    @property
    def protocol_version(self) -> str | None:
        """`params.protocolVersion`, as `initialize` has it."""
    @property
    def meta_version(self) -> str | None:
        """The revision that `params._meta` names; None when it names none."""
    @property
    def has_client_capabilities(self) -> bool:
        """Whether `params._meta` tells what the client can do."""
    @property
    def has_result_object(self) -> bool:
        """Whether `result` is an object."""
    @property
    def has_error_object(self) -> bool:
        """Whether `error` is an object."""
    @property
    def result_span(self) -> tuple[int, int]:
        """Where the result lies in `text`, (0, 0) when there is none."""
    @property
    def result_task(self) -> str | None:
        """`result.taskId`, or `result.task.taskId`."""
    @property
    def next_cursor(self) -> str | None:
        """`result.nextCursor`."""
    def with_id(self, raw_id: bytes) -> bytes:
        """Return the message, which has an id, with another one; nothing else changes."""
    def with_params(self, params: bytes) -> bytes:
        """Return the message, which has params, with others; nothing else changes."""
    def with_name(self, name: str) -> bytes:
        """Return the message about something else; nothing else changes. ValueError where it has no `name`."""
    def with_task(self, task: str) -> bytes:
        """Return the response with another `result_task`; nothing else changes. ValueError where it has none."""
    def decoded_params(self) -> dict[str, Any]:
        """Return the params as objects, {} when there are none. For small messages: this builds all of them."""

def quoted(text: str) -> bytes:
    """Return a text as a JSON string."""

def parse(text: bytes) -> Message:
    """Return the message; raises NotAMessage. Batches (2025-03-26) are refused."""
