"""Addresses of gateways that run on this machine, from a range of it."""

from __future__ import annotations

import hashlib
import ipaddress
import socket
from collections.abc import Collection
from typing import Final

from headgate.cluster.errors import ClusterError
from headgate.cluster.snapshot import ObjectKey

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# How many addresses are looked at before a range counts as full.
_MOST_LOOKS: Final = 65_536


class AddressRange:
    """A range such as 127.0.0.0/8 or 10.98.0.0/16; the first and the last of its addresses are left out."""

    def __init__(self, text: str) -> None:
        """Raises ClusterError."""
        try:
            self._network: _Network = ipaddress.ip_network(text)
        except ValueError as error:
            raise ClusterError(f"range of addresses {text!r}: {error}") from None
        self._room = self._network.num_addresses - 2
        if self._room < 1:
            raise ClusterError(f"range of addresses {text!r}: there is no room in it")

    def __contains__(self, text: str) -> bool:
        try:
            return ipaddress.ip_address(text) in self._network
        except ValueError:
            return False

    def choose(self, key: ObjectKey, taken: Collection[str]) -> str:
        """Return the address of a Gateway: the same one each time, unless it is taken. Raises ClusterError.

        127.0.0.1 and its like are nobody's: what else runs on the machine is there.
        """
        start = int.from_bytes(hashlib.sha256(str(key).encode()).digest()[:8])
        for look in range(min(self._room, _MOST_LOOKS)):
            found = self._network[1 + (start + look) % self._room]
            if str(found) not in taken and str(found) not in ("127.0.0.1", "::1"):
                return str(found)
        raise ClusterError(f"no address of {self._network} is free")


def can_listen(address: str) -> bool:
    """Tell whether this machine has an address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def loopback_of(address: str) -> str:
    """Return a loopback address that belongs to an address: for servers that nobody else may reach."""
    found = ipaddress.ip_address(address)
    if found.is_loopback:
        return address
    return str(ipaddress.IPv4Address((127 << 24) | int(found) & 0xFF_FFFF))
