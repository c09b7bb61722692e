"""The listening sockets of all ports, which the supervisor opens and workers accept from."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from headgate.ir.gateway import Gateway
from headgate.net.sockets import open_socket, taken
from headgate.server.activation import Lent, check_lent, find_lent
from headgate.server.failures import ReloadFailed


def advice(port: int) -> str:
    """Return what to do about a port that somebody else has."""
    return f": stop the process that uses it (`ss -ltnp 'sport = :{port}'` shows which), or set another `port`"


class BoundSockets:
    """Listening sockets by the keys of their binds (`by_key`)."""

    def __init__(self) -> None:
        self.by_key: dict[str, socket.socket] = {}
        self._lent: list[Lent] = []
        self._inherited: list[Lent] = []
        self.taken: set[str] = set()

    def borrow(self, sockets: list[Lent], gateway: Gateway | None) -> None:
        """Use these sockets for the binds at their addresses, now and later. Raises ReloadFailed if `gateway`, where it
        is known, does not listen at one of them.
        """
        if gateway is not None:
            check_lent(sockets, gateway)
        self._lent = sockets

    def inherit(self, sockets: list[Lent]) -> None:
        """Use these sockets of a predecessor for the binds at their addresses (`taken`: the names of those in use),
        until settle()."""
        self._inherited = sockets

    def settle(self) -> None:
        """Close sockets of the predecessor that no bind uses."""
        for one in self._inherited:
            one.sock.close()
        self._inherited = []

    @property
    def lent(self) -> list[Lent]:
        """Return the sockets that a service manager has lent."""
        return self._lent

    def open(self, gateway: Gateway) -> set[str]:
        """Open the sockets of new ports; return their keys. If one fails, opens none and raises ReloadFailed."""
        opened: set[str] = set()
        errors: dict[int, str] = {}
        for bind in gateway.binds:
            if bind.key in self.by_key or bind.internal:
                continue
            lent = find_lent(self._lent, bind.host, bind.port)
            if lent is not None:
                self.by_key[bind.key] = lent
                opened.add(bind.key)
                continue
            inherited = next((one for one in self._inherited if one.serves(bind.host, bind.port)), None)
            if inherited is not None:
                self._inherited.remove(inherited)
                self.taken.add(inherited.name)
                self.by_key[bind.key] = inherited.sock
                opened.add(bind.key)
                continue
            if taken(bind.host, bind.port):
                errors[bind.port] = f"{bind.key}: {bind.address} is already in use{advice(bind.port)}"
                continue
            try:
                self.by_key[bind.key] = open_socket(bind.host, bind.port, shared=True)
                opened.add(bind.key)
            except OSError as error:
                errors[bind.port] = f"{bind.key}: cannot listen on {bind.address}: {error.strerror}"
        if errors:
            self.close(opened)
            raise ReloadFailed("; ".join(errors.values()), errors)
        return opened

    def close(self, keys: Iterable[str]) -> set[str]:
        """Close sockets; return the keys of those that were open."""
        closed = set(keys) & self.by_key.keys()
        for key in closed:
            self.by_key.pop(key).close()
        return closed
