"""The controller's client, at a small API server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fake_api import DEFINITIONS, FakeApiServer
from waiting import no_time

from headgate.cluster import client as module
from headgate.cluster.calls import ApiError
from headgate.cluster.client import KubernetesClient
from headgate.cluster.kubeconfig import ClusterAccess

SECRETS = "/api/v1/secrets"
ONE = "/api/v1/namespaces/shop/secrets/s0"


def at_server(body: Callable[[FakeApiServer, KubernetesClient], Coroutine[Any, Any, None]], **access: Any) -> None:
    async def run() -> None:
        async with FakeApiServer().running() as server:
            client = KubernetesClient(ClusterAccess(server=server.url, **access), no_time)
            try:
                await body(server, client)
            finally:
                await client.close()

    asyncio.run(run())


def secret(number: int) -> dict[str, Any]:
    return {"metadata": {"name": f"s{number}", "namespace": "shop"}, "data": {}}


def test_calls_give_the_object_of_the_answer() -> None:
    async def body(server: FakeApiServer, client: KubernetesClient) -> None:
        made = await client.create("/api/v1/namespaces/shop/secrets", secret(0))
        assert made["metadata"]["generation"] == 1
        changed = await client.merge(ONE, {"spec": {"a": 1}})
        assert changed["spec"] == {"a": 1}
        applied = await client.apply(ONE, {"spec": {"b": 2}}, "me")
        assert applied["spec"] == {"a": 1, "b": 2}
        assert "fieldManager=me" in server.requests[-1]
        assert "force=true" in server.requests[-1]
        await client.merge(f"{ONE}/status", {"status": {"c": 3}})
        assert (await client.get(ONE, {"x": "&"}))["status"] == {"c": 3}
        await client.delete(ONE)
        with pytest.raises(ApiError) as caught:
            await client.get(ONE)
        assert (caught.value.status, caught.value.reason) == (404, "NotFound")
        assert "the fake says NotFound" in str(caught.value)

    at_server(body)


def test_an_object_that_has_changed_is_a_conflict() -> None:
    async def body(server: FakeApiServer, client: KubernetesClient) -> None:
        version = server.put(SECRETS, secret(0))["metadata"]["resourceVersion"]
        server.put(SECRETS, secret(0))
        with pytest.raises(ApiError) as caught:
            await client.merge(ONE, {"metadata": {"resourceVersion": version}, "spec": {}})
        assert (caught.value.status, caught.value.reason) == (409, "Conflict")

    at_server(body)


def test_lists_come_in_pages() -> None:
    async def body(server: FakeApiServer, client: KubernetesClient) -> None:
        for number in range(7):
            server.put(SECRETS, secret(number))
        server.page = 3
        pages = [page async for page in client.list_pages(SECRETS)]
        assert [len(page["items"]) for page in pages] == [3, 3, 1]
        server.define("x.test", "v1", "things")
        found = [one async for page in client.list_pages(DEFINITIONS, None, True) for one in page["items"]]
        assert [one["metadata"]["name"] for one in found] == ["things.x.test"]
        assert "spec" not in found[0]

    at_server(body)


def test_a_watch_gives_events_of_any_size_and_ends_with_the_server() -> None:
    async def body(server: FakeApiServer, client: KubernetesClient) -> None:
        version = str(server.version)
        server.put(SECRETS, secret(0) | {"data": {"a": "x" * 300_000}})
        seen: list[Any] = []

        async def watch() -> None:
            async for event in client.watch(SECRETS, version):
                seen.append(event)
                if len(seen) == 1:
                    server.remove(SECRETS, "shop/s0")
                else:
                    server.drop_watches()

        with pytest.raises(ApiError) as caught:
            await watch()
        assert caught.value.status == 0
        assert [one["type"] for one in seen] == ["ADDED", "DELETED"]
        assert len(seen[0]["object"]["data"]["a"]) == 300_000

    at_server(body)


def test_a_version_that_is_too_old_is_gone() -> None:
    async def body(server: FakeApiServer, client: KubernetesClient) -> None:
        server.put(SECRETS, secret(0))
        server.compact()
        with pytest.raises(ApiError) as caught:
            _ = [one async for one in client.watch(SECRETS, "1")]
        assert (caught.value.status, caught.value.reason) == (410, "Expired")

    at_server(body)


def test_a_silent_watch_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.05)

    async def body(server: FakeApiServer, client: KubernetesClient) -> None:
        assert [one async for one in client.watch(SECRETS, str(server.version))] == []

    at_server(body)


def test_a_server_without_room_is_asked_again_after_the_time_that_it_says() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def run() -> None:
        async with FakeApiServer().running() as server:
            client = KubernetesClient(ClusterAccess(server=server.url), sleep, lambda: 0.0)
            server.throttle(2)
            await client.create("/api/v1/namespaces/shop/secrets", secret(0))
            assert waits == [1.0, 1.0]
            server.throttle(100)
            with pytest.raises(ApiError) as caught:
                await client.get(ONE)
            assert caught.value.status == 429
            assert len(waits) == 2 + module.PATIENCE - 1
            await client.close()

    asyncio.run(run())


def test_nobody_who_answers_is_an_error_without_a_status() -> None:
    async def body(_server: FakeApiServer, _client: KubernetesClient) -> None:
        lost = KubernetesClient(ClusterAccess(server="http://127.0.0.1:1"), no_time)
        for asked in (lost.get("/api"), lost.delete("/api")):
            with pytest.raises(ApiError) as caught:
                await asked
            assert caught.value.status == 0
        await lost.close()

    at_server(body)


def test_a_token_that_is_renewed_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("authorization", ""))
        if seen[-1] == "Bearer new":
            return web.json_response({})
        return web.json_response({"reason": "Unauthorized", "message": "no"}, status=401)

    async def run() -> None:
        application = web.Application()
        application.router.add_get("/{path:.*}", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        access = ClusterAccess(
            server=f"http://127.0.0.1:{runner.addresses[0][1]}", headers={"Authorization": "Bearer old"}, token_file=file
        )
        client = KubernetesClient(access, no_time)
        with pytest.raises(ApiError):
            await client.get("/api")
        os.replace(_written(tmp_path / "next", "new\n"), file)
        assert await client.get("/api") == {}
        await client.close()
        await runner.cleanup()

    asyncio.run(run())
    assert seen == ["Bearer old", "Bearer old", "Bearer old", "Bearer new"]


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
