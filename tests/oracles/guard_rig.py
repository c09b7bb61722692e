"""Guards from a piece of configuration, and a service that notes what it is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.backend.llm.guards.compile import Guards, compile_guards
from headgate.config.backends import Backends
from headgate.config.check import BAD, check
from headgate.config.context import Context
from headgate.config.policy import prompt_guard
from headgate.config.shape.guard import GUARDRAILS
from headgate.document.nodes import Report
from headgate.document.read import read
from headgate.ir.endpoint import Endpoint
from headgate.ir.policy.prompt_guard import PromptGuard
from headgate.ir.process import UpstreamSettings
from headgate.net.authority import own_authority
from headgate.net.dial import Dialer
from headgate.net.dns import Resolver
from headgate.pipeline.callers import steps_of_call
from headgate.policy.cloud.store import CredentialStore
from headgate.policy.environment import Environment
from headgate_engine.link.client import HttpClient
from headgate_engine.link.pool import Pool
from headgate_engine.link.upstream import Http1Upstream
from headgate_engine.link.worker import Worker
from headgate_engine.shared.segment import Segment


def parsed(text: str) -> tuple[PromptGuard | None, list[str]]:
    """The guards of a `guardrails` value in YAML, and what is wrong with it."""
    report = Report("c")
    context = Context(report, {}, Path())
    context.directory = Backends(context)
    record = check(GUARDRAILS, read(text, "c", {}), report)
    if record is BAD:
        return None, [str(error) for error in report.errors]
    found = prompt_guard.parse(context, record)
    return found, [str(error) for error in report.errors]


@dataclass
class Call:
    """One call that came, with all that it said."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


@dataclass
class Standin:
    """A service that notes calls; `answer(call)` gives status and body, None hangs up, a number waits so many seconds."""

    port: int = 0
    calls: list[Call] = field(default_factory=list)
    answer: Callable[[Call], tuple[int, bytes] | float | None] = lambda _: (200, b"{}")
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def says(self, document: Any, status: int = 200) -> None:
        self.answer = lambda _: (status, document if isinstance(document, bytes) else json.dumps(document).encode())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, target, _ = head[0].split(" ")
                headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in head[1:-2])]
                call = Call(method, target, headers, b"")
                call.body = await reader.readexactly(int(call.header("content-length") or 0))
                self.calls.append(call)
                self.came.set()
                found = self.answer(call)
                if found is None:
                    break
                if isinstance(found, int | float):
                    await asyncio.sleep(found)
                    break
                status, body = found
                writer.write(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n" % (status, len(body)) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


class Rig:
    """A worker that guards may call from, and one service for them."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.segment = Segment.create()
        self.service = Standin()
        self.worker = Worker(loop, self.segment, 0, -1, lambda name, work: loop.create_task(work, name=name))
        self._resolver = Resolver()

    def client(self, endpoint: Endpoint, subtype: str = "Http") -> HttpClient:
        dialer = Dialer(endpoint, UpstreamSettings(), self._resolver)
        pool = Pool(self.worker, endpoint.key, endpoint.address.encode(), dialer.connect, Http1Upstream(self.worker))
        return HttpClient(pool, own_authority(endpoint))

    def environment(self) -> Environment:
        def no_keys(_: object) -> Any:
            raise AssertionError

        credentials = CredentialStore(self.worker.spawn)
        credentials.calls.client = self.client
        return Environment(
            self.segment, 1 << 20, no_keys, self.client, self.worker.spawn, credentials=lambda: credentials,
            steps_of_call=steps_of_call,
        )  # fmt: skip

    def guards(self, text: str) -> Guards:
        """Compiled guards; `{port}` is the service's."""
        found, faults = parsed(text.replace("{port}", str(self.service.port)))
        assert faults == []
        guards = compile_guards(found, self.environment())
        assert guards is not None
        return guards

    def count(self, *words: str) -> int:
        """Sum of the counters whose labels have all these words."""
        found = 0
        for key, _, value in self.segment.entries():
            if b"gw_guardrail_checks_total" in key and all(f'"{word}"'.encode() in key for word in words):
                found += int.from_bytes(value[:8], "little")
        return found


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    found = Rig()
    server = await asyncio.start_server(found.service.serve, "127.0.0.1", 0)
    found.service.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        found.worker.abort_all()
        await found.worker.aclose()
