"""Compiles `requestMirror` to a step."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Final

from headgate.ir.policy.mirror import Mirror
from headgate.policy.environment import Environment
from headgate_engine.context.field_names import REQUEST_FRAMING
from headgate_engine.context.request import RequestContext, log_extra
from headgate_engine.link.client import CallError
from headgate_engine.plan.step import PythonStep

logger = logging.getLogger("headgate.mirror")

# Maximum concurrent copies per policy and worker. Further copies are dropped, so a slow mirror uses no memory.
MAX_IN_FLIGHT: Final = 256
TIMEOUT_SECONDS: Final = 15.0
MAX_ANSWER: Final = 64 * 1024
# Copies have no body, so fields that describe the body are dropped.
NOT_COPIED: Final = REQUEST_FRAMING | {"expect", "content-encoding"}


def compile_mirror(mirror: Mirror, env: Environment) -> PythonStep:
    """Return the step that sends copies without delaying the request."""
    goal = mirror.target
    clients = [env.client(place, "Mirror") for place, _ in goal.places]
    weights = [float(share) for _, share in goal.places]
    if not any(weights):
        weights = [1.0] * len(weights)
    credential = goal.credential
    in_flight = 0

    async def send(ctx: RequestContext, method: str, target: str, headers: list[tuple[str, str]]) -> None:
        nonlocal in_flight
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                [client] = random.choices(clients, weights)
                response = await client.request(method, target, headers)
                try:
                    await response.read(MAX_ANSWER)
                finally:
                    await response.aclose()
        except (CallError, TimeoutError, ValueError, OSError) as error:
            reason = str(error) or type(error).__name__
            logger.debug("mirror failed", extra=log_extra(ctx, target=goal.name, error=reason))
        finally:
            in_flight -= 1

    def run(ctx: RequestContext) -> None:
        nonlocal in_flight
        if in_flight >= MAX_IN_FLIGHT or not clients or random.random() >= mirror.fraction:
            return
        head = ctx.request
        headers = [(name, value) for name, value in head.items() if name.lower() not in NOT_COPIED]
        if credential is not None:
            place = credential.location
            headers = [(name, value) for name, value in headers if name.lower() != place.name]
            headers.append((place.name, place.prefix + credential.key.secret.reveal()))
        in_flight += 1
        env.spawn(f"mirror {goal.name}", send(ctx, head.method, head.target, headers))

    return PythonStep("requestMirror", run)
