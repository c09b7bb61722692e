"""The controller at a small API server, in the same process."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryResponse
from fake_api import Place
from in_process_rig import (
    CLASSES,
    GATEWAYS,
    GROUP,
    LEASES,
    MAIN,
    PODS,
    POOLS,
    ROUTES,
    SERVICES,
    SLICES,
    TRUE,
    Cluster,
    Places,
    Sends,
    in_cluster,
)
from manifests import Json, endpoints, http_route, made, service, tcp_route
from waiting import until

from headgate.cluster.controller.parts import MakeParts, Parts
from headgate.cluster.deliver.states import GatewayStates, StreamState
from headgate.cluster.snapshot import ObjectKey
from headgate.cluster.status.wanted import WantedStatuses
from headgate.cluster.translate.conditions import ObjectStatus, Unmet
from headgate.cluster.translate.deployed import Placement
from headgate.cluster.translate.gateway import Acknowledged
from headgate.net.tasks import spawn


def test_statuses_follow_what_is_there() -> None:
    async def body(cluster: Cluster) -> None:
        cluster.start()
        await until(lambda: cluster.parents() == [TRUE])
        await until(lambda: cluster.status().get("listeners", [{}])[0].get("attachedRoutes") == 1)
        cluster.server.remove(SERVICES, "shop/cart")
        await until(lambda: cluster.parents()[0]["ResolvedRefs"] == ("False", "BackendNotFound"))
        cluster.server.put(SERVICES, service())
        await until(lambda: cluster.parents() == [TRUE])
        cluster.server.remove(ROUTES, "shop/cart")
        await until(lambda: cluster.status()["listeners"][0]["attachedRoutes"] == 0)
        await until(lambda: cluster.status(CLASSES, "headgate").get("supportedFeatures"))

    in_cluster(body)


@pytest.mark.parametrize("inference", [False, True])
def test_pools_and_pods_are_read_where_they_are_asked_for(inference: bool) -> None:
    async def body(cluster: Cluster) -> None:
        cluster.server.define("inference.networking.k8s.io", "v1", "inferencepools")
        picker = {"name": "cart", "port": {"number": 8080}}
        spec = {"selector": {"matchLabels": {"app": "model"}}, "targetPorts": [{"number": 8000}], "endpointPickerRef": picker}
        cluster.server.put(POOLS, made("InferencePool", "shop/models", spec, "inference.networking.k8s.io/v1"))
        status = {"podIP": "10.0.0.9", "conditions": [{"type": "Ready", "status": "True"}]}
        cluster.server.put(PODS, {**made("Pod", "shop/a", {}, "v1", labels={"app": "model"}), "status": status})
        reference = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "models"}
        cluster.server.put(ROUTES, http_route("shop/models", {"backendRefs": [reference]}))
        cluster.start(inference=inference)
        told = ("True", "ResolvedRefs") if inference else ("False", "BackendNotFound")
        await until(lambda: [one.get("ResolvedRefs") for one in cluster.parents("shop/models")] == [told])
        assert cluster.sends is not None
        addresses = [one.value["workloadIps"] for one in cluster.sends.gateways[MAIN] if one.place == "workloads"]
        assert (["10.0.0.9"] in addresses) == inference
        asked = {one.partition("?")[0] for one in cluster.server.requests}
        assert ({f"GET {POOLS}", f"GET {PODS}"} <= asked) == inference
        assert inference or not {f"GET {POOLS}", f"GET {PODS}"} & asked

    in_cluster(body)


def test_a_route_that_leaves_keeps_nothing_of_what_was_said() -> None:
    async def body(cluster: Cluster) -> None:
        cluster.start()
        await until(lambda: cluster.parents() == [TRUE])
        theirs = {"parentRef": {"name": "x"}, "controllerName": "other.test/x", "conditions": []}
        left = http_route(parent={"name": "other", "namespace": "edge"})
        cluster.server.put(ROUTES, left | {"status": {"parents": [theirs, *cluster.status(ROUTES, "shop/cart")["parents"]]}})
        await until(lambda: cluster.status(ROUTES, "shop/cart")["parents"] == [theirs])

    in_cluster(body)


def test_programmed_waits_for_data_planes_and_their_refusal_shows() -> None:
    async def body(cluster: Cluster) -> None:
        cluster.start()
        await until(lambda: cluster.sends is not None and cluster.sends.routes)
        assert cluster.sends is not None
        assert cluster.places is not None
        assert cluster.sends.generations == {MAIN: 1}
        # Ten thousand fragments take longer than the loop may be held.
        assert cluster.sends.prepared_in.startswith("translation")
        await until(lambda: cluster.conditions().get("Programmed") == ("False", "AddressNotAssigned"))
        cluster.places.place(Placement(({"type": "IPAddress", "value": "10.9.8.7"},)))
        await until(lambda: cluster.conditions()["Programmed"] == ("False", "Pending"))
        assert cluster.status()["addresses"] == [{"type": "IPAddress", "value": "10.9.8.7"}]
        cluster.sends.say(Acknowledged(1))
        await until(lambda: cluster.conditions()["Programmed"] == ("True", "Programmed"))
        cluster.sends.say(Acknowledged(1, "no such cipher"))
        await until(lambda: cluster.conditions()["Programmed"] == ("False", "Invalid"))
        assert "no such cipher" in next(one["message"] for one in cluster.status()["conditions"] if one["type"] == "Programmed")
        cluster.places.place(Placement((), Unmet("InvalidParameters", "no"), "Accepted"))
        await until(lambda: cluster.conditions()["Accepted"] == ("False", "InvalidParameters"))
        cluster.places.place(Placement((), Unmet("DeploymentFailed", "no")))
        await until(lambda: cluster.conditions()["Programmed"] == ("False", "DeploymentFailed"))
        assert cluster.conditions()["Accepted"] == ("True", "Accepted")

    in_cluster(body)


def test_a_route_that_is_made_again_at_once_gets_its_status() -> None:
    async def body(cluster: Cluster) -> None:
        cluster.start()
        await until(lambda: cluster.parents() == [TRUE])
        # Both events come together: what is translated is the same before and after.
        cluster.server.remove(ROUTES, "shop/cart")
        cluster.server.put(ROUTES, http_route())
        assert "status" not in cluster.server.get(ROUTES, "shop/cart")
        await until(lambda: cluster.parents() == [TRUE])

    in_cluster(body)


def test_nothing_is_written_without_a_change() -> None:
    async def body(cluster: Cluster) -> None:
        cluster.start(parts=False)
        await until(lambda: cluster.parents() == [TRUE] and cluster.conditions().get("Programmed") == ("False", "Pending"))
        await until(lambda: cluster.server.get(CLASSES, "headgate").get("status"))

        def writes() -> int:
            return sum(one.startswith("PATCH") and "leases" not in one and CLASSES not in one for one in cluster.server.requests)

        before = writes()
        cluster.server.put(SLICES, endpoints("shop/cart-1", "cart", ["10.0.0.9"]))
        cluster.server.put(ROUTES, http_route("shop/new", hostnames=("n.test",)))
        await until(lambda: cluster.parents("shop/new") == [TRUE])
        await until(lambda: cluster.status()["listeners"][0]["attachedRoutes"] == 2)
        # The new route and the Gateway, which counts it.
        assert writes() == before + 2
        await cluster.stop()
        before = writes()
        cluster.start(parts=False)
        cluster.server.put(ROUTES, http_route("shop/newer", hostnames=("m.test",)))
        await until(lambda: cluster.parents("shop/newer") == [TRUE])
        await until(lambda: cluster.status()["listeners"][0]["attachedRoutes"] == 3)
        assert writes() == before + 2

    in_cluster(body)


def test_one_replica_writes_and_all_know_what_to_send() -> None:
    async def body(cluster: Cluster) -> None:
        cluster.start("first", parts=False)
        await until(lambda: cluster.parents() == [TRUE])
        cluster.start("second")
        await until(lambda: cluster.sends is not None and cluster.sends.routes)
        assert cluster.places is not None
        assert (cluster.places.runs, cluster.places.wanted) == (0, 0)
        assert cluster.server.get(LEASES, "headgate-system/headgate-headgate")["spec"]["holderIdentity"] == "first"
        cluster.tasks[0].cancel()
        await asyncio.gather(cluster.tasks[0], return_exceptions=True)
        places, sends = cluster.places, cluster.sends
        await until(lambda: places.runs == 1 and places.wanted)
        cluster.server.put(ROUTES, http_route("shop/new", hostnames=("n.test",)))
        await until(lambda: cluster.parents("shop/new") == [TRUE])
        await cluster.stop()
        assert sends is not None
        assert sends.events == ["start", "lead", "follow", "stop"]
        assert places.runs == 0
        assert cluster.server.get(LEASES, "headgate-system/headgate-headgate")["spec"]["holderIdentity"] == ""

    in_cluster(body)


class Planes:
    """In the place of the delivery of all replicas: one data plane, at the states of the replica that leads."""

    def __init__(self) -> None:
        self.versions: dict[str, str] = {}
        self.stream: StreamState | None = None
        self.visited: list[str] = []

    def parts(self, name: str) -> MakeParts:
        def made(_calls: object, changed: Callable[[], None]) -> Parts:
            states = GatewayStates(changed)
            sends = Sends(changed)
            sends.lead = lambda leading: self.moved(name, states, leading)  # type: ignore[method-assign]
            places = Places(changed)
            places.found = {MAIN: Placement(({"type": "IPAddress", "value": "10.9.8.7"},))}
            return Parts(states, sends, places)

        return made

    def moved(self, name: str, states: GatewayStates, leading: bool) -> None:
        if not leading:
            assert self.visited.pop() == name  # never two at a time
            if self.stream is not None:
                states.leave(self.stream)
            return
        assert not self.visited
        self.visited.append(name)
        spawn("data plane", self.served(name, states))

    async def served(self, name: str, states: GatewayStates) -> None:
        while self.visited == [name]:
            state = states.serving(MAIN)
            if state is not None and self.stream not in state.streams:
                self.stream = StreamState(state, self.versions, "peer")
                states.join(self.stream, lambda: None)
            if self.stream is not None and (encoded := self.stream.next()) is not None:
                response = DeltaDiscoveryResponse.FromString(encoded)
                self.versions |= {one.name: one.version for one in response.resources}
                for gone in response.removed_resources:
                    del self.versions[gone]
                states.answered(self.stream, response.nonce, "")
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("seed", range(3))
def test_whoever_leads_knows_what_data_planes_have_taken(seed: int) -> None:
    chance = random.Random(seed)

    async def body(cluster: Cluster) -> None:
        planes, server = Planes(), cluster.server
        seen: list[str] = []
        store = server._store

        def stored(place: Place, key: tuple[str, str], document: Json, before: Json | None) -> Json:
            if key == ("edge", "main") and place is server._places[GATEWAYS]:
                status = document.get("status") or {}
                seen.extend(f"{one['status']}/{one['reason']}" for one in status.get("conditions", ()) if one["type"] == "Programmed")
            return store(place, key, document, before)

        server._store = stored  # type: ignore[method-assign]
        names = [cluster.started(planes.parts(f"r{number}"), f"r{number}") for number in range(2)]
        await until(lambda: cluster.conditions().get("Programmed") == ("True", "Programmed"))
        seen.clear()
        for turn in range(6):
            leader = planes.visited[0]
            which = names.index(leader) if chance.random() < 0.8 else 1 - names.index(leader)
            cluster.tasks[which].cancel()
            await asyncio.gather(cluster.tasks[which], return_exceptions=True)
            if chance.random() < 0.5:
                server.drop_watches()
            server.put(ROUTES, http_route(f"shop/r{turn}", hostnames=(f"h{turn}.test",)))
            await until(lambda turn=turn: cluster.parents(f"shop/r{turn}") == [TRUE])
            await until(lambda turn=turn: f"route/shop/r{turn}.00.web" in planes.versions)
            task, name = cluster.tasks.pop(which), names.pop(which)
            assert task.done()
            names.insert(which, cluster.started(planes.parts(f"{name}+"), f"{name}+"))
            cluster.tasks.insert(which, cluster.tasks.pop())
        # Programmed before, and all the time since.
        assert set(seen) <= {"True/Programmed"}
        assert cluster.conditions()["Programmed"] == ("True", "Programmed")

    in_cluster(body)


def test_a_failed_translation_leaves_what_was(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(cluster: Cluster) -> None:
        controller = cluster.start()
        await until(lambda: cluster.sends is not None and cluster.sends.routes)
        assert cluster.sends is not None
        cluster.server.put(ROUTES, http_route("shop/new", {"backendRefs": [{"port": 1}]}, hostnames=("n.test",)))
        await until(lambda: b'result="error"' in controller.metrics.text())
        assert cluster.sends.routes == ["route/shop/cart.00.web"]
        cluster.server.put(ROUTES, http_route("shop/new", hostnames=("n.test",)))
        await until(lambda: cluster.sends is not None and len(cluster.sends.routes) == 2)

    in_cluster(body)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_goes_wrong_and_whenever_it_restarts_the_end_is_the_same(seed: int) -> None:
    chance = random.Random(seed)

    async def body(cluster: Cluster) -> None:
        cluster.start(parts=False)
        server = cluster.server
        for turn in range(80):
            name = f"shop/r{chance.randrange(6)}"
            if name.partition("/")[::2] in server._places[ROUTES].objects and chance.random() < 0.4:
                server.remove(ROUTES, name)
            else:
                server.put(ROUTES, http_route(name, hostnames=(f"h{turn}.test",)))
            match chance.randrange(10):
                case 0:
                    server.drop_watches()
                case 1:
                    server.compact()
                case 2:
                    server.throttle(chance.randrange(5))
                case 3:
                    server.refuse("PATCH", chance.choice((0, 409, 500)), "Conflict")
                case 4:
                    await cluster.stop()
                    cluster.start(parts=False)
                case 5:
                    await asyncio.sleep(0.01)
        server.refuse("PATCH", 0, "")
        count = len(server._places[ROUTES].objects)
        names = ["/".join(key) for key in server._places[ROUTES].objects]
        await until(lambda: all(cluster.parents(one) == [TRUE] for one in names))
        await until(lambda: cluster.status()["listeners"][0]["attachedRoutes"] == count)

    in_cluster(body)


def test_a_controller_that_begins_takes_nothing_away_before_data_planes_could_return() -> None:
    async def body(cluster: Cluster) -> None:
        cluster.start()
        await until(lambda: cluster.sends is not None and cluster.sends.routes)
        assert cluster.sends is not None
        assert cluster.places is not None
        cluster.places.place(Placement(({"type": "IPAddress", "value": "10.9.8.7"},)))
        cluster.sends.say(Acknowledged(1))
        await until(lambda: cluster.conditions().get("Programmed") == ("True", "Programmed"))
        before = cluster.status()
        await cluster.stop()
        controller = cluster.start("two")
        # Another one, to which no data plane has come and which has deployed nothing, writes what is new all the same.
        cluster.server.remove(SERVICES, "shop/cart")
        await until(lambda: cluster.parents()[0]["ResolvedRefs"] == ("False", "BackendNotFound"))
        assert cluster.status() == before
        controller._returned()
        await until(lambda: cluster.conditions()["Programmed"] == ("False", "Pending"))
        assert cluster.status()["addresses"] == before["addresses"]

    in_cluster(body)


def test_what_goes_wrong_becomes_an_event_of_the_gateway() -> None:
    async def body(cluster: Cluster) -> None:
        cluster.start()
        await until(lambda: cluster.sends is not None and "lead" in cluster.sends.events)
        assert cluster.sends is not None
        assert cluster.places is not None
        cluster.sends.warned(MAIN, "ConfigurationRejected", "rejected by a data plane: no such cipher")
        cluster.places.warned(MAIN, "DeploymentFailed", "no quorum")
        cluster.places.warned(ObjectKey("edge", "gone"), "DeploymentFailed", "no quorum")
        events = cluster.server._places["/api/v1/events"].objects
        await until(lambda: len(events) == 2)
        assert {(one["type"], one["reason"]) for one in events.values()} == {("Warning", "ConfigurationRejected"), ("Warning", "DeploymentFailed")}
        uid = cluster.server.get(GATEWAYS, "edge/main")["metadata"]["uid"]
        assert {one["involvedObject"]["uid"] for one in events.values()} == {uid}

    in_cluster(body)


def test_what_ends_while_the_lead_is_lost_ends() -> None:
    async def body(cluster: Cluster) -> None:
        controller = cluster.start()
        await until(lambda: cluster.places is not None and cluster.places.runs)
        ending, never = asyncio.Event(), asyncio.Event()
        began = asyncio.Event()

        async def slow() -> None:
            began.set()
            try:
                await never.wait()
            finally:
                ending.set()
                await never.wait()

        controller._leading.append(spawn("slow", slow()))
        await began.wait()
        lost = spawn("lost", controller._lost())
        await ending.wait()
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)
        # Whoever waits for the election, which this is part of, would wait for it forever.
        assert lost.cancelled()

    in_cluster(body)


def test_gateways_have_a_change_before_statuses_are_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    update, changed = Sends.update, WantedStatuses.changed

    def updated(sends: Sends, *arguments: Any) -> None:
        order.append("sent")
        update(sends, *arguments)

    def looked(statuses: WantedStatuses, found: list[ObjectStatus]) -> list[ObjectStatus]:
        # Ten thousand statuses take longer than the loop may be held.
        assert threading.current_thread().name.startswith("translation")
        order.append("looked through")
        return changed(statuses, found)

    monkeypatch.setattr(Sends, "update", updated)
    monkeypatch.setattr(WantedStatuses, "changed", looked)

    async def body(cluster: Cluster) -> None:
        cluster.start()
        await until(lambda: cluster.parents() == [TRUE])
        cluster.server.put(ROUTES, http_route("shop/new", hostnames=("n.test",)))
        await until(lambda: cluster.parents("shop/new") == [TRUE])
        await cluster.stop()
        assert len(order) >= 4
        assert order[:-1:2] == ["sent"] * (len(order) // 2)
        assert order[1::2] == ["looked through"] * (len(order) // 2)

    in_cluster(body)


def test_the_delivery_is_counted_and_shown() -> None:
    async def body(cluster: Cluster) -> None:
        controller = cluster.start()
        await until(lambda: cluster.sends is not None and cluster.sends.routes)
        text = controller.metrics.text().decode()
        assert "# TYPE headgate_xds_rejects_total counter\nheadgate_xds_rejects_total 3\n" in text
        assert "# TYPE headgate_xds_streams gauge\nheadgate_xds_streams 7\n" in text
        assert controller._shown()["delivery"] == [{"gateway": "edge/main"}]

    in_cluster(body)


def test_a_status_is_written_in_the_version_that_is_served() -> None:
    async def body(cluster: Cluster) -> None:
        cluster.server.define(GROUP, "v1alpha2", "tcproutes")
        routes = f"/apis/{GROUP}/v1alpha2/tcproutes"
        cluster.server.put(routes, tcp_route())
        cluster.start()
        await until(lambda: cluster.status(routes, "shop/bytes").get("parents"))

    in_cluster(body)
