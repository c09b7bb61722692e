"""Tokens of a real API server at the delivery: TokenRequest on one side, TokenReview on the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cluster_lab import RunningCluster, kubernetes
from tests.end_to_end.delivery_rig import LOCAL, Controller, FakeApi, bind, data_plane, route
from tests.end_to_end.running import PATIENCE, Gateway, free_port

from headgate.cluster.calls import ApiError
from headgate.cluster.deliver.settings import AUDIENCE

__all__ = ["kubernetes"]


class RealApi(FakeApi):
    """The calls of the delivery, made at the API server."""

    def __init__(self, cluster: RunningCluster) -> None:
        super().__init__({})
        self.cluster = cluster

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        return await self._answered("GET", path)

    async def create(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        return await self._answered("POST", path, document)

    async def _answered(self, method: str, path: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
        status, answer = await asyncio.to_thread(self.cluster.send, method, path, document)
        if status >= 300:
            raise ApiError(status, answer.get("reason", ""), answer.get("message", ""))
        return answer


def token(cluster: RunningCluster, account: str, *audiences: str) -> str:
    path = f"/api/v1/namespaces/shop/serviceaccounts/{account}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": list(audiences)}}
    status, answer = cluster.send("POST", path, body)
    assert status == 201, answer
    found: str = answer["status"]["token"]
    return found


@pytest.fixture
def controller(kubernetes: RunningCluster) -> Iterator[Controller]:
    for place, kind, names in (("", "Namespace", ("shop", "headgate-system")), ("/shop/serviceaccounts", "ServiceAccount", ("web", "other"))):
        for name in names:
            body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
            status, answer = kubernetes.send("POST", f"/api/v1/namespaces{place}", body)
            assert status in (201, 409), answer
    found = Controller(LOCAL._replace(mode="tls"), RealApi(kubernetes))
    yield found
    found.close()


def test_the_token_of_the_service_account_decides(
    kubernetes: RunningCluster, controller: Controller, tmp_path: Path
) -> None:
    port = free_port()
    controller.update(*bind(port), route("a", "one"))
    planes: list[Gateway] = []

    def begin(name: str, given: str) -> Gateway:
        folder = tmp_path / name
        folder.mkdir()
        planes.append(data_plane(folder, controller.environment(folder, token=given), port))
        return planes[-1]

    try:
        for name, given, why in (
            ("account", token(kubernetes, "other", AUDIENCE), "PERMISSION_DENIED: service account shop/other is not that of"),
            ("audience", token(kubernetes, "web", "https://elsewhere.test"), "UNAUTHENTICATED: the token is not valid"),
            ("forged", token(kubernetes, "web", AUDIENCE)[:-4] + "AAAA", "UNAUTHENTICATED: the token is not valid"),
        ):
            refused = begin(name, given)
            refused.wait_log(why)
            refused.process.kill()
            refused.process.wait(PATIENCE)
        gateway = begin("right", token(kubernetes, "web", AUDIENCE))
        gateway.wait_ready()
        assert gateway.fetch(f"{gateway.url}/a") == (200, "one")
        # The authority is in the cluster.
        status, secret = kubernetes.send("GET", "/api/v1/namespaces/headgate-system/secrets/headgate-xds-ca")
        assert status == 200
        assert set(secret["data"]) == {"ca.crt", "ca.key"}
    finally:
        for one in planes:
            one.process.kill()
            one.process.wait()
