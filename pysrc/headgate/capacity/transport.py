"""The connections of a run: address, TLS, and the compiled requests."""

from __future__ import annotations

import contextlib
import socket
import ssl
from pathlib import Path
from typing import Any, Final, NamedTuple

from headgate.capacity.errors import BenchError
from headgate.capacity.workload import RequestSpec, TargetPlace
from headgate_engine.errors import TlsError
from headgate_engine.load.core import LoadTarget
from headgate_engine.load.request import LoadRequest
from headgate_engine.tls.context import TlsContext

# Seconds for a connection that only shows which address of a name is served.
_PATIENCE: Final = 5.0


class Trust(NamedTuple):
    """Whose certificates are taken. roots: a file with PEM; None: those of the system. insecure: any."""

    roots: str | None = None
    insecure: bool = False


class DialledAddress(NamedTuple):
    """An address of a target. local: it is one of this machine."""

    family: int
    address: Any
    local: bool


def address_of(place: TargetPlace) -> DialledAddress:
    """Return the first address of a host that takes connections; its first one if none does. Raises BenchError."""
    try:
        found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise BenchError(f"{place.host}: {error.strerror or error}") from None
    for family, kind, number, _, address in found:
        with socket.socket(family, kind, number) as asked, contextlib.suppress(OSError):
            asked.settimeout(_PATIENCE)
            asked.connect(address)
            return DialledAddress(family, address, asked.getsockname()[0] == asked.getpeername()[0])
    return DialledAddress(found[0][0], found[0][4], False)


def target_of(place: TargetPlace, trust: Trust, http2: bool) -> LoadTarget:
    """Return where connections lead to. Raises BenchError."""
    family, address, _ = address_of(place)
    if not place.secure:
        return LoadTarget(family, address)
    try:
        roots = Path(trust.roots).read_bytes() if trust.roots is not None else None
        alpn = (b"h2",) if http2 else (b"http/1.1",)
        context = TlsContext(server=False, roots=roots, system_roots=roots is None and not trust.insecure, alpn=alpn)
        if context.lacks_roots:
            context.trust_system()
    except (OSError, TlsError) as error:
        raise BenchError(f"TLS: {error}") from None
    return LoadTarget(family, address, context, place.host, not trust.insecure)


def python_context(trust: Trust) -> ssl.SSLContext:
    """Return the same for Python's own clients. Raises BenchError."""
    try:
        context = ssl.create_default_context(cafile=trust.roots)
    except OSError as error:
        raise BenchError(f"{trust.roots}: {error.strerror or error}") from None
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def requests_of(specs: tuple[RequestSpec, ...], place: TargetPlace) -> tuple[LoadRequest, ...]:
    """Return requests as the generator takes them. Raises BenchError for what cannot be sent."""
    found = []
    for spec in specs:
        host = next((value for name, value in spec.fields if name.lower() == "host"), place.authority)
        fields = [(name.lower(), value) for name, value in spec.fields if name.lower() != "host"]
        try:
            request = LoadRequest(spec.method, spec.target, host, fields, spec.body)
            if spec.number_at >= 0:
                request.number(spec.number_at)
        except ValueError as error:
            raise BenchError(f"this request cannot be sent: {error}") from None
        if spec.judgement == "stream" and spec.format is not None:
            request.judge_stream(spec.format)
        elif spec.judgement == "rpc":
            request.judge_rpc()
        found.append(request)
    return tuple(found)
