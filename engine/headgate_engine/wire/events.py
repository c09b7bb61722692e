"""What codecs say in Python: one vocabulary for all protocol versions."""

from __future__ import annotations

from dataclasses import dataclass, field

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A request head. `target` is origin-form, `authority` the host it is for (empty in HTTP/1.0 without one)."""

    method: str
    target: str
    authority: str
    headers: Headers = ()
    minor_version: int = 1
    content_length: int | None = None
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """A response head: the final one, or 101."""

    status: int
    headers: Headers = ()
    reason: str = ""
    minor_version: int = 1
    content_length: int | None = None
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class InformationalResponse(Response):
    """A 1xx response that another one follows (not 101); only its head."""


@dataclass(frozen=True, slots=True)
class Data:
    """A piece of a body, framing removed."""

    data: bytes


@dataclass(frozen=True, slots=True)
class EndOfMessage:
    """The end of a message with its trailer fields."""

    trailers: Headers = field(default=())


@dataclass(frozen=True, slots=True)
class NeedData:
    """Nothing more can be said before more bytes come."""


@dataclass(frozen=True, slots=True)
class Paused:
    """The message is complete; start_next_cycle() goes on when the other half is."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """From here on bytes are raw; `leftover` were read already."""

    leftover: bytes


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """The peer closed at the end of a message."""


Event = (
    Request | Response | InformationalResponse | Data | EndOfMessage | NeedData | Paused | Upgraded | ConnectionClosed
)
