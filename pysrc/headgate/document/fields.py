"""Parsers of scalar fields. All functions raise ValueError, with a message that is shown after the field's path.

Messages describe the expected form and never quote the text, because it may be a secret.
"""

from __future__ import annotations

import ipaddress
import re
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret
from headgate_engine.lazy_pattern import lazy_pattern

MAX_CEL_CHARS: Final = 16_384
MAX_PATTERN_CHARS: Final = 4_096
DNS_PORT: Final = 53
MAX_PORT: Final = 65_535
MAX_PICODOLLARS: Final = 9_000_000 * 10**12

_UNIT_NS: Final = {
    "ns": 1, "us": 1_000, "\u00b5s": 1_000, "\u03bcs": 1_000, "ms": 1_000_000, "s": 1_000_000_000,
    "m": 60_000_000_000, "h": 3_600_000_000_000,
}  # fmt: skip
DURATION_PATTERN: Final = (
    r"^\+?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$"
)
_DURATION = lazy_pattern(DURATION_PATTERN)
_PART = lazy_pattern(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
MAX_DURATION_NS: Final = 2**63 - 1
NS_PER_MS: Final = 1_000_000

_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_DECIMAL: Final = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BYTE_SIZE = lazy_pattern(r"([0-9]{1,19})(Ki|Mi|Gi|Ti|k|M|G|T)?")
BYTE_SIZE_PATTERN: Final = f"^{_BYTE_SIZE.pattern}$"
MAX_BYTE_SIZE: Final = 2**63 - 1

HEADER_NAME_PATTERN: Final = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$"
_HEADER_NAME = lazy_pattern(HEADER_NAME_PATTERN)
_HEADER_VALUE = lazy_pattern(r"[\t\x20-\x7e\x80-\xff]*")
PSEUDO_HEADERS: Final = (":method", ":path", ":authority", ":scheme")
_LABEL = lazy_pattern(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_HOST = lazy_pattern(r"[A-Za-z0-9._-]{1,253}")


def show_milliseconds(value: int) -> str:
    """Return a time in milliseconds as a duration text, such as `5s` or `1500ms`."""
    return f"{value // 1000}s" if value % 1000 == 0 else f"{value}ms"


def duration_ns(text: str) -> int:
    """Parse a Go duration (`300ms`, `1h2m3s`, `1.5s`, `0`) into nanoseconds, rounded down.

    Source: https://pkg.go.dev/time#ParseDuration. Negative durations are refused.
    """
    if text.startswith("-"):
        raise ValueError("a duration cannot be negative")
    if len(text) > 64 or not _DURATION.fullmatch(text):
        raise ValueError("not a duration such as 300ms, 5s or 1h30m")
    total = 0
    for whole, fraction, unit in _PART.findall(text):
        total += int(whole or "0") * _UNIT_NS[unit]
        if fraction:
            total += int(fraction) * _UNIT_NS[unit] // 10 ** len(fraction)
    if total > MAX_DURATION_NS:
        raise ValueError("a duration is at most 292 years")
    return total


def duration_ms(text: str) -> int:
    """Parse a Go duration into milliseconds, rounded up, so that a positive duration never becomes 0."""
    return -(-duration_ns(text) // NS_PER_MS)


def byte_size(text: str) -> int:
    """Parse `4096`, `64Ki` or `2M` into bytes."""
    found = _BYTE_SIZE.fullmatch(text)
    if found is None:
        raise ValueError("not a size such as 4096, 64Ki or 2M")
    suffix = found[2] or ""
    return int(found[1]) * (_BINARY.get(suffix) or _DECIMAL.get(suffix) or 1)


def bytes_of(value: int | str) -> int:
    """Return a size in bytes from a number of bytes, or from a text as in byte_size()."""
    found = byte_size(value) if isinstance(value, str) else value
    if not 0 <= found <= MAX_BYTE_SIZE:
        raise ValueError(f"out of range 0..{MAX_BYTE_SIZE}")
    return found


def port(number: int) -> int:
    """Check a TCP port, 1..65535."""
    if not 1 <= number <= MAX_PORT:
        raise ValueError("a port must be 1..65535")
    return number


def header_name(text: str) -> str:
    """Return a header name in lower case (RFC 9110 section 5.1)."""
    if not _HEADER_NAME.fullmatch(text):
        raise ValueError("not a header name")
    return text.lower()


def header_or_pseudo(text: str) -> str:
    """Return a header name in lower case, or one of the request's pseudo-headers."""
    return text if text in PSEUDO_HEADERS else header_name(text)


def header_value(text: str) -> str:
    """Return a header value (RFC 9110 section 5.5): Latin-1, no control character but tab, no blank at either end."""
    if not _HEADER_VALUE.fullmatch(text):
        raise ValueError("not a header value: control or non-Latin-1 characters")
    if text != text.strip(" \t"):
        raise ValueError("a header value cannot begin or end with a space")
    return text


def hostname(text: str) -> str:
    """Return a host name pattern in lower case: an exact name, `*.suffix` or `*`."""
    name = text.lower()
    if name == "*":
        return name
    rest = name.removeprefix("*.")
    if len(name) > 253 or not rest or not all(_LABEL.fullmatch(part) for part in rest.split(".")):
        raise ValueError("not a host name such as api.example.com or *.example.com")
    return name


def pattern(text: str) -> str:
    """Check a regular expression of RE2 (https://github.com/google/re2/wiki/Syntax) and return it."""
    import re2  # 2.5 MB: loaded with the first pattern

    if len(text) > MAX_PATTERN_CHARS:
        raise ValueError(f"a pattern has at most {MAX_PATTERN_CHARS} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(text, options)
    except re2.error as error:
        detail = error.args[0] if error.args else ""
        shown = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        # The text after the colon quotes the pattern.
        raise ValueError(f"not a regular expression: {shown.partition(':')[0]}") from None
    return text


def cel(text: str) -> str:
    """Check the length of a CEL expression, 1..16384 characters, and return it."""
    if not 1 <= len(text) <= MAX_CEL_CHARS:
        raise ValueError(f"an expression has 1..{MAX_CEL_CHARS} characters")
    return text


def secret(text: str) -> Secret:
    """Return a secret without surrounding blanks. It must be a valid header value."""
    stripped = text.strip()
    if not stripped:
        raise ValueError("a secret cannot be empty")
    if not _HEADER_VALUE.fullmatch(stripped):
        raise ValueError("a secret cannot contain control or non-Latin-1 characters")
    return Secret(stripped)


@dataclass(frozen=True, slots=True)
class ConnectTarget:
    """The destination of a connection. `scheme` and `path` are None if the text has none."""

    host: str
    port: int
    unix_path: str | None = None
    scheme: str | None = None
    path: str | None = None


def _host(text: str) -> str:
    # The messages of `ipaddress` quote the text, which may have come from the environment.
    try:
        if text.startswith("[") and text.endswith("]"):
            return str(ipaddress.IPv6Address(text[1:-1]))
        if text.replace(".", "").isdigit():
            return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise ValueError("not an IP address") from None
    if not _HOST.fullmatch(text):
        raise ValueError("not a host")
    return text.lower()


def host_port(text: str) -> tuple[str, int]:
    """Split `name:port`, `1.2.3.4:port` or `[::1]:port` into host and port. The port is mandatory."""
    host, colon, digits = text.rpartition(":")
    if not colon or not digits.isascii() or not digits.isdigit() or len(digits) > 5:
        raise ValueError("not host:port")
    try:
        return _host(host), port(int(digits))
    except ValueError as error:
        raise ValueError(f"not host:port: {error}") from None


def destination_host(text: str) -> str:
    """Return a host name pattern in lower case, an exact name or `*.suffix`, or an IP address without brackets."""
    try:
        address = ipaddress.ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        name = hostname(text)
        if name == "*":
            raise ValueError("not a host name such as api.example.com or *.example.com") from None
        return name
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def network(text: str) -> str:
    """Return a network such as `10.0.0.0/8`, or an address as a network of its own."""
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        raise ValueError("not a network such as 10.0.0.0/8 or fd00::/8") from None


def name_server(text: str) -> str:
    """Check the address of a name server, `ip` or `ip:port` with brackets around IPv6, and return it with its port
    (53 unless given)."""
    number = DNS_PORT
    try:
        address = ipaddress.ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        try:
            host, number = host_port(text)
            address = ipaddress.ip_address(host)
        except ValueError:
            raise ValueError("a name server must be ip or ip:port") from None
    return f"[{address}]:{number}" if address.version == 6 else f"{address}:{number}"


def target(text: str) -> ConnectTarget:
    """Parse a backend's address: `host:port`, `unix:/path`, or `http(s)://host[:port]` without path and query."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path.startswith("/") or "\0" in path or len(path.encode()) > 107:
            raise ValueError("a Unix socket must be unix:/absolute/path of at most 107 bytes")
        return ConnectTarget("", 0, unix_path=path)
    if "://" in text:
        found = url(text)
        if found.path not in (None, "/"):
            raise ValueError("a host cannot have a path")
        return ConnectTarget(found.host, found.port, scheme=found.scheme)
    host, number = host_port(text)
    return ConnectTarget(host, number)


def url(text: str) -> ConnectTarget:
    """Parse `http(s)://host[:port][/path]`. User, query and fragment are refused."""
    try:
        parts = urlsplit(text)
        number = parts.port
    except ValueError:
        raise ValueError("not a URL") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError("a URL must begin with http:// or https://")
    if parts.username is not None or parts.query or parts.fragment or "?" in text or "#" in text:
        raise ValueError("a URL cannot have a user, a query or a fragment here")
    if any(char <= " " or char == "\x7f" for char in text):
        raise ValueError("a URL cannot contain spaces or control characters")
    if not parts.hostname:
        raise ValueError("a URL needs a host")
    host = _host(f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname)
    default = 443 if parts.scheme == "https" else 80
    return ConnectTarget(
        host, port(number) if number is not None else default, scheme=parts.scheme, path=parts.path or None
    )


def host_url(text: str) -> ConnectTarget:
    """Parse `http(s)://host[:port]`: a URL without a path."""
    found = url(text)
    if found.path not in (None, "/"):
        raise ValueError("this URL cannot have a path")
    return ConnectTarget(found.host, found.port, scheme=found.scheme)


def origin(text: str) -> str:
    """Return `http(s)://host[:port]` as browsers write an origin (RFC 6454 section 6.2): without a default port."""
    found = url(text)
    if found.path is not None:
        raise ValueError("an origin must be http://host:port, without a path")
    default = 443 if found.scheme == "https" else 80
    host = f"[{found.host}]" if ":" in found.host else found.host.lower()
    return f"{found.scheme}://{host}" + (f":{found.port}" if found.port != default else "")


GRPC_METHOD_PATTERN: Final = r"^/[A-Za-z_][A-Za-z0-9_.]*/[A-Za-z_][A-Za-z0-9_]*$"


def grpc_method(text: str) -> str:
    """Return the full path of a gRPC method: `/package.Service/Method`."""
    if not re.fullmatch(GRPC_METHOD_PATTERN.strip("^$"), text):
        raise ValueError("a gRPC method must be /package.Service/Method")
    return text


def server_name(text: str) -> str:
    """Return the name or IP address to verify a certificate against, in lower case and without brackets."""
    return _host(f"[{text}]" if ":" in text and not text.startswith("[") else text)


def picodollars(value: float | str) -> int:
    """Return an amount of dollars in picodollars (1e-12): a number, or a decimal text, which is exact."""
    from decimal import Decimal, InvalidOperation  # few files have amounts

    try:
        amount = Decimal(str(value)).scaleb(12)
    except InvalidOperation:
        raise ValueError("not an amount of dollars such as 25 or 0.5") from None
    if not amount.is_finite() or not 0 <= amount <= MAX_PICODOLLARS:
        raise ValueError("an amount must be 0 to 9 million dollars")
    if amount != amount.to_integral_value():
        raise ValueError("an amount of dollars has at most 12 decimals")
    return int(amount)


def unix_seconds(text: str) -> int:
    """Parse a time such as `2027-01-31T12:00:00Z` (RFC 3339) into Unix seconds, rounded down."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("not a time such as 2027-01-31T12:00:00Z") from None
    if found.tzinfo is None:
        raise ValueError("a time needs its zone, such as Z")
    return int(found.timestamp() // 1)
