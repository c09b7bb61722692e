"""Standard input and output, of all revisions: one client, whose requests say themselves whether there is a session."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from typing import Any

from tests.peers.conformant.exchange import MODERN, NAMESPACE, VERSIONS, Exchange, Json, Peer, RpcError
from tests.peers.conformant.http_front import agreed_of, answer, failure, task_note


class StdioFront:
    """`old` and `new`: which revisions are spoken."""

    def __init__(self, old: bool, new: bool) -> None:
        self._old, self._new = old, new
        self._versions = [one for one in VERSIONS if (new if one == MODERN else old)]
        self._peer = Peer(self._write)
        self._listeners: dict[str, tuple[Json, Json]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def _write(self, message: Json) -> None:
        sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
        sys.stdout.flush()

    async def serve(self) -> None:
        """Serve until standard input ends."""
        reader = asyncio.StreamReader(limit=16 * 1024 * 1024)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            message = json.loads(line)
            if "method" not in message:
                waiting = self._peer.asks.pop(str(message.get("id")), None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
            elif "id" in message:
                key = json.dumps(message["id"])
                self._tasks[key] = loop.create_task(self._one(message))
            elif message["method"] == "notifications/cancelled":
                key = json.dumps((message.get("params") or {}).get("requestId"))
                self._listeners.pop(key, None)
                if key in self._tasks:
                    self._tasks[key].cancel()

    async def _one(self, message: Json) -> None:
        params = message.get("params") or {}
        meta = params.get("_meta") or {}
        modern = meta.get(NAMESPACE + "protocolVersion") == MODERN
        if not (self._new if modern else self._old):
            error = RpcError(-32601, f"Method not found: {message['method']}")
            self._write(failure(message["id"], error))
            return
        if modern and message["method"] == "subscriptions/listen":
            self._listen(message, params)
            return
        exchange = Exchange(self._peer, params, modern, self._write)
        exchange.ask_client = self._ask
        self._write(await answer(exchange, message, self._changed, self._versions))

    async def _ask(self, method: str, params: Json) -> Json:
        key = secrets.token_hex(8)
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._peer.asks[key] = waiting
        self._write({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
        found = await waiting
        if "error" in found:
            raise RpcError(found["error"]["code"], found["error"]["message"])
        return dict(found["result"])

    def _listen(self, message: Json, params: Json) -> None:
        agreed = agreed_of({key: value for key, value in (params.get("notifications") or {}).items() if value})
        meta = {NAMESPACE + "subscriptionId": message["id"]}
        self._listeners[json.dumps(message["id"])] = (agreed, meta)
        self._write({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                     "params": {"notifications": agreed, "_meta": meta}})  # fmt: skip

    def _changed(self, kind: str) -> None:
        if kind.startswith("task:"):
            for agreed, meta in self._listeners.values():
                if kind[5:] in agreed.get("taskIds", ()):
                    self._write(task_note(kind[5:], meta))
            return
        note: Json = {"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"}
        self._write(note)
        for agreed, meta in self._listeners.values():
            if agreed.get(f"{kind}ListChanged"):
                self._write({**note, "params": {"_meta": meta}})
