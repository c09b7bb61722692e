"""IP addresses and networks in expressions: ip(), cidr() and their methods."""

import ipaddress

from headgate_engine.expr.values import EvaluationError, no_overload


class Address:
    """An IP address."""

    TYPE_NAME = "net.IP"
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Address) and self.value == other.value

    def __hash__(self):
        return hash(self.value)

    def cel_text(self):
        return str(self.value)

    cel_json = cel_text


class Network:
    """An IP address with a prefix length. The host bits are kept."""

    TYPE_NAME = "net.CIDR"
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Network) and self.value == other.value

    def __hash__(self):
        return hash(self.value)

    def cel_text(self):
        return f"{self.value.ip}/{self.value.network.prefixlen}"

    cel_json = cel_text


def _parsed(text):
    if not isinstance(text, str):
        raise no_overload("an address is a string")
    try:
        found = ipaddress.ip_address(str(text))
    except ValueError:
        raise EvaluationError(f"IP Address '{text}' parse error") from None
    if found.version == 6 and found.ipv4_mapped is not None and "." not in text:
        return found.ipv4_mapped
    if found.version == 6 and (found.scope_id is not None or found.ipv4_mapped is not None):
        raise EvaluationError(f"IP Address '{text}' with a zone or an embedded IPv4 address is not allowed")
    return found


def _ip(value):
    if isinstance(value, Network):
        return Address(value.value.ip)
    return Address(_parsed(value))


def _is_ip(value):
    if not isinstance(value, str):
        raise no_overload("isIP")
    try:
        _parsed(value)
    except EvaluationError:
        return False
    return True


def _cidr(value):
    if not isinstance(value, str):
        raise no_overload("cidr")
    address, slash, length = value.partition("/")
    try:
        if not slash or not length.isdigit() or length != str(int(length)):
            raise ValueError
        _parsed(address)
        return Network(ipaddress.ip_interface(str(value)))
    except (ValueError, EvaluationError):
        raise EvaluationError(f"CIDR '{value}' parse error") from None


def _is_cidr(value):
    try:
        _cidr(value)
    except EvaluationError:
        if not isinstance(value, str):
            raise
        return False
    return True


def _is_canonical(text):
    return str(_parsed(text)) == text


def _address(value):
    if isinstance(value, Address):
        return value.value
    raise no_overload("an address is wanted")


def _network(value):
    if isinstance(value, Network):
        return value.value
    raise no_overload("a network is wanted")


def _family(value):
    return _address(value).version


def _is_unspecified(value):
    return _address(value).is_unspecified


def _is_loopback(value):
    return _address(value).is_loopback


def _is_link_local_multicast(value):
    found = _address(value)
    local = "224.0.0.0/24" if found.version == 4 else "ff02::/16"
    return found in ipaddress.ip_network(local)


def _is_link_local_unicast(value):
    return _address(value).is_link_local


def _is_global_unicast(value):
    found = _address(value)
    if found.version == 4:
        return not (found.is_unspecified or found.is_loopback or found.is_link_local
                    or str(found) == "255.255.255.255" or found in ipaddress.ip_network("224.0.0.0/24"))
    return not (found.is_unspecified or found.is_loopback or found.is_link_local or found.is_multicast
                or found in ipaddress.ip_network("fc00::/7"))


def _contains_ip(network, value):
    network = _network(network).network
    address = _parsed(value) if isinstance(value, str) else _address(value)
    return address.version == network.version and address in network


def _contains_cidr(network, other):
    outer = _network(network).network
    inner = (_cidr(other) if isinstance(other, str) else other)
    inner = _network(inner).network
    return outer.version == inner.version and inner.subnet_of(outer)


def _masked(value):
    network = _network(value).network
    return Network(ipaddress.ip_interface(str(network)))


def _prefix_length(value):
    return _network(value).network.prefixlen


FUNCTIONS = {
    ("ip", False): (_ip, 1, 1),
    ("isIP", False): (_is_ip, 1, 1),
    ("ip.isCanonical", False): (_is_canonical, 1, 1),
    ("cidr", False): (_cidr, 1, 1),
    ("isCIDR", False): (_is_cidr, 1, 1),
    ("family", True): (_family, 0, 0),
    ("isUnspecified", True): (_is_unspecified, 0, 0),
    ("isLoopback", True): (_is_loopback, 0, 0),
    ("isLinkLocalMulticast", True): (_is_link_local_multicast, 0, 0),
    ("isLinkLocalUnicast", True): (_is_link_local_unicast, 0, 0),
    ("isGlobalUnicast", True): (_is_global_unicast, 0, 0),
    ("containsIP", True): (_contains_ip, 1, 1),
    ("containsCIDR", True): (_contains_cidr, 1, 1),
    ("ip", True): (_ip, 0, 0),
    ("masked", True): (_masked, 0, 0),
    ("prefixLength", True): (_prefix_length, 0, 0),
}
