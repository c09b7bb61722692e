"""Tunnels of a service mesh (HBONE): CONNECT over HTTP/2 and mutual TLS."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass

# Of each workload, for tunnels.
HBONE_PORT = 15_008


@dataclass(frozen=True, slots=True, kw_only=True)
class Hbone:
    """What a connection of the mesh may send before it is read: bytes of a tunnel, of all of them, and of a frame.

    Of connections that the gateway opens also: how many tunnels one carries at a time (1 to 1,000), and for how many
    milliseconds it is kept without any.
    """

    window: int = 4_194_304
    connection_window: int = 16_777_216
    frame: int = 1_048_576
    streams: int = 100
    unused_ms: int = 300_000
