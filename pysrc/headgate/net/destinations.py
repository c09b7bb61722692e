"""Which places a dynamic backend may connect to: how they are written, their names and ports, and their addresses.

Clients name the place, so whatever the gateway can reach would be open to them: its own host, its network, and the
metadata service of its cloud. Addresses are checked when names have been resolved, and the connection goes to the
address that was checked: a name that has another address by then (DNS rebinding) gains nothing.

Special addresses: https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from headgate.ir.backend import DestinationRules
from headgate.net.dns import NameResolver, is_address
from headgate_engine.context.authority import valid_authority
from headgate_engine.errors import DestinationRefusedError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

DENIED_V4: Final = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "reserved"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "reserved"),
        ("198.51.100.0/24", "reserved"),
        ("203.0.113.0/24", "reserved"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
# All that is in use lies in 2000::/3; what is denied of it holds an IPv4 address that may be any, or is reserved.
GLOBAL_V6: Final = IPv6Network("2000::/3")
DENIED_V6: Final = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("2001::/23", "reserved"),  # with Teredo, 2001::/32
        ("2001:db8::/32", "reserved"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "reserved"),
    )
)
KINDS_V6: Final = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("ff00::/8", "multicast"),
    )
)
# RFC 6052: the last 32 bits are an IPv4 address.
NAT64: Final = IPv6Network("64:ff9b::/96")
# RFC 5214 section 6.1: bits 64 to 95 of an address whose last 32 bits are an IPv4 address.
ISATAP: Final = frozenset((0x0000_5EFE, 0x0200_5EFE))
# What gives out credentials of the machine: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
# (and of ECS and EKS), Azure's 168.63.129.16, Oracle's 192.0.0.192, Alibaba's 100.100.100.200.
METADATA: Final = frozenset(
    ip_address(one)
    for one in (
        "169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16", "192.0.0.192",
        "fd00:ec2::254", "fd00:ec2::23",
    )
)  # fmt: skip

_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
# A host whose last label is a number is an IPv4 address (https://url.spec.whatwg.org/#ends-in-a-number-checker), and
# there are libraries that read many forms of it.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
MAX_NAME: Final = 253


def place_of(authority: bytes, default_port: int | None) -> tuple[str, int]:
    """Return host and port of an authority. Raises ValueError; without a default, the port is mandatory.

    Names are in lower case and have no dot at the end; addresses are in their shortest form, without brackets.
    """
    valid, _ = valid_authority(authority)
    if not valid:
        raise ValueError("not host:port")
    text = authority.decode("ascii").lower()
    if text.startswith("["):
        inner, _, rest = text[1:].partition("]")
        host, digits = _six(inner), rest[1:]
    else:
        name, _, digits = text.partition(":")
        host = _name(name.removesuffix("."))
    if not digits and default_port is None:
        raise ValueError("the destination has no port")
    port = int(digits) if digits else default_port
    if not port:
        raise ValueError("port 0")
    return host, port


def _six(text: str) -> str:
    if "%" in text:
        raise ValueError("addresses with a zone are not allowed")
    try:
        address = IPv6Address(text)
    except ValueError:
        raise ValueError("not an IPv6 address") from None
    return str(address.ipv4_mapped or address)


def _name(name: str) -> str:
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(name))
        except ValueError:
            raise ValueError("not an IPv4 address of four decimal numbers") from None
    if len(name) > MAX_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("not a host name")
    return name


def written(host: str, port: int) -> str:
    """Return `host:port`, with brackets around IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def denied(address: Address) -> str | None:
    """Return what kind of address it is that nobody on the Internet has, None for one that somebody may have."""
    if address in METADATA:
        return "metadata"
    if isinstance(address, IPv4Address):
        return next((what for network, what in DENIED_V4 if address in network), None)
    if address.ipv4_mapped is not None:
        return denied(address.ipv4_mapped)
    if address in NAT64:
        return denied(_embedded(address))
    if address not in GLOBAL_V6:
        return next((what for network, what in KINDS_V6 if address in network), "reserved")
    if int(address) >> 32 & 0xFFFF_FFFF in ISATAP:
        return "ISATAP"
    return next((what for network, what in DENIED_V6 if address in network), None)


def _embedded(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFF_FFFF)


def is_local(address: Address) -> bool:
    """Return whether a connection to the address ends at this machine."""
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    # Only an address of the machine itself can be bound (ip(7)).
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


class DestinationGuard:
    """The rules of one dynamic backend. `is_own` tells whether the gateway itself listens on a port."""

    def __init__(self, rules: DestinationRules, is_own: Callable[[int], bool]) -> None:
        hosts = rules.hosts
        self._names = None if hosts is None else frozenset(one for one in hosts if not one.startswith("*."))
        self._suffixes = tuple(one[1:] for one in hosts or () if one.startswith("*."))
        self._ports = frozenset(rules.ports)
        self._ranges: tuple[Network, ...] = tuple(ip_network(one) for one in rules.ranges)
        self._is_own = is_own

    def check(self, host: str, port: int) -> None:
        """Check a place before its name is resolved. Raises DestinationRefusedError."""
        if self._ports and port not in self._ports:
            raise DestinationRefusedError(f"port {port} is not among allowedPorts")
        if self._names is not None and host not in self._names and not host.endswith(self._suffixes):
            raise DestinationRefusedError(f"{host} is not among allowedHosts")
        if is_address(host):
            self.check_address(host, port)

    def check_address(self, text: str, port: int) -> None:
        """Check the address of a connection. Raises DestinationRefusedError."""
        address = ip_address(text)
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        kind = denied(address)
        if kind is not None and not self._opened(address):
            raise DestinationRefusedError(f"{address} is a {kind} address")
        if self._is_own(port) and is_local(address):
            raise DestinationRefusedError(f"port {port} of {address} is the gateway's own")

    def _opened(self, address: Address) -> bool:
        """Return whether `allowedRanges` has the address; one of a metadata service by itself."""
        inner = _embedded(address) if isinstance(address, IPv6Address) and address in NAT64 else address
        fitting = [network for network in self._ranges if address in network or inner in network]
        if address in METADATA or inner in METADATA:
            return any(network.num_addresses == 1 for network in fitting)
        return bool(fitting)


class GuardedNames:
    """Resolves the name of one place, and returns those addresses that the rules allow: which are dialled."""

    def __init__(self, names: NameResolver, guard: DestinationGuard, port: int) -> None:
        self._names = names
        self._guard = guard
        self._port = port

    async def lookup(self, host: str) -> list[str]:
        """Return the addresses of `host`. Raises DestinationRefusedError if none is allowed."""
        found = []
        refusal: DestinationRefusedError | None = None
        for address in await self._names.lookup(host):
            try:
                self._guard.check_address(address, self._port)
            except DestinationRefusedError as error:
                refusal = error
            else:
                found.append(address)
        if refusal is not None and not found:
            raise DestinationRefusedError(f"{host}: {refusal}") from None
        return found
