"""The sessions of one MCP backend in one worker
(https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management).
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_S = TypeVar("_S", bound=SessionEntry)

class TargetSession:
    """A session at one server. `name`: its id there, None where the server has no sessions. `version`: the revision
    that the server agreed to, where it is sent in place of the client's.
    """

    def __init__(self, name: str | None = None, version: str | None = None) -> None: ...
    name: str | None
    version: str | None

class SessionEntry:
    """One client's session. `server`: what it holds; `owner`: who it is for, "" for nobody known. `used`: when it was
    used last, in seconds of the table's clock; `busy`: requests that use it now. `resumable`: its id can bring it back.
    """

    def __init__(self, id: str, server: Any, used: float, owner: str) -> None: ...
    @property
    def id(self) -> str: ...
    owner: str
    server: Any
    used: float
    busy: int
    resumable: bool

class SessionTable(Generic[_S]):
    """The sessions of one backend in one worker. `clock` gives seconds (default: CLOCK_MONOTONIC); `ordered`: the
    longest unused one stands first.
    """

    def __init__(self, clock: Callable[[], float] | None = None, ordered: bool = False) -> None: ...
    def find(self, session_id: str, owner: str = "") -> _S | None:
        """Return a living session of this owner, and note that it is used."""
    def begin_use(self, session: _S) -> None:
        """Keep a session from being idle until `end_use`."""
    def end_use(self, session: _S) -> None:
        """Let the idle time of a session begin when nobody uses it any more."""
    def put(self, session: _S) -> bool:
        """Register a session; tell whether there was none with its id."""
    def take(self, session_id: str) -> _S | None:
        """Take a session out and return it; None without one."""
    def entries(self) -> list[_S]:
        """Return all sessions, the longest unused first where the order is kept."""
    def __class_getitem__(cls, _kind: Any) -> Any: ...
    def __contains__(self, session_id: object, /) -> bool: ...
    def __len__(self) -> int: ...
