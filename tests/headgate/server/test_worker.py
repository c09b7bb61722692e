"""What a worker answers the supervisor."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from headgate.server import control
from headgate.server.control import Query, QueryResult
from headgate.server.worker import WorkerProcess

MANY = [{"target": f"t{number}", "error": "\udc80" * 256} for number in range(1000)]


class AskedWorker(WorkerProcess):
    """Knows many targets, and says too much when it is asked for its numbers."""

    def _numbers(self) -> dict[str, object]:
        return {"text": "x" * control.MAX_PACKET}


def with_worker(talk: Callable[[Any, Callable[..., Any]], Awaitable[None]]) -> None:
    async def run() -> None:
        ours, theirs = control.channel_pair()
        start: Any = SimpleNamespace(channel=theirs, order=SimpleNamespace(worker=0), folder="", wake_fds=())
        worker: Any = AskedWorker(start, None)  # type: ignore[arg-type]
        worker._running = SimpleNamespace(mcp_targets=lambda: MANY)
        loop, heard = asyncio.get_running_loop(), asyncio.Queue[Any]()
        loop.add_reader(theirs, worker._on_packet)
        loop.add_reader(ours, lambda: heard.put_nowait(control.receive(ours)))
        answering = loop.create_task(worker._control_loop())

        async def answer() -> Any:
            getting = loop.create_task(heard.get())
            await asyncio.wait((getting, answering), return_when=asyncio.FIRST_COMPLETED)
            getting.cancel()
            assert not answering.done()
            return getting.result()[0]

        try:
            await talk(ours, answer)
        finally:
            loop.remove_reader(ours)
            loop.remove_reader(theirs)
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            ours.close()
            theirs.close()

    asyncio.run(run())


def test_a_worker_tells_of_more_targets_than_a_packet_holds() -> None:
    async def talk(channel: Any, answer: Callable[..., Any]) -> None:
        descriptor = os.memfd_create("answer")
        control.send(channel, Query(1, "mcp"), [descriptor])
        assert await answer() == QueryResult(1, {})
        assert json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0)) == MANY
        assert os.fstat(descriptor).st_size > control.MAX_PACKET
        os.close(descriptor)

    with_worker(talk)


def test_an_answer_that_is_too_long_does_not_end_the_worker(caplog: Any) -> None:
    async def talk(channel: Any, answer: Callable[..., Any]) -> None:
        control.send(channel, Query(1, "numbers"))
        control.send(channel, Query(2, "memory"))
        assert (await answer()).number == 2

    with_worker(talk)
    assert "control message is not sent" in caplog.text
