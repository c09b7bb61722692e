"""JSON-RPC 2.0 messages of MCP: finds a message's type and replaces parts of it without building its contents.

Source: https://www.jsonrpc.org/specification. boundscheck is off: the spans are those of a scan over the same text.
"""

import enum
from typing import Any

NAME_SOURCE: dict[str, str]
"""Method -> member of `params` that names the object of a request."""

class RpcKind(enum.Enum):
    """The type of a message."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESPONSE = "response"

class NotAMessage(ValueError):
    """The text is not a JSON-RPC message.

    code: the JSON-RPC error code. raw_id, method: those of a request, if it has them.
    """

    code: int
    raw_id: bytes | None
    method: str | None
    def __init__(
        self, code: int, reason: str, raw_id: bytes | None = None, method: str | None = None
    ) -> None: ...

class RpcMessage:
    """One message, which parse() has made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raise TypeError."""
    @property
    def kind(self) -> RpcKind: ...
    @property
    def text(self) -> bytes:
        """The message's bytes as received."""
    @property
    def method(self) -> str | None: ...
    @property
    def raw_id(self) -> bytes | None:
        """The bytes of the id."""
    @property
    def is_error(self) -> bool:
        """True for an error response."""
    @property
    def params(self) -> bytes:
        """The bytes of the params, b"" if there are none."""
    @property
    def name(self) -> str | None:
        """The object of the message, by NAME_SOURCE; None if its method has none."""
    @property
    def uri(self) -> str | None:
        """`params.uri`."""
    @property
    def protocol_version(self) -> str | None:
        """`params.protocolVersion` of `initialize`."""
    @property
    def meta_version(self) -> str | None:
        """The protocol revision in `params._meta`; None without one."""
    @property
    def has_client_capabilities(self) -> bool:
        """True if `params._meta` has the client's capabilities."""
    @property
    def has_result_object(self) -> bool:
        """True if `result` is an object."""
    @property
    def has_error_object(self) -> bool:
        """True if `error` is an object."""
    @property
    def result_span(self) -> tuple[int, int]:
        """The span of the result in `text`, (0, 0) if there is none."""
    @property
    def result_task(self) -> str | None:
        """`result.taskId`, or `result.task.taskId`."""
    @property
    def next_cursor(self) -> str | None:
        """`result.nextCursor`."""
    def with_id(self, raw_id: bytes) -> bytes:
        """Return the message with another id and everything else unchanged. The message must have an id."""
    def with_params(self, params: bytes) -> bytes:
        """Return the message with other params and everything else unchanged. The message must have params."""
    def with_name(self, name: str) -> bytes:
        """Return the message with another name and everything else unchanged. Raises ValueError if it has no `name`."""
    def with_task(self, task: str) -> bytes:
        """Return the response with another `result_task` and everything else unchanged.

        Raises ValueError if it has none.
        """
    def decoded_params(self) -> dict[str, Any]:
        """Return the params as Python objects, {} if there are none. For small messages: builds all of them."""

def quoted(text: str) -> bytes:
    """Return a string as JSON."""

def parse(text: bytes) -> RpcMessage:
    """Return the message that `text` holds. Raises NotAMessage; batches (2025-03-26) are refused."""
