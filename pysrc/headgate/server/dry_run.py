"""Compiles a configuration as a worker does and discards the result. It finds the errors that otherwise only workers
find."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

from headgate.backend.mcp.relay import Relay
from headgate.backend.mcp.session import SessionIds
from headgate.ir.gateway import Gateway
from headgate.pipeline.compile import CompileError, compile_gateway
from headgate_engine.link.client import HttpClient
from headgate_engine.link.worker import Worker
from headgate_engine.shared.segment import Segment

NO_LOG: Final = -1
SESSION_KEY: Final = bytes(32)


def dry_run(gateway: Gateway) -> list[str]:
    """Return the reasons why workers cannot run the configuration, one per line. Reads files, but fetches and starts
    nothing."""
    return asyncio.run(_dry_run(gateway))


async def _dry_run(gateway: Gateway) -> list[str]:
    loop = asyncio.get_running_loop()
    segment = Segment.create()
    tasks: list[asyncio.Future[Any]] = []

    def never(_name: str, coro: Coroutine[Any, Any, None]) -> Any:
        coro.close()
        tasks.append(loop.create_future())
        return tasks[-1]

    worker = Worker(loop, segment, 0, NO_LOG, never)
    noise = logging.getLogger("headgate")
    disabled, noise.disabled = noise.disabled, True
    try:
        running = compile_gateway(
            gateway, None, worker=worker, generation=1, relay=Relay(0, SessionIds(SESSION_KEY), _nobody)
        )
        await running.aclose()
    except CompileError as error:
        return error.errors
    finally:
        noise.disabled = disabled
        for task in tasks:
            task.cancel()
        await worker.aclose()
        segment.close()
    return []


def _nobody(index: int, _patient: bool) -> HttpClient:
    raise LookupError(f"there is no worker {index}")
