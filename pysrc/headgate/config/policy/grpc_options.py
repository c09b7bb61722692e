"""What the `policies` of a gRPC service may not say: what gRPC sets itself."""

from __future__ import annotations

from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.document.fields import ConnectTarget
from headgate.document.lazy_dataclass import replace
from headgate.errors import Problem
from headgate.ir.policies import HeaderModifier
from headgate.ir.tls import BackendTls
from headgate_engine.context.field_names import HOP_BY_HOP

ALPN: Final = "h2"
# Fields that gRPC or HTTP/2 sets itself.
RESERVED: Final = HOP_BY_HOP - {"trailer"} | {"content-type", "host", ":authority"}


def tls_of(context: Context, record: Record, tls: BackendTls | None, host: ConnectTarget | None) -> BackendTls | None:
    """Return the TLS of a gRPC service, which speaks HTTP/2; None for plaintext."""
    if tls is None and host is not None and host.scheme == "https":
        tls = BackendTls()
    if tls is None:
        return None
    if tls.alpn is not None and ALPN not in tls.alpn:
        context.fault(Problem.CONFLICT, record, "policies", "gRPC needs HTTP/2: backendTLS.alpn must include h2")
    return replace(tls, alpn=(ALPN,))


def check(context: Context, record: Record, options: Any) -> None:
    """Report what a gRPC call cannot carry. `options`: a BackendOptions."""
    if options.request_timeout_ms == 0:
        context.fault(Problem.VALUE, record, "policies", "with a requestTimeout of 0 every check would fail")
    for name in sorted(_changed(options.request_headers)):
        if name in RESERVED or name.startswith("grpc-"):
            context.fault(Problem.CONFLICT, record, "policies", f"{name} is set by gRPC itself")
    policies = record.get("policies")
    http = None if policies is None else policies.get("http")
    if http is not None and http.get("version") == "HTTP/1.1":
        context.fault(Problem.CONFLICT, http, "version", "gRPC needs HTTP/2")


def _changed(modifier: HeaderModifier | None) -> set[str]:
    if modifier is None:
        return set()
    return {*(name for name, _ in (*modifier.add, *modifier.set)), *modifier.remove}
