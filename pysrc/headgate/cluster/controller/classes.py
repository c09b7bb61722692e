"""The GatewayClass that the controller brings along."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from headgate.cluster.calls import ApiCalls, ApiError
from headgate.cluster.controller.settings import ControllerSettings
from headgate.cluster.snapshot import Json
from headgate.cluster.translate.gateway import CONTROLLER
from headgate.cluster.watch.pauses import Pauses

logger = logging.getLogger("gateway-controller")

CLASSES: Final = "/apis/gateway.networking.k8s.io/v1/gatewayclasses"


def gateway_class(name: str, parameters: Json | None) -> Json:
    """Return the manifest of a class of this controller."""
    spec: dict[str, Any] = {"controllerName": CONTROLLER, "description": "Gateways for agents, run by Headgate."}
    if parameters is not None:
        spec["parametersRef"] = parameters
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": name},
        "spec": spec,
    }


async def apply_classes(
    calls: ApiCalls, settings: ControllerSettings, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Apply the classes that the settings name, each until it succeeds or belongs to another controller.

    Ends when all are done. What a class has beside our fields stays.
    """
    names = dict.fromkeys((*([settings.class_name] if settings.class_name else []), *settings.class_parameters))
    pauses = Pauses()
    for name in names:
        while True:
            try:
                await _apply(calls, gateway_class(name, settings.class_parameters.get(name)))
                break
            except ApiError as error:
                logger.warning("GatewayClass %s: %s", name, error)
            await sleep(pauses.next())
        pauses.reset()


async def _apply(calls: ApiCalls, document: Json) -> None:
    path = f"{CLASSES}/{document['metadata']['name']}"
    try:
        found = await calls.get(path)
    except ApiError as error:
        if error.status != 404:
            raise
        found = document
    if found["spec"]["controllerName"] != CONTROLLER:
        logger.warning(
            "GatewayClass %s belongs to %s, and is left alone", document["metadata"]["name"],
            found["spec"]["controllerName"],
        )  # fmt: skip
        return
    await calls.apply(path, document, CONTROLLER)
