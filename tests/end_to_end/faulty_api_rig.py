"""A way to an API server on which things go wrong: watches are cut, expire or are late, lists are slow, requests are turned away."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

Json = dict[str, Any]
SECONDS = 60
# What is passed on of a request, and of an answer.
ASKED = ("authorization", "content-type", "accept")
ANSWERED = ("content-type", "retry-after")
EXPIRED = {
    "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
    "message": "too old resource version",
}  # fmt: skip
# What the server says by itself.
SAID = {410: "expired by the server", 429: "throttled by the server"}
BUSY = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429, "message": "later"}


class FaultyApi:
    """Passes requests on to `origin`. `did`: how often each fault has met a request."""

    def __init__(self, origin: str, context: ssl.SSLContext | None = None, seed: int = 0) -> None:
        self.did: Counter[str] = Counter()
        self.url = ""
        self._origin, self._context, self._random = origin, context, random.Random(seed)
        self._watches: dict[int, web.Request] = {}
        self._expired: set[str] = set()
        self._busy = self._slow = False
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        assert self._started.wait(SECONDS)

    # -- faults --------------------------------------------------------------------------------------------------------
    def cut(self) -> None:
        """Cut off all watches in the middle."""
        self._soon(self._cut)

    def expire(self) -> None:
        """Cut off all watches; those that come next are told that they are too late: everything has to be listed."""
        self._soon(lambda: (self._expired.update(one.path for one in self._watches.values()), self._cut()))

    def throttle(self, on: bool) -> None:
        """Turn requests away with 429, every second one of them."""
        self._soon(lambda: setattr(self, "_busy", on))

    def slow(self, on: bool) -> None:
        """Keep each page of a list for a while, so that it is old when it comes."""
        self._soon(lambda: setattr(self, "_slow", on))

    def hold(self, on: bool) -> None:
        """Keep all events of watches: who reads them believes in what was."""
        self._soon(self._flowing.clear if on else self._flowing.set)

    # -- the server ----------------------------------------------------------------------------------------------------
    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def _soon(self, function: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(function)

    async def _run(self) -> None:
        self._loop, self._end, self._flowing = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        self._flowing.set()
        application = web.Application(client_max_size=1 << 24)
        application.router.add_route("*", "/{path:.*}", self._pass)
        runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        connector = aiohttp.TCPConnector(ssl=self._context or False, limit=0)
        limits = aiohttp.ClientTimeout(total=None, sock_connect=SECONDS)
        async with aiohttp.ClientSession(connector=connector, timeout=limits, auto_decompress=False) as self._session:
            self._started.set()
            await self._end.wait()
            self._flowing.set()
            self._cut()
            await runner.cleanup()

    def _cut(self) -> None:
        for one in self._watches.values():
            self.did["cut"] += 1
            if one.transport is not None:
                one.transport.abort()
        self._watches.clear()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        watch = request.query.get("watch") in ("1", "true")
        if self._busy and self._random.random() < 0.5:
            self.did["throttled"] += 1
            return web.json_response(BUSY, status=429, headers={"retry-after": "1"})
        if watch and request.path in self._expired:
            self._expired.discard(request.path)
            return await self._too_old(request)
        # Long lists are packed for who does not say that he cannot read it.
        headers = {name: request.headers[name] for name in ASKED if name in request.headers} | {"accept-encoding": "identity"}
        try:
            async with self._session.request(
                request.method, URL(f"{self._origin}{request.raw_path}", encoded=True), data=await request.read(), headers=headers
            ) as answer:
                if answer.status in SAID:
                    self.did[SAID[answer.status]] += 1
                if self._slow and request.method == "GET" and not watch:
                    self.did["slowed"] += 1
                    await answer.read()
                    await asyncio.sleep(0.2 + self._random.random())
                return await self._answered(request, answer, watch)
        except aiohttp.ClientError:
            # The server is away: so is the way to it.
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)

    async def _answered(self, request: web.Request, answer: aiohttp.ClientResponse, watch: bool) -> web.StreamResponse:
        fields = {name: answer.headers[name] for name in ANSWERED if name in answer.headers}
        if not watch:
            return web.Response(status=answer.status, headers=fields, body=await answer.read())
        response = web.StreamResponse(status=answer.status, headers=fields)
        await response.prepare(request)
        self._watches[id(request)] = request
        try:
            async for piece in answer.content.iter_any():
                if b'"code":410' in piece:
                    self.did[SAID[410]] += 1
                if not self._flowing.is_set():
                    self.did["held"] += 1
                    await self._flowing.wait()
                with contextlib.suppress(ConnectionResetError):
                    await response.write(piece)
        finally:
            self._watches.pop(id(request), None)
        return response

    async def _too_old(self, request: web.Request) -> web.StreamResponse:
        """Say 410 as servers do: at once, or in the first event."""
        self.did["expired"] += 1
        if self._random.random() < 0.5:
            return web.json_response(EXPIRED, status=410)
        return web.Response(text=json.dumps({"type": "ERROR", "object": EXPIRED}) + "\n", content_type="application/json")
