"""Workloads of a service mesh (`workloads[].protocol: HBONE`), which are reached through tunnels.

A tunnel is CONNECT over HTTP/2 and mutual TLS to port 15008 of the workload. The gateway shows its X.509-SVID, and
accepts that of the workload: spiffe://<trust domain>/ns/<namespace>/sa/<service account>.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy_values import BackendOptions
from headgate.errors import Problem
from headgate.ir.digest import digest
from headgate.ir.endpoint import Endpoint
from headgate.ir.hbone import HBONE_PORT
from headgate.ir.service import Workload
from headgate.ir.tls import BackendTls
from headgate_engine.tls.identity import trust_domain_of


def check_workload(context: Context, record: Record, workload: Workload) -> None:
    """Report what a workload of the mesh lacks."""
    context.notes.spiffe = True
    if not workload.addresses:
        context.fault(Problem.MISSING, record, "workloadIps", "protocol HBONE requires an address")
    if not dict(workload.labels).get("serviceAccount"):
        message = "protocol HBONE requires a serviceAccount: its certificate is checked for it"
        context.fault(Problem.MISSING, record, "serviceAccount", message)
    elif trust_domain_of(workload.identity) != workload.trust_domain:
        context.fault(Problem.VALUE, record, "trustDomain", f"{workload.identity!r} is not the SPIFFE ID of a workload")
    if not context.has_workload_api:
        message = (
            "protocol HBONE requires a certificate of the gateway: set config.spiffe.endpoint or SPIFFE_ENDPOINT_SOCKET"
        )
        context.fault(Problem.MISSING, record, "protocol", message)


def tunnelled(context: Context, workload: Workload, plain: Endpoint, options: BackendOptions) -> Endpoint:
    """Return the endpoint that is reached through a tunnel of its workload. options: the policies of its backend."""
    for policy in (options.tunnel, options.proxy_protocol):
        if policy is not None:
            message = f" (to the workload {workload.uid!r}, which has protocol HBONE)"
            context.fault(Problem.UNSUPPORTED, policy, "", message)
    tls = BackendTls(spiffe=True, alpn=("h2",), subject_alt_names=(workload.identity,))
    place = Endpoint(key="", host=workload.addresses[0] if workload.addresses else "", port=HBONE_PORT, tls=tls)
    timing = (plain.connect_timeout_ms, plain.keepalives)
    place = replace(
        place,
        key=f"hbone://{place.address}#{digest(tls, context.hbone, *timing)}",
        connect_timeout_ms=plain.connect_timeout_ms,
        keepalives=plain.keepalives,
        http2=True,
        hbone=context.hbone,
    )
    return replace(plain, key=f"{plain.key}#in {place.key}", mesh=place)
