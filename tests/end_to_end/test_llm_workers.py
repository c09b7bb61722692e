"""Several workers, reloads, and many slow streams at once."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.provider_stand_in import DONE, StandIn, chat, chunk, message_events, whole

MESSAGES: list[Any] = [{"role": "user", "content": "hi"}]
MODELS = """
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: first, provider: openai, params: {baseUrl: "http://127.0.0.1:ONE/v1", apiKey: k}}
  - {name: second, provider: openai, params: {baseUrl: "http://127.0.0.1:TWO/v1", apiKey: k}}
  virtualModels:
  - name: safe
    routing: {failover: {targets: [{model: first, priority: 1}, {model: second, priority: 2}]}}
"""


@pytest.fixture
def two() -> Iterator[tuple[StandIn, StandIn]]:
    """A provider that says when to come back, and one that works."""
    one = StandIn(whole({"error": {"message": "busy"}}, 429, retry_after="600"))
    other = StandIn(whole(chat()))
    yield one, other
    one.close()
    other.close()


def ask(running: Gateway, count: int) -> None:
    """Send requests, each on a connection of its own, so that the kernel spreads them over the workers."""
    for _ in range(count):
        answer = httpx.post(f"{running.url}/v1/chat/completions", json={"model": "safe", "messages": MESSAGES}, timeout=30)
        assert answer.status_code == 200


def test_workers_share_what_they_know_of_providers(gateway: Callable[..., Gateway], two: Any) -> None:
    one, other = two
    running = gateway(MODELS.replace("ONE", str(one.port)).replace("TWO", str(other.port)), workers=2)
    ask(running, 24)
    # Had each worker to find out by itself, the first provider would be asked twice.
    assert (len(one.seen), len(other.seen)) == (1, 24)


def test_a_provider_that_was_put_aside_stays_so_over_a_reload(gateway: Callable[..., Gateway], two: Any) -> None:
    one, other = two
    text = MODELS.replace("ONE", str(one.port)).replace("TWO", str(other.port))
    running = gateway(text, workers=2)
    ask(running, 2)
    running.write(text.replace("- {name: second,", "- {name: third, provider: anthropic}\n  - {name: second,"))
    running.wait_log("generation=2")
    ask(running, 8)
    assert (len(one.seen), len(other.seen)) == (1, 10)


# -- slow streams ------------------------------------------------------------------------------------------------------
STREAMS = """
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: native, provider: openai, params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: k}}
  - {name: translated, provider: anthropic, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: k}}
"""
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
TEXT = "0123456789abcdef"


def framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Crowd:
    """A provider and as many clients, in one loop; every stream goes on when it is told to."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.writers: list[tuple[bool, asyncio.StreamWriter]] = []
        self.clients: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.events = message_events(*[TEXT] * 1)

    async def provide(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        native = b"/chat/completions" in head.split(b"\r\n")[0]
        first = chunk(TEXT) if native else b"".join(self.events[:4])
        writer.write(HEAD + framed(first))
        self.writers.append((native, writer))

    async def join(self, gateway: int, model: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway, limit=1 << 14)
        body = json.dumps({"model": model, "stream": True, "max_tokens": 9, "messages": MESSAGES}).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(body)
        writer.write(head + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        await reader.readuntil(b"\n\n")
        self.clients.append((reader, writer))

    async def speak(self) -> None:
        """Every stream says one more thing, and every client reads it."""
        word = framed(chunk(TEXT)), framed(self.events[3])
        for native, writer in self.writers:
            writer.write(word[0] if native else word[1])
        for reader, _ in self.clients:
            while TEXT.encode() not in await reader.readuntil(b"\n\n"):
                pass

    async def end(self) -> None:
        """Every stream ends as it should."""
        last = framed(chunk(finish="stop")) + framed(DONE), framed(b"".join(self.events[4:]))
        for native, writer in self.writers:
            writer.write((last[0] if native else last[1]) + b"0\r\n\r\n")
        for reader, writer in self.clients:
            assert (await reader.readuntil(b"0\r\n\r\n")).count(b"[DONE]") == 1
            writer.close()


def memory(pid: int) -> int:
    """Resident bytes of a process."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


async def crowd_of(running: Gateway, crowd: Crowd, count: int, words: int) -> tuple[int, int, int]:
    """Memory of the worker before any stream, with all of them open, and after they have said a lot."""
    [worker] = running.worker_pids()
    for model in ("native", "translated"):
        await crowd.join(running.port, model)       # what is loaded by the first request is no one's in particular
    before = memory(worker)
    for start in range(2, count, 50):
        await asyncio.gather(
            *(crowd.join(running.port, "translated" if at % 2 else "native") for at in range(start, min(start + 50, count)))
        )
    await crowd.speak()
    opened = memory(worker)
    for _ in range(words):
        await crowd.speak()
    later = memory(worker)
    await crowd.end()
    return before, opened, later


def run(gateway: Callable[..., Gateway], count: int, words: int) -> tuple[int, int, int]:
    async def main() -> tuple[int, int, int]:
        crowd = Crowd()
        server = await asyncio.start_server(crowd.provide, "127.0.0.1", 0, backlog=4096)
        crowd.port = server.sockets[0].getsockname()[1]
        running = await asyncio.to_thread(gateway, STREAMS.replace("BACKEND", str(crowd.port)))
        found = await crowd_of(running, crowd, count, words)
        server.close()
        return found

    return asyncio.run(main())


def test_a_hundred_slow_streams(gateway: Callable[..., Gateway]) -> None:
    _, opened, later = run(gateway, 100, 20)
    assert later - opened < 2 << 20


@pytest.mark.slow
def test_two_thousand_slow_streams_cost_little_memory_and_no_more_the_longer_they_last(
    gateway: Callable[..., Gateway],
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        before, opened, later = run(gateway, 2000, 100)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(f"before {before >> 20} MiB, open {opened >> 20} MiB, later {later >> 20} MiB")
    assert (opened - before) / 2000 < 40 << 10
    assert later - opened < 4 << 20
