"""`backendTunnel` to the IR: where the proxy is, how it is reached, which key it wants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy_values import NO_OPTIONS, BackendOptions, backend_options
from headgate.document.fields import Target
from headgate.errors import Problem
from headgate.ir.endpoint import Endpoint, Tunnel

Find = Callable[[str], tuple[Record, BackendOptions] | None]


class Tunnels:
    """`named` finds a backend of the file with its own policies, `endpoint` makes the IR of a place."""

    def __init__(self, context: Context, named: Find, endpoint: Callable[[Target, BackendOptions], Endpoint]) -> None:
        self._context = context
        self._named = named
        self._endpoint = endpoint
        self._read: dict[str, Tunnel | None] = {}

    def of(self, record: Record | None, target: Target) -> Tunnel | None:
        """Return the tunnel of a policy to a target; None without one, or after a report."""
        if record is None:
            return None
        if target.unix_path is not None:
            self._context.fault(Problem.CONFLICT, record, "", "no proxy leads to a Unix socket")
        if record.path not in self._read:
            self._read[record.path] = self._parse(record)
        return self._read[record.path]

    def _parse(self, record: Record) -> Tunnel | None:
        reference = record.get("proxy")
        if reference is None:
            return None
        host, options = reference.get("host"), NO_OPTIONS
        named = reference.get("backend")
        if reference.get("service") is not None:
            self._context.fault(Problem.UNSUPPORTED, reference, "service", " (a service as proxy)")
            return None
        if named is not None:
            found = self._named(named.removeprefix("/"))
            if found is None:
                self._context.fault(Problem.REFERENCE, reference, "backend", f"no backend is named {named!r}")
                return None
            host, options = found[0].get("host"), found[1]
            if host is None:
                self._context.fault(Problem.VALUE, reference, "backend", "backend type cannot be used as proxy")
        if host is None:
            return None
        options = options.under(backend_options(self._context, record.get("policies")))
        return self._tunnel(record, host, options)

    def _tunnel(self, record: Record, host: Target, options: BackendOptions) -> Tunnel | None:
        credential = None if options.auth is None else options.auth.fixed_header
        if options.auth is not None and credential is None:
            what = " (backendAuth other than a key in a header)"
            self._context.fault(Problem.UNSUPPORTED, record, "policies", what)
        kept = BackendOptions(
            tls=options.tls, connect_timeout_ms=options.connect_timeout_ms, keepalives=options.keepalives
        )
        if replace(options, auth=None) != kept:
            what = " (of a proxy other than backendTLS, backendAuth and tcp)"
            self._context.fault(Problem.UNSUPPORTED, record, "policies", what)
        if host.unix_path is not None:
            self._context.fault(Problem.VALUE, record, "proxy", "a proxy has a host and a port")
            return None
        return Tunnel(proxy=self._endpoint(host, kept), credential=credential)

