"""What must hold for as long as a gateway runs: nothing is lost but what was on a killed connection; descriptors and memory stay flat.

Short here; `make soak` runs each part for HEADGATE_SOAK seconds and with 10,000 idle connections of each kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random
import resource
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.running import Gateway, free_port
from tests.end_to_end.soak_rig import (
    KINDS,
    Broken,
    Footprint,
    LeavingBackend,
    Plain,
    SlowBackend,
    body_of,
    opened,
    rounds,
)
from tests.end_to_end.tls_rig import (
    authority,  # noqa: F401
    issue,
)

CONFIG = """
gateways:
  default: {port: {port}}
  secure:
    port: SECURE
    listeners: [{name: a, hostname: a.test, protocol: HTTPS, tls: {cert: FOLDER/a.pem, key: FOLDER/a.key}}]
  raw: {port: RAW, protocol: TCP}
routes:
- gateways: [default, secure/a]
  matches: [{path: {pathPrefix: /leaving}}]
  backends: [{host: "127.0.0.1:LEAVING", policies: {http: {version: HTTP/2}}}]
- gateways: [default, secure/a]
  backends: [{host: "127.0.0.1:BACKEND", policies: {http: {version: HTTP/1.1}}}]
tcpRoutes:
- gateways: [raw]
  backends: [{host: "127.0.0.1:BACKEND"}]
