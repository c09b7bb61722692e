"""The controller's requests to an API server: calls, lists in pages, and watches.

Connections are kept and shared by all calls; each watch has one of its own.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import orjson
from yarl import URL

from headgate.cluster.api import refusal, tls_context
from headgate.cluster.calls import ApiError, Json
from headgate.cluster.kubeconfig import ClusterAccess

PAGE: Final = 500
CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 60.0
# Seconds without a byte after which a watch is begun anew: bookmarks come about once a minute.
SILENT_SECONDS: Final = 150.0
# Seconds after which the server ends a watch, at least and at most, so that not all watches end together.
WATCH_SECONDS: Final = (300, 600)
# How often a request is sent again that the server has no room for, and the most seconds that it is made to wait.
PATIENCE: Final = 5
MOST_WAIT_SECONDS: Final = 30.0
# Bytes of an event: objects have at most 1.5 MiB in etcd.
MOST_EVENT: Final = 16 << 20
# Seconds after which a token that is renewed in its file is read again, as other clients do.
TOKEN_SECONDS: Final = 60.0
MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
# The metadata of objects in the place of all of them.
METADATA: Final = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"

_TOO_MANY: Final = 429
_UNAUTHORIZED: Final = 401


class KubernetesClient:
    """An ApiCalls. Close it at the end. `sleep`, `chance`: asyncio.sleep and random.random, or what tests put there."""

    def __init__(
        self,
        access: ClusterAccess,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Raises ClusterError if certificates cannot be used."""
        self._access = access
        self._tls = tls_context(access) if access.server.startswith("https") else None
        self._sleep = sleep
        self._chance = chance
        self._headers = {**access.headers, "Accept": "application/json", "Accept-Encoding": "identity"}
        self._read_at = time.monotonic()
        self._session: aiohttp.ClientSession | None = None

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        return await self._call("GET", path, query)

    async def create(self, path: str, document: Json) -> Json:
        return await self._call("POST", path, None, document)

    async def apply(self, path: str, document: Json, manager: str) -> Json:
        return await self._call("PATCH", path, {"fieldManager": manager, "force": "true"}, document, APPLY)

    async def merge(self, path: str, document: Json) -> Json:
        return await self._call("PATCH", path, None, document, MERGE)

    async def delete(self, path: str) -> Json:
        return await self._call("DELETE", path)

    async def list_pages(
        self, path: str, query: Mapping[str, str] | None = None, metadata: bool = False
    ) -> AsyncIterator[Json]:
        """Yield the pages of a list, each as the server's list object. `metadata`: without the rest of the objects.

        Raises ApiError; 410 if the list has changed so much that its rest cannot be read.
        """
        more = ""
        while True:
            asked = {**(query or {}), "limit": str(PAGE)} | ({"continue": more} if more else {})
            page = await self._call("GET", path, asked, accept=METADATA.format("List") if metadata else "")
            yield page
            more = page["metadata"].get("continue") or ""
            if not more:
                return

    async def watch(
        self, path: str, version: str, query: Mapping[str, str] | None = None, metadata: bool = False
    ) -> AsyncIterator[Json]:
        """Yield the events after a version, with bookmarks; ends where the server or a long silence ends it.

        Raises ApiError, also for an event that tells an error; 410 if the version is too old.
        """
        seconds = WATCH_SECONDS[0] + int(self._chance() * (WATCH_SECONDS[1] - WATCH_SECONDS[0]))
        asked = {
            **(query or {}), "watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }  # fmt: skip
        headers = self._fields() | ({"Accept": METADATA.format("")} if metadata else {})
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS)
        try:
            async with self._request("GET", path, asked, headers, None, limits) as answer:
                if answer.status != 200:
                    raise _refused("watch", path, answer.status, await answer.read())
                async for line in _lines(answer.content):
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":
                        told = event["object"]
                        raise ApiError(int(told.get("code", 0)), told.get("reason", ""), told.get("message", ""))
                    yield event
        except TimeoutError:
            return
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ApiError(0, "", f"watch {path}: {str(error) or type(error).__name__}") from None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        document: Json | None = None,
        kind: str = "application/json",
        accept: str = "",
    ) -> Json:
        headers = {"Content-Type": kind} if document is not None else {}
        if accept:
            headers["Accept"] = accept
        body = None if document is None else orjson.dumps(document)
        limits = aiohttp.ClientTimeout(total=ANSWER_SECONDS, sock_connect=CONNECT_SECONDS)
        for turn in range(PATIENCE):
            try:
                async with self._request(method, path, query, self._fields() | headers, body, limits) as answer:
                    content, status = await answer.read(), answer.status
                    wait = answer.headers.get("Retry-After", "")
            except TimeoutError:
                raise ApiError(0, "", f"{method} {path}: no answer within {ANSWER_SECONDS:.0f} s") from None
            except (aiohttp.ClientError, OSError) as error:
                raise ApiError(0, "", f"{method} {path}: {str(error) or type(error).__name__}") from None
            if status == _TOO_MANY and turn < PATIENCE - 1:
                seconds = min(float(wait) if wait.isdigit() else 1.0, MOST_WAIT_SECONDS)
                await self._sleep(seconds * (1 + self._chance() / 5))
            elif status == _UNAUTHORIZED and turn == 0 and self._access.token_file is not None:
                self._read_token()
            else:
                break
        if not 200 <= status < 300:
            raise _refused(method, path, status, content)
        try:
            found: Json = orjson.loads(content)
        except ValueError:
            raise ApiError(0, "", f"{method} {path}: the answer is not JSON") from None
        return found

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str],
        body: bytes | None,
        limits: aiohttp.ClientTimeout,
    ) -> Any:
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=self._tls or False, limit=0, keepalive_timeout=60)
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        target = f"{self._access.server}{path}{f'?{urlencode(query)}' if query else ''}"
        name = self._access.server_name
        return self._session.request(
            method, URL(target, encoded=True), headers=headers, data=body, timeout=limits, server_hostname=name
        )

    def _fields(self) -> dict[str, str]:
        if self._access.token_file is not None and time.monotonic() - self._read_at > TOKEN_SECONDS:
            self._read_token()
        return self._headers

    def _read_token(self) -> None:
        assert self._access.token_file is not None
        self._read_at = time.monotonic()
        try:
            token = self._access.token_file.read_text("utf-8").strip()
        except (OSError, ValueError):
            return  # the one that is known may still be good
        self._headers["Authorization"] = f"Bearer {token}"


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    pieces: list[bytes] = []
    size = 0
    async for piece in content.iter_any():
        first, *others = piece.split(b"\n")
        pieces.append(first)
        size += len(first)
        if size > MOST_EVENT:
            raise ValueError(f"an event of more than {MOST_EVENT} bytes")
        for one in others:
            yield b"".join(pieces)
            pieces, size = [one], len(one)


def _refused(method: str, path: str, status: int, content: bytes) -> ApiError:
    try:
        reason = str(orjson.loads(content).get("reason") or "")
    except (ValueError, AttributeError):
        reason = ""
    return ApiError(status, reason, f"{method} {path}: {refusal(status, content)}")
