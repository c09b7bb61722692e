"""The GatewayClass that the controller brings along."""

from __future__ import annotations

import asyncio
from typing import Any

from fake_api import FakeApiServer
from manifests import gateway_class
from waiting import no_time

from headgate.cluster.client import KubernetesClient
from headgate.cluster.controller.classes import CLASSES, apply_classes
from headgate.cluster.controller.settings import ControllerSettings
from headgate.cluster.kubeconfig import ClusterAccess

PARAMETERS = {"group": "headgate.dev", "kind": "GatewayParameters", "name": "p", "namespace": "n"}


def after(settings: ControllerSettings, *before: Any, throttle: int = 0) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with FakeApiServer().running() as server:
            server.define("gateway.networking.k8s.io", "v1", "gatewayclasses")
            for one in before:
                server.put(CLASSES, one)
            server.throttle(throttle)
            client = KubernetesClient(ClusterAccess(server=server.url), no_time)
            await apply_classes(client, settings, no_time)
            await client.close()
            return {key[1]: one["spec"] for key, one in server._places[CLASSES].objects.items()}

    return asyncio.run(run())


def test_it_is_made() -> None:
    found = after(ControllerSettings(class_parameters={"big": PARAMETERS}), throttle=12)
    assert found["headgate"]["controllerName"] == "headgate.dev/headgate"
    assert "parametersRef" not in found["headgate"]
    assert found["big"]["parametersRef"] == PARAMETERS
    assert after(ControllerSettings(class_name="")) == {}


def test_what_a_class_has_besides_stays() -> None:
    known = gateway_class()
    known["spec"]["parametersRef"] = PARAMETERS
    assert after(ControllerSettings(), known)["headgate"]["parametersRef"] == PARAMETERS


def test_the_class_of_another_controller_is_left_alone() -> None:
    assert after(ControllerSettings(), gateway_class(controller="other.test/x"))["headgate"] == {"controllerName": "other.test/x"}
