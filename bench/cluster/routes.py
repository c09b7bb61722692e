"""Make HTTPRoutes over Gateways at an API server: `python -m bench.cluster.routes KUBECONFIG ROUTES [GATEWAYS]`.

Each Gateway has a namespace with its routes, and a Service with an EndpointSlice for every ten of them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp

from headgate.cluster.api import tls_context
from headgate.cluster.kubeconfig import load_access

GATEWAY_API = "/apis/gateway.networking.k8s.io/v1"
PARALLEL = 32


def documents(routes: int, gateways: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return what is to be made, in stages: each a list of objects with their paths."""
    spaces = [f"team-{number:03d}" for number in range(gateways)]
    namespaces = [_made("v1", "Namespace", "", one) for one in spaces]
    classes = [_made("gateway.networking.k8s.io/v1", "GatewayClass", "", "headgate", {"controllerName": "headgate.dev/headgate"})]
    listener = {"name": "web", "port": 80, "protocol": "HTTP"}
    fronts = [
        _made("gateway.networking.k8s.io/v1", "Gateway", one, "main", {"gatewayClassName": "headgate", "listeners": [listener]})
        for one in spaces
    ]
    made, services, slices = [], [], []
    for number in range(routes):
        space = spaces[number % gateways]
        index = number // gateways
        made.append(_made("gateway.networking.k8s.io/v1", "HTTPRoute", space, f"route-{index:05d}", _route(index)))
        if index % 10 == 0:
            name = f"app-{index // 10:04d}"
            services.append(_made("v1", "Service", space, name, {"ports": [{"name": "web", "port": 8080}]}))
            slices.append(_slice(space, name))
    return [
        ("/api/v1/namespaces", namespaces),
        (f"{GATEWAY_API}/gatewayclasses", classes),
        (GATEWAY_API + "/namespaces/{}/gateways", fronts),
        ("/api/v1/namespaces/{}/services", services),
        ("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", slices),
        (GATEWAY_API + "/namespaces/{}/httproutes", made),
    ]


def _made(version: str, kind: str, namespace: str, name: str, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": version, "kind": kind, "metadata": metadata} | ({"spec": spec} if spec else {})


def _route(index: int) -> dict[str, Any]:
    edit = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-route", "value": str(index)}]}}
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": f"/r/{index}"}}],
        "filters": [edit],
        "backendRefs": [{"name": f"app-{index // 10:04d}", "port": 8080}],
    }
    return {"parentRefs": [{"name": "main"}], "hostnames": [f"r{index}.example.test"], "rules": [rule]}


def _slice(namespace: str, service: str) -> dict[str, Any]:
    metadata = {"name": f"{service}-1", "namespace": namespace, "labels": {"kubernetes.io/service-name": service}}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": "IPv4",
        "ports": [{"name": "web", "port": 8080, "protocol": "TCP"}],
        "endpoints": [{"addresses": [f"10.1.0.{number}"], "conditions": {"ready": True}} for number in (1, 2)],
    }


async def make(kubeconfig: str, routes: int, gateways: int) -> None:
    access = load_access(kubeconfig, os.environ, Path.home())
    connector = aiohttp.TCPConnector(ssl=tls_context(access), limit=PARALLEL)
    async with aiohttp.ClientSession(access.server, headers=dict(access.headers), connector=connector) as session:

        async def create(path: str, document: dict[str, Any]) -> None:
            where = path.format(document["metadata"].get("namespace", ""))
            while True:
                async with session.post(where, json=document) as answer:
                    if answer.status in (200, 201, 409):
                        return
                    if answer.status != 429:
                        raise RuntimeError(await answer.text())
                await asyncio.sleep(0.5)

        for path, stage in documents(routes, gateways):
            queue = iter(stage)

            async def work(path: str = path, queue: Any = queue) -> None:
                for one in queue:
                    await create(path, one)

            await asyncio.gather(*(work() for _ in range(PARALLEL)))


def main(arguments: list[str]) -> int:
    routes, gateways = int(arguments[1]), int(arguments[2]) if len(arguments) > 2 else 100
    began = time.monotonic()
    asyncio.run(make(arguments[0], routes, gateways))
    print(f"{routes} routes over {gateways} Gateways in {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
