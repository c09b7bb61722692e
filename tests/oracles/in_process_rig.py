"""The controller at a small API server, in the process of a test, with stand-ins for what sends and deploys."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fake_api import FakeApiServer
from manifests import Json, endpoints, gateway, gateway_class, http_route, service

from headgate.cluster.client import KubernetesClient
from headgate.cluster.controller.components import ComponentLevels
from headgate.cluster.controller.parts import MakeParts, Parts, Warned, no_parts
from headgate.cluster.controller.process import Controller
from headgate.cluster.controller.settings import ControllerSettings
from headgate.cluster.kubeconfig import ClusterAccess
from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.deployed import Placed
from headgate.cluster.translate.fragments import Fragment
from headgate.cluster.translate.gateway import Acknowledged
from headgate.net.tasks import spawn

GROUP = "gateway.networking.k8s.io"
CLASSES, GATEWAYS, ROUTES = (f"/apis/{GROUP}/v1/{plural}" for plural in ("gatewayclasses", "gateways", "httproutes"))
SERVICES, SLICES, LEASES = "/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices", "/apis/coordination.k8s.io/v1/leases"
POOLS, PODS = "/apis/inference.networking.k8s.io/v1/inferencepools", "/api/v1/pods"
MAIN = ObjectKey("edge", "main")


class Sends:
    """In the place of what sends configurations: keeps them, and acknowledges when a test says so."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.changed = changed
        self.gateways: dict[ObjectKey, tuple[Fragment, ...]] = {}
        self.generations: dict[ObjectKey, int] = {}
        self.said: dict[ObjectKey, Acknowledged] = {}
        self.warned: Warned = lambda _key, _reason, _message: None
        self.events: list[str] = []

    def prepared(self, gateways: Mapping[ObjectKey, tuple[Fragment, ...]]) -> object:
        self.prepared_in = threading.current_thread().name
        return gateways

    def update(
        self, gateways: Mapping[ObjectKey, tuple[Fragment, ...]], generations: Mapping[ObjectKey, int], prepared: object = None
    ) -> None:
        assert prepared is gateways
        self.gateways, self.generations = dict(gateways), dict(generations)

    def acknowledged(self) -> dict[ObjectKey, Acknowledged]:
        return self.said

    def say(self, said: Acknowledged) -> None:
        self.said = {MAIN: said}
        self.changed()

    def shown(self) -> list[dict[str, object]]:
        return [{"gateway": str(key)} for key in self.gateways]

    @property
    def counters(self) -> Mapping[str, int]:
        names = ("xds_auth_rq_total", "xds_auth_rq_success_total", "xds_auth_rq_failure_total", "xds_rejects_total")
        return {name: number for number, name in enumerate(names)}

    def streams(self) -> int:
        return 7

    def lead(self, leading: bool) -> None:
        self.events.append("lead" if leading else "follow")

    async def start(self) -> None:
        self.events.append("start")

    async def stop(self) -> None:
        self.events.append("stop")

    @property
    def routes(self) -> list[str]:
        return [one.key for one in self.gateways.get(MAIN, ()) if one.place == "routes"]


class Places:
    """In the place of the deployer."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.changed = changed
        self.found: dict[ObjectKey, Placed] = {}
        self.wanted = 0
        self.warned: Warned = lambda _key, _reason, _message: None
        self.runs = 0

    def want(self, _snapshot: Snapshot) -> None:
        self.wanted += 1

    async def run(self) -> None:
        self.runs += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.runs -= 1

    def results(self) -> Mapping[ObjectKey, Placed]:
        return self.found

    def place(self, placed: Placed) -> None:
        self.found = {MAIN: placed}
        self.changed()


class Cluster:
    def __init__(self, server: FakeApiServer) -> None:
        self.server = server
        self.sends: Sends | None = None
        self.places: Places | None = None
        self.clients: list[KubernetesClient] = []
        self.tasks: list[asyncio.Task[Any]] = []

    def start(self, name: str = "one", parts: bool = True, inference: bool = False) -> Controller:
        """Start a replica; the last that has parts is the one whose parts the test sees."""

        def made(_calls: object, changed: Callable[[], None]) -> Parts:
            self.sends, self.places = Sends(changed), Places(changed)
            return Parts(self.sends, self.sends, self.places)

        return self._controller(name, made if parts else no_parts, inference)

    def started(self, parts: MakeParts, name: str) -> str:
        """Start a replica with parts, and return its name."""
        self._controller(name, parts)
        return name

    def _controller(self, name: str, parts: MakeParts, inference: bool = False) -> Controller:
        client = KubernetesClient(ClusterAccess(server=self.server.url), _briefly)
        self.clients.append(client)
        settings = ControllerSettings(identity=name, health_port=0, metrics_port=0, admin_port=0, inference=inference)
        controller = Controller(client, settings, ComponentLevels(), parts)
        self.tasks.append(spawn(f"controller {name}", controller.run()))
        return controller

    async def stop(self) -> None:
        for one in self.tasks:
            one.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for client in self.clients:
            await client.close()
        self.tasks, self.clients = [], []

    def status(self, path: str = GATEWAYS, name: str = "edge/main") -> Json:
        found: Json = self.server.get(path, name).get("status") or {}
        return found

    def conditions(self) -> dict[str, tuple[str, str]]:
        return {one["type"]: (one["status"], one["reason"]) for one in self.status().get("conditions", ())}

    def parents(self, name: str = "shop/cart") -> list[dict[str, tuple[str, str]]]:
        entries = self.status(ROUTES, name).get("parents") or ()
        return [{one["type"]: (one["status"], one["reason"]) for one in entry["conditions"]} for entry in entries]


async def _briefly(_seconds: float) -> None:
    await asyncio.sleep(0.001)


def in_cluster(body: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with FakeApiServer().running() as server:
            server.define(GROUP, "v1", "gatewayclasses", "gateways", "httproutes")
            for path, document in (
                (CLASSES, gateway_class()), (GATEWAYS, gateway()), (ROUTES, http_route()), (SERVICES, service()),
                (SLICES, endpoints("shop/cart-1", "cart", ["10.0.0.1"])),
            ):  # fmt: skip
                server.put(path, {**document, "metadata": {name: one for name, one in document["metadata"].items() if name != "generation"}})
            cluster = Cluster(server)
            try:
                await body(cluster)
            finally:
                await cluster.stop()

    asyncio.run(run())


TRUE = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}
