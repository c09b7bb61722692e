"""Many sessions at once, each with calls and an event stream: no error, and no more memory after more calls.

A few dozen here; `make mcp-soak` has a thousand.
"""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, config
from tests.end_to_end.mcp_sessions_rig import wait_for

from headgate.net.tasks import spawn

ROUNDS = 3
# What a worker may grow from round to round: noise of the allocator, not a growth with every call.
GROWTH = 1.10


def memory_kb(running: Any) -> int:
    """Resident memory of the workers."""
    total = 0
    for pid in running.worker_pids():
        with open(f"/proc/{pid}/status") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
    return total


class Client:
    """One session: its id, and an event stream of its own."""

    def __init__(self, http: httpx.AsyncClient, number: int, prefix: str) -> None:
        self.http, self.number, self.prefix = http, number, prefix
        self.headers: dict[str, str] = {}
        self.events: asyncio.Task[None] | None = None

    async def open(self) -> None:
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
        answer = await self.http.post("/mcp", json=body)
        assert answer.status_code == 200, answer.text
        self.headers = {"mcp-session-id": answer.headers["mcp-session-id"]}
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await self.http.post("/mcp", json=note, headers=self.headers)).status_code == 202
        begun = asyncio.Event()
        self.events = spawn("events", self.listen(begun))
        await begun.wait()

    async def listen(self, begun: asyncio.Event) -> None:
        async with self.http.stream("GET", "/mcp", headers=self.headers) as answer:
            assert answer.status_code == 200
            begun.set()
            async for _ in answer.aiter_bytes():
                pass

    async def call(self, round_: int) -> None:
        text = f"session {self.number} round {round_}"
        body = {"jsonrpc": "2.0", "id": round_, "method": "tools/call",
                "params": {"name": f"{self.prefix}echo", "arguments": {"message": text}}}  # fmt: skip
        answer = await self.http.post("/mcp", json=body, headers=self.headers)
        assert answer.status_code == 200, answer.text
        data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")][-1]
        assert json.loads(data)["result"]["content"][0]["text"] == f"Echo: {text}"

    async def close(self) -> None:
        assert self.events is not None
        self.events.cancel()
        answer = await self.http.delete("/mcp", headers=self.headers)
        assert answer.status_code == 200, answer.text


async def use(running: Any, count: int, prefix: str) -> list[int]:
    """Open `count` sessions, call in all of them at once, round by round; the memory after each round."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
    found = []
    async with httpx.AsyncClient(base_url=running.url, headers=ACCEPT, timeout=120, limits=limits) as http:
        clients = [Client(http, number, prefix) for number in range(count)]
        for start in range(0, count, 100):
            await asyncio.gather(*(client.open() for client in clients[start : start + 100]))
        assert running.metric("gw_mcp_sessions{") >= count
        for round_ in range(1, ROUNDS + 2):
            await asyncio.gather(*(client.call(round_) for client in clients))
            found.append(memory_kb(running))
        for start in range(0, count, 100):
            await asyncio.gather(*(client.close() for client in clients[start : start + 100]))
    return found


def check(running: Any, count: int, prefix: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8 * count)), hard))
    try:
        first, *later = asyncio.run(use(running, count, prefix))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert max(later) <= first * GROWTH, (first, later)
    calls = running.metric('gw_mcp_requests_total{method="tools/call"')
    assert calls == count * (ROUNDS + 1)
    assert " ERROR " not in running.log()
    assert "\terror\t" not in running.log()
    # Each worker that knew a session forgets it in the end; those that it was not ended at do when it is idle.
    wait_for(lambda: running.metric("gw_mcp_sessions{") == 0, 60)


@pytest.fixture
def started(gateway: Callable[..., Any], sample: Any) -> Callable[[str], Any]:
    def start(kind: str) -> Any:
        remote = f'mcp: {{host: "http://127.0.0.1:{sample("mcp_server", "--http", "127.0.0.1:0")}/mcp"}}'
        targets = {"t": remote} if kind == "one" else {"t": remote, "u": remote}
        return gateway(config(targets), 2, settings="mcp: {sessionTtl: 10s}")

    return start


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["one", "several"])
def test_sixty_sessions_at_once(kind: str, started: Callable[[str], Any]) -> None:
    check(started(kind), 60, "" if kind == "one" else "t_")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["one", "several"])
def test_a_thousand_sessions_at_once(kind: str, started: Callable[[str], Any]) -> None:
    check(started(kind), 1000, "" if kind == "one" else "t_")
