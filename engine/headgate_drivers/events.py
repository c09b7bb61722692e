"""Events that codecs return to Python, the same for all protocol versions."""

from __future__ import annotations

from dataclasses import dataclass, field

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request head. target: in origin-form. authority: the requested host, empty in HTTP/1.0 without one."""

    method: str
    target: str
    authority: str
    headers: Headers = ()
    minor_version: int = 1
    content_length: int | None = None
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """A response head: a final one, or 101."""

    status: int
    headers: Headers = ()
    reason: str = ""
    minor_version: int = 1
    content_length: int | None = None
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class InformationalResponse(ResponseHead):
    """The head of a 1xx response other than 101; another response follows."""


@dataclass(frozen=True, slots=True)
class DataEvent:
    """A piece of a body without its framing."""

    data: bytes


@dataclass(frozen=True, slots=True)
class EndOfMessage:
    """The end of a message, with its trailer fields."""

    trailers: Headers = field(default=())


@dataclass(frozen=True, slots=True)
class NeedData:
    """The codec needs more bytes before it can return the next event."""


@dataclass(frozen=True, slots=True)
class Paused:
    """The message is complete. start_next_cycle() continues when the other direction is complete as well."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The connection has switched protocols. leftover: bytes of the new protocol that were already read."""

    leftover: bytes


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """The peer closed the connection at the end of a message."""


Event = (
    RequestHead
    | ResponseHead
    | InformationalResponse
    | DataEvent
    | EndOfMessage
    | NeedData
    | Paused
    | Upgraded
    | ConnectionClosed
)
