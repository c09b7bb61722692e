"""Writing statuses at a small API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from fake_api import FakeApiServer
from manifests import Json, http_route
from waiting import no_time, until

from headgate.cluster.client import KubernetesClient
from headgate.cluster.kubeconfig import ClusterAccess
from headgate.cluster.snapshot import HTTP_ROUTE, GroupKind, ObjectKey
from headgate.cluster.status.writer import MOST_URGENT, PARALLEL, PATIENT, StatusWriter
from headgate.cluster.translate.conditions import ObjectStatus
from headgate.cluster.watch.store import Stored

GROUP = "gateway.networking.k8s.io"
ROUTES = f"/apis/{GROUP}/v1/httproutes"
CART = ObjectKey("shop", "cart")
OWN = "headgate.dev/headgate"


def path(_kind: GroupKind, key: ObjectKey) -> str:
    return f"/apis/{GROUP}/v1/namespaces/{key.namespace}/httproutes/{key.name}"


class ServerStatuses:
    """What an informer without delay would know; `frozen` is what one knows that lags behind."""

    def __init__(self, server: FakeApiServer) -> None:
        self._server = server
        self.frozen: dict[ObjectKey, Stored] = {}
        # What was judged, where it is not what the server has now.
        self.judged: dict[ObjectKey, str] = {}

    def stored(self, kind: GroupKind, key: ObjectKey) -> Stored | None:
        if key in self.frozen:
            return self.frozen[key]
        found = self._server._places[ROUTES].objects.get(key)
        if found is None:
            return None
        return Stored(found["metadata"]["resourceVersion"], found.get("status") or {}, found["metadata"]["uid"])

    def uid(self, kind: GroupKind, key: ObjectKey) -> str:
        found = self.stored(kind, key)
        return self.judged.get(key, "" if found is None else found.uid)

    def decides(self, _kind: GroupKind, _key: ObjectKey, reference: Json) -> bool:
        return bool(reference == {"name": "left"})

    def all_stored(self) -> Iterator[tuple[GroupKind, ObjectKey, Stored]]:
        for key in list(self._server._places[ROUTES].objects):
            found = self.stored(HTTP_ROUTE, ObjectKey(*key))
            assert found is not None
            yield HTTP_ROUTE, ObjectKey(*key), found


def wanted(status: str = "True", key: ObjectKey = CART, generation: int = 1) -> ObjectStatus:
    condition = {"type": "Accepted", "status": status, "reason": "R", "message": "m", "observedGeneration": generation}
    entry = {"parentRef": {"name": "main"}, "controllerName": OWN, "conditions": [condition]}
    return ObjectStatus(HTTP_ROUTE, key, {"parents": [entry]})


class Writing:
    def __init__(self, server: FakeApiServer) -> None:
        self.server = server
        self.client = KubernetesClient(ClusterAccess(server=server.url), no_time)
        self.known = ServerStatuses(server)
        self.results: list[str] = []
        self.uid = str(server.get(ROUTES, "shop/cart")["metadata"]["uid"])
        told = self.results.append
        self.writer = StatusWriter(self.client, self.known, path, lambda _kind, result: told(result), no_time)

    def status(self, name: str = "shop/cart") -> Json:
        found: Json = self.server.get(ROUTES, name).get("status") or {}
        return found

    def said(self, name: str = "shop/cart") -> str:
        return "".join(one["conditions"][0]["status"] for one in self.status(name).get("parents") or ())

    @property
    def writes(self) -> int:
        return sum(one.startswith("PATCH") for one in self.server.requests)


def writing(body: Callable[[Writing], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with FakeApiServer().running() as server:
            server.define(GROUP, "v1", "httproutes")
            server.put(ROUTES, http_route())
            found = Writing(server)
            try:
                await body(found)
            finally:
                await found.writer.follow()
                await found.client.close()

    asyncio.run(run())


def test_only_the_leader_writes() -> None:
    async def body(found: Writing) -> None:
        found.writer.want([wanted("False")], found.known)
        found.writer.want([wanted("True")], found.known)
        for _ in range(20):
            await asyncio.sleep(0)
        assert found.writes == 0
        found.writer.lead()
        await until(lambda: found.said() == "True")
        assert found.writes == 1
        await found.writer.follow()
        found.writer.want([wanted("False")], found.known)
        for _ in range(20):
            await asyncio.sleep(0)
        assert found.said() == "True"
        found.writer.lead()
        await until(lambda: found.said() == "False")

    writing(body)


def test_what_is_there_is_not_written() -> None:
    async def body(found: Writing) -> None:
        found.writer.lead()
        found.writer.want([wanted()], found.known)
        await until(lambda: found.said() == "True")
        found.server.put(ROUTES, http_route("shop/other"))
        found.writer.want([wanted(), wanted(key=ObjectKey("shop", "other"))], found.known)
        await until(lambda: found.said("shop/other") == "True")
        assert found.writes == 2
        assert found.results == ["success", "success"]

    writing(body)


def test_the_newest_value_wins_and_an_object_is_written_once_at_a_time() -> None:
    async def body(found: Writing) -> None:
        running, most = 0, 0
        merge = found.client.merge

        async def slow(path: str, document: Json) -> Json:
            nonlocal running, most
            running += 1
            most = max(most, running)
            for _ in range(5):
                await asyncio.sleep(0)
            try:
                return await merge(path, document)
            finally:
                running -= 1

        found.client.merge = slow  # type: ignore[method-assign]
        found.writer.lead()
        for number in range(50):
            found.writer.want([wanted("True" if number % 2 else "False")], found.known)
            await asyncio.sleep(0)
        await until(lambda: found.said() == "True" and not found.writer.pending())
        assert most == 1
        assert found.writes < 25

    writing(body)


def test_many_objects_are_written_at_the_same_time_but_not_all() -> None:
    async def body(found: Writing) -> None:
        names = [f"r{number}" for number in range(100)]
        for one in names:
            found.server.put(ROUTES, http_route(f"shop/{one}"))
        running, most = 0, 0
        merge = found.client.merge

        async def counted(path: str, document: Json) -> Json:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                return await merge(path, document)
            finally:
                running -= 1

        found.client.merge = counted  # type: ignore[method-assign]
        found.writer.lead()
        found.writer.want([wanted(key=ObjectKey("shop", one)) for one in names], found.known)
        await until(lambda: all(found.said(f"shop/{one}") == "True" for one in names))
        assert 1 < most <= PARALLEL

    writing(body)


@pytest.mark.parametrize("patient", [False, True])
def test_what_changes_is_written_before_what_waits_and_holds_nothing_up(patient: bool) -> None:
    async def body(found: Writing) -> None:
        order: list[str] = []
        free = asyncio.Event()
        merge = found.client.merge

        async def held(path: str, document: Json) -> Json:
            await free.wait()
            order.append(path.split("/")[-2])
            return await merge(path, document)

        found.client.merge = held  # type: ignore[method-assign]
        names = [f"r{number}" for number in range(300)]
        for one in names:
            found.server.put(ROUTES, http_route(f"shop/{one}"))
        found.writer.want([wanted(key=ObjectKey("shop", one)) for one in names], found.known)
        found.writer.lead()
        await until(lambda: len(found.writer._busy) == PARALLEL)
        changed = names[-MOST_URGENT:] if patient else names[-1:]
        found.writer.want([wanted(generation=2, key=ObjectKey("shop", one)) for one in changed], found.known)
        free.set()
        if patient:
            # Beside many that change, some of the workers write what waited before.
            await until(lambda: len(order) > PARALLEL + 2 * PATIENT)
            assert set(order[PARALLEL:]) - {*changed}
        await until(lambda: not found.writer.pending())
        assert sorted(order) == sorted(names), "each once: what waited was the newer one"
        if not patient:
            assert order.index(names[-1]) < 3 * PARALLEL

    writing(body)


def test_after_a_conflict_the_object_is_read_and_written_again() -> None:
    async def body(found: Writing) -> None:
        found.known.frozen[CART] = Stored("1", {}, found.uid)
        theirs = {"parentRef": {"name": "x"}, "controllerName": "other", "conditions": []}
        found.server.put(ROUTES, http_route() | {"status": {"parents": [theirs]}})
        found.writer.lead()
        found.writer.want([wanted()], found.known)
        await until(lambda: len(found.status()["parents"]) == 2)
        assert found.status()["parents"][0] == theirs
        # The server has it before its answer is read.
        await until(lambda: len(found.results) == 2)
        assert found.results == ["conflict", "success"]

    writing(body)


def test_what_was_written_counts_until_it_is_read() -> None:
    async def body(found: Writing) -> None:
        found.known.frozen[CART] = Stored(found.server.get(ROUTES, "shop/cart")["metadata"]["resourceVersion"], {}, found.uid)
        found.writer.lead()
        found.writer.want([wanted()], found.known)
        await until(lambda: found.said() == "True")
        found.writer.want([wanted(generation=2)], found.known)
        await until(lambda: found.status()["parents"][0]["conditions"][0]["observedGeneration"] == 2)
        await until(lambda: not found.writer.pending())
        assert found.results == ["success", "success"]

    writing(body)


def test_objects_that_are_gone_are_forgotten() -> None:
    async def body(found: Writing) -> None:
        found.writer.lead()
        gone = [ObjectKey("shop", f"gone-{number}") for number in range(20)]
        found.writer.want([ObjectStatus(HTTP_ROUTE, key, {"parents": []}) for key in gone] + [wanted()], found.known)
        await until(lambda: found.said() == "True" and not found.writer.pending())
        assert {key for _, key in found.writer._wanted} == {CART}

    writing(body)


def test_a_status_that_somebody_else_overwrites_is_written_again() -> None:
    async def body(found: Writing) -> None:
        found.writer.lead()
        found.writer.want([wanted()], found.known)
        await until(lambda: found.said() == "True")
        found.server.put(ROUTES, http_route())
        found.writer.look(HTTP_ROUTE, CART)
        await until(lambda: found.said() == "True")
        found.writer.look(HTTP_ROUTE, ObjectKey("shop", "unknown"))

    writing(body)


def test_what_an_earlier_run_has_said_of_others_is_taken_away() -> None:
    async def body(found: Writing) -> None:
        theirs = {"parentRef": {"name": "x"}, "controllerName": "other", "conditions": []}
        # One does not say whose it is, as older definitions have it.
        nameless = {"parentRef": {"name": "left"}, "conditions": []}
        entries = [theirs, *wanted().content["parents"], nameless]
        found.server.put(ROUTES, http_route("shop/nameless") | {"status": {"parents": [nameless]}})
        found.server.put(ROUTES, http_route("shop/left") | {"status": {"parents": entries}})
        found.writer.lead()
        found.writer.want([wanted()], found.known)
        await until(lambda: found.status("shop/left")["parents"] == [theirs])
        await until(lambda: found.status("shop/nameless")["parents"] == [])
        found.writer.want([ObjectStatus(HTTP_ROUTE, CART, {"parents": []})], found.known)
        await until(lambda: found.status()["parents"] == [])

    writing(body)


@pytest.mark.parametrize("status", [500, 422])
def test_a_server_that_refuses_is_asked_again(status: int) -> None:
    async def body(found: Writing) -> None:
        found.server.refuse("PATCH", status, "no")
        found.writer.lead()
        found.writer.want([wanted()], found.known)
        await until(lambda: found.results.count("error") > 2)
        found.server.refuse("PATCH", 0, "")
        await until(lambda: found.said() == "True")

    writing(body)


def test_an_object_that_is_gone_needs_no_status() -> None:
    async def body(found: Writing) -> None:
        found.writer.lead()
        gone = ObjectKey("shop", "gone")
        found.known.frozen[gone] = Stored("1", {}, found.uid)
        found.writer.want([wanted(key=gone), wanted()], found.known)
        await until(lambda: found.said() == "True" and not found.writer.pending())
        assert "error" not in found.results

    writing(body)


@pytest.mark.parametrize("read", [True, False])
def test_what_was_said_of_an_object_is_not_written_to_another_of_its_name(read: bool) -> None:
    async def body(found: Writing) -> None:
        if not read:
            found.known.frozen[CART] = Stored("1", {}, found.uid)
        found.known.judged[CART] = found.uid
        other = http_route()
        found.server.put(ROUTES, other | {"metadata": {**other["metadata"], "uid": "another"}})
        found.server.put(ROUTES, http_route("shop/next"))
        found.writer.lead()
        found.writer.want([wanted(generation=7)], found.known)
        found.writer.want([wanted(key=ObjectKey("shop", "next"))], found.known)
        await until(lambda: found.said("shop/next") == "True" and not found.writer.pending())
        assert found.status() == {}
        # The next translation has seen the other one, of which it says the same.
        found.known.frozen.clear()
        found.known.judged[CART] = "another"
        found.writer.want([], found.known)
        await until(lambda: found.said() == "True")

    writing(body)
