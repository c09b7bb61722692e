"""Asynchronous clients for the API server, compared: a cold list of HTTPRoutes in pages of 500, and a watch that begins with all of them.

    python -m bench.cluster.clients KUBECONFIG             every library, each in a process of its own
    python -m bench.cluster.clients KUBECONFIG LIBRARY     one of them

`python -m bench.cluster.routes KUBECONFIG COUNT` makes the routes before. CPU is that of the client's process alone; memory is what the
process has grown by when it holds all objects as the library gives them, and at its peak.
"""

from __future__ import annotations

import os
import resource
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson

from headgate.cluster.api import tls_context
from headgate.cluster.kubeconfig import ClusterAccess, load_access

PATH = "/apis/gateway.networking.k8s.io/v1/httproutes"
PAGE = 500
LIBRARIES = ("aiohttp", "httpx", "kubernetes_asyncio", "lightkube")


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident() -> float:
    """MiB that the process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for one in whole:
            yield one


class Aiohttp:
    def __init__(self, access: ClusterAccess, context: ssl.SSLContext) -> None:
        import aiohttp

        connector = aiohttp.TCPConnector(ssl=context)
        self.session = aiohttp.ClientSession(access.server, headers={"accept-encoding": "identity"}, connector=connector)

    async def list(self) -> tuple[list[Any], str]:
        found: list[Any] = []
        query = {"limit": str(PAGE)}
        while True:
            async with self.session.get(PATH, params=query) as answer:
                page = orjson.loads(await answer.read())
            found += page["items"]
            if not page["metadata"].get("continue"):
                return found, page["metadata"]["resourceVersion"]
            query["continue"] = page["metadata"]["continue"]

    async def watch(self) -> AsyncIterator[Any]:
        async with self.session.get(PATH, params={"watch": "1", "resourceVersion": "0"}) as answer:
            async for line in lines(answer.content.iter_any()):
                yield orjson.loads(line)

    async def close(self) -> None:
        await self.session.close()


class Httpx:
    def __init__(self, access: ClusterAccess, context: ssl.SSLContext) -> None:
        import httpx

        self.client = httpx.AsyncClient(base_url=access.server, verify=context, headers={"accept-encoding": "identity"}, timeout=60)

    async def list(self) -> tuple[list[Any], str]:
        found: list[Any] = []
        query = {"limit": str(PAGE)}
        while True:
            page = orjson.loads((await self.client.get(PATH, params=query)).content)
            found += page["items"]
            if not page["metadata"].get("continue"):
                return found, page["metadata"]["resourceVersion"]
            query["continue"] = page["metadata"]["continue"]

    async def watch(self) -> AsyncIterator[Any]:
        async with self.client.stream("GET", PATH, params={"watch": "1", "resourceVersion": "0"}) as answer:
            async for line in lines(answer.aiter_raw()):
                yield orjson.loads(line)

    async def close(self) -> None:
        await self.client.aclose()


class KubernetesAsyncio:
    """With its dynamic objects: it has no models of the Gateway API."""

    def __init__(self, access: ClusterAccess, context: ssl.SSLContext) -> None:
        from kubernetes_asyncio import client, config

        self.kubeconfig = os.environ["KUBECONFIG"]
        self.module, self.config = client, config
        self.api: Any = None

    async def start(self) -> None:
        settings = self.module.Configuration()
        await self.config.load_kube_config(self.kubeconfig, client_configuration=settings)
        self.api = self.module.CustomObjectsApi(self.module.ApiClient(settings))

    async def list(self) -> tuple[list[Any], str]:
        await self.start()
        found: list[Any] = []
        more: dict[str, Any] = {}
        while True:
            page = await self.api.list_cluster_custom_object("gateway.networking.k8s.io", "v1", "httproutes", limit=PAGE, **more)
            found += page["items"]
            if not page["metadata"].get("continue"):
                return found, page["metadata"]["resourceVersion"]
            more["_continue"] = page["metadata"]["continue"]

    async def watch(self) -> AsyncIterator[Any]:
        from kubernetes_asyncio.watch import Watch

        listing = self.api.list_cluster_custom_object
        async for event in Watch().stream(listing, "gateway.networking.k8s.io", "v1", "httproutes", resource_version="0"):
            yield event

    async def close(self) -> None:
        await self.api.api_client.close()


class Lightkube:
    def __init__(self, access: ClusterAccess, context: ssl.SSLContext) -> None:
        from lightkube import AsyncClient, KubeConfig
        from lightkube.generic_resource import create_namespaced_resource

        self.client = AsyncClient(config=KubeConfig.from_file(os.environ["KUBECONFIG"]))
        self.kind = create_namespaced_resource("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")

    async def list(self) -> tuple[list[Any], str]:
        found = [one async for one in self.client.list(self.kind, namespace="*", chunk_size=PAGE)]
        return found, "0"

    async def watch(self) -> AsyncIterator[Any]:
        async for event in self.client.watch(self.kind, namespace="*", resource_version="0"):
            yield event

    async def close(self) -> None:
        await self.client.close()


KINDS = dict(zip(LIBRARIES, (Aiohttp, Httpx, KubernetesAsyncio, Lightkube), strict=True))


async def measure(library: str, kubeconfig: str) -> None:
    access = load_access(kubeconfig, os.environ, Path.home())
    client = KINDS[library](access, tls_context(access))
    before, memory, began = cpu(), resident(), time.monotonic()
    objects, _ = await client.list()
    listed, took = cpu() - before, time.monotonic() - began
    grown = resident() - memory
    count = len(objects)
    objects.clear()
    before, seen = cpu(), 0
    async for _ in client.watch():
        seen += 1
        if seen == count:
            break
    each = (cpu() - before) / count * 1e6
    await client.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{library:20} {count:6} objects  list {took:5.2f} s, CPU {listed:5.2f} s, +{grown:4.0f} MiB  "
        f"watch {each:4.0f} us of CPU per event  peak {peak:4.0f} MiB",
        flush=True,
    )
    os._exit(0)  # a library that still reads its watch is not waited for


def main(arguments: list[str]) -> int:
    kubeconfig = arguments[0]
    if len(arguments) > 1:
        import uvloop

        uvloop.run(measure(arguments[1], kubeconfig))
    for library in LIBRARIES:
        environment = {**os.environ, "KUBECONFIG": kubeconfig}
        subprocess.run([sys.executable, "-m", "bench.cluster.clients", kubeconfig, library], check=True, env=environment)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
