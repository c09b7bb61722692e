"""The private channel between supervisor and worker: one SOCK_SEQPACKET pair, one pickled message per packet.

Descriptors travel with the packet. A configuration may be larger than a packet, so it lies in a memory file whose
descriptor is sent (see transfer.py). Nobody else can reach the pair, so pickle is safe here.
"""

from __future__ import annotations

import array
import pickle
import socket
from dataclasses import field
from typing import TYPE_CHECKING, Any

from headgate.document.lazy_dataclass import dataclass

if TYPE_CHECKING:  # loaded by a configuration whose gateways share a store
    from headgate.policy.leases import LeaseWant

MAX_PACKET = 128 * 1024
MAX_DESCRIPTORS = 200


@dataclass(frozen=True, slots=True)
class Prepare:
    """Compile a configuration. `listen` names the ports whose sockets come with the packet, after its pickle; those of
    `lent` belong to a service manager.

    `session_key`: 32 bytes that seal session ids, the same for all workers for the life of the process. `tickets`:
    what keys of TLS session tickets are made from (engine, tls.tickets). `modules`: the modules that compiling the
    configuration needs.
    """

    generation: int
    listen: tuple[str, ...]
    session_key: bytes = field(repr=False)
    tickets: tuple[int, bytes] = field(repr=False)
    modules: tuple[str, ...] = ()
    lent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """Swap the prepared configuration in."""

    generation: int


@dataclass(frozen=True, slots=True)
class Discard:
    """Forget the prepared configuration."""

    generation: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Finish what runs, then exit. Milliseconds. `handed`: the ports at which another gateway accepts already."""

    min_ms: int
    max_ms: int
    handed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SetLevels:
    """Use these log directives and this line format (text or json). Answered by Done("levels", number)."""

    number: int
    directives: str
    form: str


@dataclass(frozen=True, slots=True)
class WatchCommand:
    """Trace the next request for which `expression` holds (None: any request). The packet carries the write end of the
    pipe.

    Answered by Done("watch", number). `body_limit`: how many bytes of a body the trace shows.
    """

    number: int
    expression: str | None
    body_limit: int


@dataclass(frozen=True, slots=True)
class Unwatch:
    """Stop watching: another worker serves the watcher, or the watcher has disconnected."""

    number: int


@dataclass(frozen=True, slots=True)
class Query:
    """Ask for a report. The worker answers with a QueryResult of the same `number`. `what` names the report
    (server/reports.py).

    Long reports are written as JSON into a memory file whose descriptor the packet carries.
    """

    number: int
    what: str


@dataclass(frozen=True, slots=True)
class Permit:
    """Allow a process to trace this worker (ptrace); 0 revokes that. The worker answers with a QueryResult."""

    number: int
    pid: int


@dataclass(frozen=True, slots=True)
class SampleHeap:
    """Sample allocations, on average one for each `rate` bytes; 0 stops sampling. The worker answers with a
    QueryResult."""

    number: int
    rate: int


@dataclass(frozen=True, slots=True)
class Gather:
    """Write records of requests into the pipe that comes with the packet. Answered by QueryResult."""

    number: int


@dataclass(frozen=True, slots=True)
class SendMetrics:
    """Send the metrics in the memory file that comes with the packet to their collector. Answered by QueryResult."""

    number: int


@dataclass(frozen=True, slots=True)
class Identify:
    """Use the X.509-SVID in the memory file that comes with the packet; it may hold None. Answered by QueryResult."""

    number: int


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a worker. `configuration`: the digest of the configuration that the worker was forked with,
    empty without one."""

    pid: int
    configuration: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """A Prepare or Commit is finished; `errors` is empty when it worked."""

    what: str
    generation: int
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The answer to Query."""

    number: int
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WantLeases:
    """A worker's requests want leases of limits. Answered by LeasesCame of the same `number`."""

    number: int
    wants: tuple[LeaseWant, ...]


@dataclass(frozen=True, slots=True)
class LeasesCame:
    """The store was asked for what WantLeases wanted, or is away; what it gave is in the accounts."""

    number: int


@dataclass(frozen=True, slots=True)
class LeaseStoreState:
    """Whether the store of leases can be asked."""

    down: bool


Message = (
    Prepare | Commit | Discard | Drain | SetLevels | WatchCommand | Unwatch | Query | Permit | SampleHeap | Gather
    | Identify | SendMetrics | Hello | Done | QueryResult | WantLeases
    | LeasesCame | LeaseStoreState
)


def channel_pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a new channel, both non-blocking."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    theirs.setblocking(False)
    return ours, theirs


def send(sock: socket.socket, message: Message, descriptors: list[int] | None = None) -> None:
    """Send one message; raises OSError when the other side is gone or does not read, ValueError for one too large."""
    data = pickle.dumps(message)
    if len(data) > MAX_PACKET:
        raise ValueError("control message is too large")
    ancillary = []
    if descriptors:
        if len(descriptors) > MAX_DESCRIPTORS:
            raise ValueError("too many ports at once")
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    sock.sendmsg([data], ancillary)


def receive(sock: socket.socket) -> tuple[Message, list[int]] | None:
    """Return the next message and its descriptors, None at the end; BlockingIOError when there is none."""
    data, descriptors, _flags, _address = socket.recv_fds(sock, MAX_PACKET, MAX_DESCRIPTORS + 1)
    if not data:
        return None
    message: Message = pickle.loads(data)  # noqa: S301 - the private pair, see above
    return message, descriptors