"""
LONG = "HEADGATE_SOAK" in os.environ
MIB = 1 << 20
# What a worker may keep of a part: tables, free lists and arenas of the allocator that are not full.
SLACK = 16 * MIB
AT_ONCE = 50


class Soak:
    """A gateway with its clients and backends."""

    def __init__(self, running: Gateway, ports: dict[str, int], folder: Path) -> None:
        self.running, self.ports, self.folder = running, ports, folder
        self.usage = Footprint(running.worker_pids())
        self.contexts = {kind: ssl.create_default_context(cafile=str(folder / "ca.pem")) for kind in KINDS if kind.startswith("tls")}
        for kind, context in self.contexts.items():
            context.set_alpn_protocols(["h2" if kind.endswith("2") else "http/1.1"])

    async def open(self, kind: str, receive_buffer: int = 0) -> Plain:
        return await opened(kind, self.ports, self.contexts.get(kind), receive_buffer)

    async def ask_once(self, kind: str, path: str = "/") -> tuple[int, bytes]:
        client = await self.open(kind)
        try:
            return await client.ask(path)
        finally:
            await client.close()

    async def flat(self, part: Callable[[int], Awaitable[None]], short: int = 3) -> None:
        """Run the part for its rounds; what the process has behind the first one is what it has in the end."""
        descriptors = memory = 0
        for number in rounds(short):
            await part(number)
            if number == 0:
                await asyncio.sleep(0.2)
                descriptors, memory = self.usage.descriptors(), self.usage.memory()
        await self.usage.wait_descriptors(descriptors + 16)
        assert self.usage.memory() <= memory + SLACK
        assert self.running.metric("gw_worker_restarts_total") == 0
        assert "Traceback" not in self.running.log()


@pytest.fixture
def soaking(gateway: Callable[..., Any], authority: Any, tmp_path: Path) -> Callable[[Callable[[Soak], Awaitable[None]]], None]:
    issue(authority, tmp_path, "a", "a.test")

    def run(part: Callable[[Soak], Awaitable[None]]) -> None:
        async def scenario() -> None:
            backend = SlowBackend()
            loop = asyncio.get_running_loop()
            leaving = await loop.create_server(LeavingBackend, "127.0.0.1", 0)
            secure, raw = free_port(), free_port()
            names = {"SECURE": secure, "RAW": raw, "BACKEND": await backend.start(), "LEAVING": leaving.sockets[0].getsockname()[1], "FOLDER": tmp_path}
            text = CONFIG
            for name, value in names.items():
                text = text.replace(name, str(value))
            running = await asyncio.to_thread(gateway, text)
            await part(Soak(running, {"http/1.1": running.port, "http/2": running.port, "tls": secure, "tcp": raw}, tmp_path))
            backend.close()
            leaving.close()

        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        asyncio.run(scenario())

    return run


def test_slow_readers_and_writers_on_both_sides(soaking) -> None:
    sent, size = body_of(60_000), 120_000
    expected = (200, hashlib.sha256(sent).hexdigest().encode() + body_of(size))

    async def one(soak: Soak, kind: str) -> None:
        client = await soak.open(kind, receive_buffer=4096)
        # A slow client before a fast backend, the other way about, and both slow.
        for path, piece in (("/fast", 3000), ("/slow", 0), ("/slow", 5000)):
            assert await client.ask(f"{path}?n={size}", sent, piece) == expected, (kind, path)
        await client.close()

    async def part(soak: Soak) -> None:
        async def all_kinds(_: int) -> None:
            await asyncio.gather(*[one(soak, kind) for kind in KINDS for _ in range(8 if LONG else 3)])

        await soak.flat(all_kinds, 2)

    soaking(part)


def test_idle_connections_of_each_kind(soaking) -> None:
    async def part(soak: Soak) -> None:
        room = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        # As many connections to the backend as there will be calls at a time.
        crowd = [await soak.open("http/1.1") for _ in range(AT_ONCE)]
        await asyncio.gather(*[client.ask("/slow?n=20000") for client in crowd])
        for client in crowd:
            await client.close()
        await asyncio.sleep(0.5)
        for kind in KINDS:
            # A connection of a TCP listener has one to the backend, and both ends of that are here and there.
            wanted = 10_000 if LONG else 100
            count = min(wanted, (room - 1000) // (3 if kind == "tcp" else 1))
            before = soak.usage.descriptors()
            held: list[Plain] = []
            for at in range(0, count, AT_ONCE):
                held += await asyncio.gather(*[soak.open(kind) for _ in range(min(AT_ONCE, count - at))])
                assert {status for status, _ in await asyncio.gather(*[client.ask("/") for client in held[at:]])} == {200}
            assert soak.usage.descriptors() >= before + count
            assert (await soak.ask_once("http/1.1"))[0] == 200
            chosen = random.Random(10).sample(held, AT_ONCE)
            assert {status for status, _ in await asyncio.gather(*[client.ask("/") for client in chosen])} == {200}, kind
            for client in held:
                client.writer.transport.abort()
            await soak.usage.wait_descriptors(before + 16)
        assert "Traceback" not in soak.running.log()

    soaking(part)


def test_churn(soaking) -> None:
    """Connections that say nothing, half of something or all of it, and end in every way."""
    beginnings = (b"", b"G", b"GET / HTTP/1.1\r\nhost: a.test\r\n", b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                  b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", bytes(range(256)))

    async def one(soak: Soak, port: int, data: bytes, end: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(OSError):
            if data:
                writer.write(data)
                await writer.drain()
            if end == 0:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif end == 1:
                writer.write_eof()
        writer.transport.abort() if end == 0 else writer.close()

    async def part(soak: Soak) -> None:
        bystander = await soak.open("http/1.1")

        async def storm(number: int) -> None:
            chance = random.Random(number)
            ports = (*soak.ports.values(),)
            await asyncio.gather(*[one(soak, chance.choice(ports), chance.choice(beginnings), chance.randrange(3)) for _ in range(100)])
            assert (await bystander.ask("/"))[0] == 200
            for kind in KINDS:
                assert (await soak.ask_once(kind))[0] == 200

        await soak.flat(storm)
        await bystander.close()

    soaking(part)


def test_backends_that_die_in_the_middle(soaking) -> None:
    async def killed(soak: Soak, kind: str) -> None:
        client = await soak.open(kind)
        with pytest.raises(Broken):
            await client.ask("/die?n=300000")
        if kind.endswith("/2"):
            assert (await client.ask("/"))[0] == 200, "the other streams of the connection live"
        await client.close()

    async def kept(client: Plain) -> None:
        for _ in range(5):
            assert len((await client.ask("/?n=50000"))[1]) == 50_064

    async def part(soak: Soak) -> None:
        clients = [await soak.open(kind) for kind in KINDS]

        async def once(_: int) -> None:
            await asyncio.gather(*[killed(soak, kind) for kind in KINDS for _ in range(5)], *[kept(client) for client in clients])

        await soak.flat(once)
        for client in clients:
            await client.close()

    soaking(part)


def test_storms_of_goaway(soaking) -> None:
    """Backends that leave after each few calls: what they did not take is sent to the next connection."""

    async def part(soak: Soak) -> None:
        kinds = [kind for kind in KINDS if kind != "tcp"]
        clients = [await soak.open(kind) for kind in kinds for _ in range(8)]
        before = LeavingBackend.answered
        asked = 0

        async def once(_: int) -> None:
            nonlocal asked
            answers = await asyncio.gather(*[client.ask("/leaving") for client in clients for _ in range(1)])
            asked += len(answers)
            assert set(answers) == {(200, b"here")}

        await soak.flat(once, 20)
        assert LeavingBackend.answered - before == asked, "each call was answered once"
        assert LeavingBackend.connections > asked // LeavingBackend.most // 2
        for client in clients:
            await client.close()

    soaking(part)


def test_certificates_are_renewed_each_second(soaking, authority) -> None:
    async def part(soak: Soak) -> None:
        kept = [await soak.open(kind) for kind in ("tls", "tls http/2") for _ in range(4)]
        over = asyncio.Event()
        asked = 0

        async def load(client: Plain) -> None:
            nonlocal asked
            while not over.is_set():
                assert (await client.ask("/?n=1000"))[0] == 200
                asked += 1

        async def fresh() -> None:
            while not over.is_set():
                assert (await soak.ask_once(random.choice(("tls", "tls http/2"))))[0] == 200

        async def renewal(_: int) -> None:
            reloads = soak.running.log().count("configuration reloaded")
            await asyncio.to_thread(issue, authority, soak.folder, "a", "a.test")
            for _ in range(600):
                await asyncio.sleep(0.1)
                if soak.running.log().count("configuration reloaded") > reloads:
                    break
            else:
                raise AssertionError("the renewed certificate was not taken up")
            await asyncio.sleep(0.5)

        async def renewals() -> None:
            try:
                await soak.flat(renewal, 3)
            finally:
                over.set()

        await asyncio.gather(renewals(), *[load(client) for client in kept], fresh(), fresh())
        assert asked > len(kept)
        assert "TLS handshake failed" not in soak.running.log()
        for client in kept:
            await client.close()

    soaking(part)
