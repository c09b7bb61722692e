"""The edges of calls that the engine makes by itself; what they do is in tests/headgate/backend/mcp/test_direct_service.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headgate_engine.link.client import HttpClient
from headgate_engine.link.pool import Pool
from headgate_engine.link.upstream import Http1Upstream
from headgate_engine.link.worker import Worker
from headgate_engine.mcp.call import DirectCall
from headgate_engine.mcp.direct import DirectBackend
from headgate_engine.mcp.settings import DirectTarget
from headgate_engine.plan.step import AsyncStep


def client_of(loop: asyncio.AbstractEventLoop) -> HttpClient:
    def spawn(name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return loop.create_task(work, name=name)

    async def connector(_factory: Callable[[], asyncio.BaseProtocol]) -> None:
        raise ConnectionRefusedError

    worker = Worker(loop, None, 0, -1, spawn)
    return HttpClient(Pool(worker, "k", b"h:1", connector, Http1Upstream(worker)), "h:1")


def with_client(check: Callable[[HttpClient], None]) -> None:
    async def run() -> None:
        check(client_of(asyncio.get_running_loop()))

    asyncio.run(run())


@pytest.mark.parametrize("bad", [None, 5, "x", object()])
def test_wrong_types_are_refused(bad: Any) -> None:
    def check(client: HttpClient) -> None:
        target = DirectTarget(client, "/mcp")
        with pytest.raises(TypeError):
            DirectTarget(bad, "/mcp")
        with pytest.raises(TypeError):
            DirectTarget(client, None if isinstance(bad, str) else bad)
        with pytest.raises(TypeError):
            DirectTarget(client, "/mcp", steps=bad)
        with pytest.raises(TypeError):
            DirectBackend(object(), bad, object())  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            DirectBackend(bad, target, object())

    with_client(check)


def test_none_is_no_part_of_a_backend() -> None:
    def check(client: HttpClient) -> None:
        target = DirectTarget(client, "/mcp")
        with pytest.raises(TypeError):
            DirectBackend(None, target, object())  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            DirectBackend(object(), target, None)  # type: ignore[arg-type]

    with_client(check)


def test_a_call_is_made_by_its_backend_alone() -> None:
    with pytest.raises(TypeError):
        DirectCall()


@pytest.mark.parametrize("path", ["", "mcp", "/m cp", "/m\r\n"])
def test_a_path_that_can_stand_in_no_request_line(path: str) -> None:
    def check(client: HttpClient) -> None:
        with pytest.raises(ValueError, match="request target"):
            DirectTarget(client, path)

    with_client(check)


def test_steps_that_wait_are_refused() -> None:
    def check(client: HttpClient) -> None:
        for step in (AsyncStep("a", lambda _context: None), "x"):
            with pytest.raises(ValueError, match="runs in Python"):
                DirectTarget(client, "/mcp", steps=(step,))  # type: ignore[arg-type]

    with_client(check)
