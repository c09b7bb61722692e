"""Informers at a small API server that does everything that goes wrong."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fake_api import FakeApiServer
from manifests import gateway_class, http_route, made, service
from waiting import until

from headgate.cluster.client import KubernetesClient
from headgate.cluster.kubeconfig import ClusterAccess
from headgate.cluster.snapshot import HTTP_ROUTE, SERVICE, ObjectKey
from headgate.cluster.watch.informers import Informers
from headgate.cluster.watch.kinds import KINDS
from headgate.cluster.watch.pauses import Pauses
from headgate.cluster.watch.store import Store

GROUP = "gateway.networking.k8s.io"
ROUTES = f"/apis/{GROUP}/v1/httproutes"
SERVICES = "/api/v1/services"
SPACES = "/api/v1/namespaces"


class Reading:
    def __init__(self, server: FakeApiServer, selectors: tuple[dict[str, Any], ...] = ()) -> None:
        self.server = server
        self.client = KubernetesClient(ClusterAccess(server=server.url), _briefly)
        self.store = Store(KINDS, lambda: None, selectors=selectors)
        self.informers = Informers(self.client, KINDS, self.store, lambda: Pauses(lambda: 1.0), _briefly)

    def names(self, kind: Any = HTTP_ROUTE) -> set[str]:
        return {str(key) for key in self.store.snapshot().kinds[kind]}

    async def has(self, *names: str, kind: Any = HTTP_ROUTE) -> None:
        await until(lambda: self.names(kind) == set(names), f"{self.names(kind)} instead of {names}")


async def _briefly(_seconds: float) -> None:
    await asyncio.sleep(0.001)


def reading(
    body: Callable[[FakeApiServer, Reading], Coroutine[Any, Any, None]], start: bool = True, *selectors: dict[str, Any]
) -> None:
    async def run() -> None:
        async with FakeApiServer().running() as server:
            if start:
                server.define(GROUP, "v1", "gatewayclasses", "httproutes")
            found = Reading(server, selectors)
            try:
                if start:
                    found.informers.start()
                    await asyncio.wait_for(found.informers.synced.wait(), 60)
                await body(server, found)
            finally:
                await found.informers.stop()
                await found.client.close()

    asyncio.run(run())


def test_what_is_there_is_listed_and_what_changes_is_followed() -> None:
    async def body(server: FakeApiServer, found: Reading) -> None:
        server.page = 2
        for number in range(5):
            server.put(ROUTES, http_route(f"shop/r{number}"))
        found.informers.start()
        await found.informers.synced.wait()
        assert len(found.names()) == 5
        server.put(ROUTES, http_route("shop/new"))
        server.remove(ROUTES, "shop/r0")
        await found.has("shop/new", "shop/r1", "shop/r2", "shop/r3", "shop/r4")
        server.put(ROUTES, http_route("shop/new", hostnames=("a.test",)))
        await until(lambda: (found.store.snapshot().find(HTTP_ROUTE, "shop", "new") or {})["spec"].get("hostnames"))

    async def defined(server: FakeApiServer, found: Reading) -> None:
        server.define(GROUP, "v1", "httproutes")
        await body(server, found)

    reading(defined, start=False)


def test_a_watch_that_is_cut_goes_on_where_it_was() -> None:
    async def body(server: FakeApiServer, found: Reading) -> None:
        server.put(ROUTES, http_route("shop/a"))
        await found.has("shop/a")
        lists = [one for one in server.requests if one.startswith(f"GET {ROUTES}?limit")]
        server.drop_watches()
        server.put(ROUTES, http_route("shop/b"))
        await found.has("shop/a", "shop/b")
        assert [one for one in server.requests if one.startswith(f"GET {ROUTES}?limit")] == lists

    reading(body)


def test_after_410_all_is_listed_again() -> None:
    async def body(server: FakeApiServer, found: Reading) -> None:
        server.put(ROUTES, http_route("shop/a"))
        server.put(ROUTES, http_route("shop/b"))
        await found.has("shop/a", "shop/b")
        server.refuse(f"GET {ROUTES}", 503, "ServiceUnavailable")
        server.drop_watches()
        server.remove(ROUTES, "shop/a")
        server.put(SERVICES, service())
        server.compact()
        server.refuse(f"GET {ROUTES}", 0, "")
        await found.has("shop/b")
        await found.has("shop/cart", kind=SERVICE)

    reading(body)


def test_a_bookmark_moves_the_version_to_go_on_from() -> None:
    async def body(server: FakeApiServer, found: Reading) -> None:
        before = server.version
        server.bookmark()

        def goes_on_later() -> bool:
            server.drop_watches()
            asked = [parse_qs(urlsplit(one).query) for one in server.requests if one.startswith(f"GET {SERVICES}?watch")]
            return any(int(one["resourceVersion"][0]) > before for one in asked)

        await until(goes_on_later)

    reading(body)


def test_a_server_that_is_overloaded_or_slow_is_waited_for() -> None:
    async def body(server: FakeApiServer, found: Reading) -> None:
        server.define(GROUP, "v1", "httproutes")
        server.put(ROUTES, http_route("shop/a"))
        server.throttle(60)
        server.lists.clear()
        found.informers.start()
        await until(lambda: server._throttled == 0)
        assert not found.informers.synced.is_set()
        server.lists.set()
        await found.informers.synced.wait()
        assert found.names() == {"shop/a"}

    reading(body, start=False)


def test_kinds_come_and_go_with_their_definitions() -> None:
    async def body(server: FakeApiServer, found: Reading) -> None:
        found.informers.start()
        await found.informers.synced.wait()
        assert not any(ROUTES in one for one in server.requests)
        server.define(GROUP, "v1", "httproutes")
        server.put(ROUTES, http_route("shop/a"))
        await found.has("shop/a")
        server.undefine(GROUP, "v1", "httproutes")
        await found.has()
        server.define(GROUP, "v1", "httproutes")
        server.put(ROUTES, http_route("shop/b"))
        await found.has("shop/b")

    reading(body, start=False)


def test_a_kind_is_read_in_the_version_that_is_served() -> None:
    async def body(server: FakeApiServer, found: Reading) -> None:
        server.define(GROUP, "v1alpha2", "tcproutes")
        path = f"/apis/{GROUP}/v1alpha2/tcproutes"
        server.put(path, http_route("shop/a") | {"kind": "TCPRoute"})
        found.informers.start()
        await found.informers.synced.wait()
        kind = next(one.kind for one in KINDS if one.plural == "tcproutes")
        await found.has("shop/a", kind=kind)
        route = found.store.snapshot().find(kind, "shop", "a")
        assert route is not None
        assert route["apiVersion"] == f"{GROUP}/v1alpha2"

    reading(body, start=False)


def test_objects_without_a_namespace_have_none() -> None:
    async def body(server: FakeApiServer, found: Reading) -> None:
        server.put(f"/apis/{GROUP}/v1/gatewayclasses", gateway_class())
        kind = next(one.kind for one in KINDS if one.plural == "gatewayclasses")
        await until(lambda: ObjectKey("", "headgate") in found.store.snapshot().kinds[kind])

    reading(body)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_goes_wrong_the_state_is_that_of_the_server_in_the_end(seed: int) -> None:
    chance = random.Random(seed)

    async def body(server: FakeApiServer, found: Reading) -> None:
        for turn in range(150):
            name = f"shop/r{chance.randrange(12)}"
            known = name.partition("/")[::2] in server._places[ROUTES].objects
            if known and chance.random() < 0.4:
                server.remove(ROUTES, name)
            else:
                server.put(ROUTES, http_route(name, hostnames=(f"h{turn}.test",)))
            match chance.randrange(12):
                case 0:
                    server.drop_watches()
                case 1:
                    server.compact()
                case 2:
                    server.throttle(chance.randrange(4))
                case 3:
                    server.refuse(f"GET {ROUTES}", chance.choice((0, 500)), "InternalError")
                case 4:
                    server.bookmark()
                case 5:
                    await asyncio.sleep(0.002)
        server.refuse(f"GET {ROUTES}", 0, "")

        def same() -> bool:
            ours = {str(key): one["spec"]["hostnames"] for key, one in found.store.snapshot().kinds[HTTP_ROUTE].items()}
            theirs = {"/".join(key): one["spec"]["hostnames"] for key, one in server._places[ROUTES].objects.items()}
            return ours == theirs

        await until(same)

    reading(body)


def test_what_is_in_a_namespace_is_listed_when_it_becomes_visible() -> None:
    async def body(server: FakeApiServer, found: Reading) -> None:
        server.define(GROUP, "v1", "gatewayclasses", "httproutes")
        server.put(SPACES, made("Namespace", "shop", {}, "v1", labels={"team": "a"}))
        server.put(SPACES, made("Namespace", "store", {}, "v1"))
        for name in ("shop/a", "store/a"):
            server.put(ROUTES, http_route(name))
        found.informers.start()
        await asyncio.wait_for(found.informers.synced.wait(), 60)
        assert found.names() == {"shop/a"}
        # Nothing but its namespace changes; then it is watched as others are.
        server.put(SPACES, made("Namespace", "store", {}, "v1", labels={"team": "a"}))
        await found.has("shop/a", "store/a")
        server.put(ROUTES, http_route("store/b"))
        await found.has("shop/a", "store/a", "store/b")
        server.put(SPACES, made("Namespace", "shop", {}, "v1"))
        await found.has("store/a", "store/b")
        # Of a namespace that is new both may come in any order.
        server.put(ROUTES, http_route("new/a"))
        server.put(SPACES, made("Namespace", "new", {}, "v1", labels={"team": "a"}))
        await found.has("store/a", "store/b", "new/a")

    reading(body, False, {"matchLabels": {"team": "a"}})
