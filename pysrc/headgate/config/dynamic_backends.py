"""`dynamic` backends: the destination comes from the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headgate.config.check import Record
from headgate.config.policy.expression import check
from headgate.config.policy_values import BackendOptions
from headgate.document.fields import ConnectTarget
from headgate.document.lazy_dataclass import replace
from headgate.errors import Problem
from headgate.ir.backend import DestinationRules, DynamicBackend
from headgate.ir.digest import digest

if TYPE_CHECKING:
    from headgate.config.backends import Backends

NAME: Final = "dynamic"


def own_credentials(backends: Backends, record: Record, options: BackendOptions, own: BackendOptions) -> BackendOptions:
    """Return the options of a backend of a route without credentials that were meant for other backends, and without
    what is about endpoints.

    What the route or the gateway sets goes to the backends that the operator has chosen; the destination of a dynamic
    one is chosen by the client. `own`: the options that stand at the backend itself.
    """
    dynamic = record.get("dynamic")
    if dynamic is None:
        return options
    found, left = options, []
    if options.auth is not own.auth:
        found = replace(found, auth=own.auth)
        left.append("backendAuth of the route or the gateway is not used for its dynamic backend")
    tls = options.tls
    if tls is not None and tls is not own.tls and tls.client is not None and dynamic.get("allowedHosts") is None:
        found = replace(found, tls=replace(tls, client=None))
        left.append("the client certificate of the route or the gateway is not used for its dynamic backend")
    if options.health is not own.health or options.affinity != own.affinity:
        found = replace(found, health=own.health, affinity=own.affinity)
        left.append("health and sessionAffinity of the route or the gateway do not apply to its dynamic backend")
    backends.context.warnings.extend(left)
    return found


def parse(backends: Backends, record: Record, options: BackendOptions, *, tcp: bool = False) -> DynamicBackend:
    """Return the backend of a record with `dynamic`. tcp: no HTTP is spoken with its destinations."""
    context = backends.context
    dynamic = record["dynamic"]
    hosts = dynamic.get("allowedHosts")
    rules = DestinationRules(
        hosts=None if hosts is None else tuple(dict.fromkeys(hosts)),
        ranges=tuple(dict.fromkeys(dynamic.get("allowedRanges") or ())),
        ports=tuple(dict.fromkeys(dynamic.get("allowedPorts") or ())),
    )
    target = dynamic.get("target")
    if target is not None and tcp:
        context.fault(Problem.CONFLICT, dynamic, "target", "target needs a request, which a TCP route does not have")
    elif target is not None:
        check(context, dynamic, "target", target, "backend")
    for name, value in (("health", options.health), ("sessionAffinity", options.affinity)):
        if value is not None:
            message = f"{name} applies to backends with endpoints, not to a dynamic backend"
            context.fault(Problem.CONFLICT, record, "", message)
    # The connection settings of all destinations; the place is filled in for each.
    pattern = backends.endpoint(ConnectTarget("", 0), options, infers=not tcp, tcp=tcp)
    for name, setting, reason in (
        ("backendAuth", options.auth, "any client could have it sent to any host"),
        ("a client certificate (backendTLS)", pattern.tls and pattern.tls.client, "any host could see it"),
        ("backendTunnel", pattern.tunnel, "the proxy resolves names, so the gateway cannot check addresses"),
    ):
        if setting is not None and hosts is None:
            context.fault(Problem.CONFLICT, record, "", f"{name} of a dynamic backend needs its allowedHosts: {reason}")
    key = f"{NAME}/{digest(pattern.key, pattern.infers, tcp, target, rules)}"
    return DynamicBackend(key=key, name=NAME, target=target, rules=rules, endpoint=pattern)
