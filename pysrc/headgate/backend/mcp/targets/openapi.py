"""An HTTP service as an MCP server: the operations of its OpenAPI document are tools."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
import zlib
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Final

from headgate.backend.contract import UpstreamClient, UpstreamResponse
from headgate.backend.mcp.failure import TargetFailure, call_failure
from headgate.backend.mcp.federation.target_answer import Fields, RequestTarget
from headgate.backend.mcp.http_service import MAX_BODY, target_headers
from headgate.backend.mcp.targets.remote import ClientFields, Remote, origin_of
from headgate.dialect.mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    NotAMessage,
    RpcMessage,
    error_message,
    parse,
)
from headgate.dialect.mcp.methods import ACKNOWLEDGED, DISCOVER, INITIALIZE, LISTEN
from headgate.dialect.mcp.modern import COMPLETE, SERVER_INFO, SUBSCRIPTION, UNCACHED
from headgate.dialect.mcp.versions import KNOWN, LEGACY
from headgate.dialect.openapi.calls import failure_of, request_of, result_of
from headgate.dialect.openapi.tools import Api, OperationTool, read_tools
from headgate.ir.policy.document_source import DocumentSource
from headgate.net.tasks import spawn
from headgate_engine.mcp.meter import McpTargetMeter

logger = logging.getLogger("headgate.mcp.openapi")

CALL: Final = "tools/call"
FETCH_SECONDS: Final = 30.0
MAX_DOCUMENT: Final = 16 * 1024 * 1024
# Lifetime of a fetched document without `max-age`, minimum lifetime, and pause after a failure.
KEEP_SECONDS, LEAST_SECONDS, RETRY_SECONDS = 24 * 3600.0, 60.0, 15.0
MAX_AGE: Final = re.compile(r"(?:^|[,\s])max-age=(\d{1,9})(?:$|[,\s])", re.IGNORECASE)
# List methods that such a server answers with an empty list, and the member of the result.
NOTHING: Final = {
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


class ApiDocument:
    """The OpenAPI document of a target, loaded on first use. A remote document is fetched again when it is stale.

    `client`: the HTTP client for a remote document.
    """

    def __init__(
        self, source: DocumentSource, client: UpstreamClient | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.source = source
        self._client = client
        self._clock = clock
        self._api: Api | None = None
        self._until = 0.0
        self._retry = 0.0
        self._reason = ""
        self._loading: asyncio.Task[None] | None = None

    async def api(self) -> Api:
        """Return the parsed document; raises TargetFailure if it could never be loaded."""
        now = self._clock()
        if (self._api is None or now >= self._until) and (self._loading is not None or now >= self._retry):
            if self._loading is None:
                self._loading = spawn(f"openapi {self._shown}", self._load())
            if self._api is None:
                # Other requests may wait for it too, so it is not cancelled with this one.
                await asyncio.wait([self._loading])
        if self._api is None:
            raise TargetFailure(f"the OpenAPI document cannot be used: {self._reason}")
        return self._api

    @property
    def _shown(self) -> str:
        return self.source.shown

    async def _load(self) -> None:
        """Load the document; after a failure the old one remains."""
        try:
            if self._client is None:
                text, keep = self.source.document or "", float("inf")
            else:
                async with asyncio.timeout(FETCH_SECONDS):
                    text, keep = await self._fetched(self._client)
            # Parsing a large document takes a second, so it runs in a thread.
            self._api = await asyncio.to_thread(read_tools, text)
            self._until = self._clock() + keep
            for warning in self._api.warnings:
                logger.warning("operation of limited use", extra={"document": self._shown, "error": warning})
        except (OSError, ValueError, TimeoutError) as error:
            self._reason = str(error) or type(error).__name__
            self._retry = self._clock() + RETRY_SECONDS
            logger.warning("cannot read OpenAPI document", extra={"document": self._shown, "error": self._reason})
        finally:
            self._loading = None

    async def _fetched(self, client: UpstreamClient) -> tuple[str, float]:
        """Return the document and its lifetime in seconds."""
        fields = [("accept", "application/json, application/yaml;q=0.9, */*;q=0.5")]
        response = await client.request("GET", self.source.path, fields)
        try:
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            body = await body_of(response, MAX_DOCUMENT)
        finally:
            await closed(response)
        found = MAX_AGE.search(response.header("cache-control") or "")
        keep = KEEP_SECONDS if found is None else max(float(found[1]), LEAST_SECONDS)
        return body.decode(), keep


class OpenApiRemote(Remote):
    """The service and its OpenAPI document."""

    def __init__(self, remote: Remote, document: ApiDocument) -> None:
        super().__init__(remote._client, remote.authority, remote.policies, remote._steps)
        self.document = document

    def renew(self, newer: Remote) -> None:
        """Use the settings of `newer`; the loaded document remains if its source is the same."""
        super().renew(newer)
        if isinstance(newer, OpenApiRemote) and newer.document.source != self.document.source:
            self.document = newer.document


class OpenApiLink(RequestTarget):
    """The service as the target of a session, or of a request without one (2026-07-28). It has no state."""

    pinned = False

    def __init__(self, name: str, remote: OpenApiRemote, meter: McpTargetMeter | None = None) -> None:
        self.name = name
        self.meter = meter
        self.capabilities: dict[str, Any] | None = {"tools": {}}
        self._remote = remote

    @property
    def state(self) -> str | None:
        """None: the session exists only at the gateway."""
        return None

    def reaches(self, method: str | None) -> bool:
        """Tell whether requests with this method go to the service: it only knows of calls."""
        return method == CALL

    def refuses(self, code: object) -> bool:
        """Tell whether an error with this code is the gateway's: the tool or its arguments do not fit the document."""
        return code == INVALID_PARAMS

    async def request(self, message: RpcMessage, fields: Fields) -> AsyncGenerator[bytes, None]:
        """Yield the response. A subscription is acknowledged, but never has notifications."""
        if message.method == LISTEN:
            yield _acknowledged(message)
            await asyncio.Event().wait()
        yield await self._respond(message, fields)

    async def _respond(self, message: RpcMessage, fields: Fields) -> bytes:
        method = message.method or ""
        if method == INITIALIZE:
            opened = _response(message, await self._opened(message))
            if self.meter is not None:
                self.meter.opened(opened, None)
            return opened
        if method == DISCOVER:
            return _response(message, await self._discovered())
        if method == "ping":
            return _response(message, {})
        if method == "tools/list":
            api = await self._remote.document.api()
            return _response(message, {"tools": [tool.listed for tool in api.tools.values()]})
        if method == CALL:
            return await self._call(message, fields)
        if method in NOTHING:
            return _response(message, {NOTHING[method]: []})
        return error_message(message.raw_id, METHOD_NOT_FOUND, f"method not found: {method[:80]}")

    async def _opened(self, message: RpcMessage) -> dict[str, Any]:
        api = await self._remote.document.api()
        wanted = message.protocol_version
        return {
            "protocolVersion": wanted if wanted in LEGACY else LEGACY[-1],
            "capabilities": self.capabilities,
            "serverInfo": {"name": api.title, "version": api.version},
        }

    async def _discovered(self) -> dict[str, Any]:
        api = await self._remote.document.api()
        return {
            **COMPLETE,
            **UNCACHED,
            "supportedVersions": list(KNOWN),
            "capabilities": self.capabilities,
            "_meta": {SERVER_INFO: {"name": api.title, "version": api.version}},
        }

    # -- calls ---------------------------------------------------------------------------------------------------------
    async def _call(self, message: RpcMessage, fields: Fields) -> bytes:
        api = await self._remote.document.api()
        tool = api.tools.get(message.name or "")
        if tool is None:
            told = f"tool {(message.name or '')[:200]} not found"
            return error_message(message.raw_id, INVALID_PARAMS, told)
        try:
            request = request_of(tool, json.loads(message.params).get("arguments"))
        except (ValueError, RecursionError) as error:
            told = f"invalid arguments of {tool.name}: {error}"
            return error_message(message.raw_id, INVALID_PARAMS, told)
        headers = self._headers(fields, request.headers)
        if request.media is not None:
            headers.append(("content-type", request.media))
        status, body = await self._answer(tool, (request.target, headers, request.body), fields)
        if status >= 500:
            return error_message(message.raw_id, INTERNAL_ERROR, failure_of(tool.name, status, body))
        found = b'{"jsonrpc":"2.0","id":' + (message.raw_id or b"null") + b',"result":' + result_of(status, body) + b"}"
        try:
            parse(found)
        except NotAMessage as error:
            reason = f"the answer to {tool.name} cannot be forwarded as JSON: {error}"
            return error_message(message.raw_id, INTERNAL_ERROR, reason)
        return found

    def _headers(self, fields: Fields, arguments: Sequence[tuple[str, str]]) -> Fields:
        """Return the fields for the service: those of the client that it may see, then those of arguments."""
        passed = ClientFields([one for one in fields if not _of_mcp(one[0].lower())], origin_of(fields))
        headers = target_headers(self._remote.policies, passed, "application/json", None)
        known = {name.lower() for name, _ in headers}
        return headers + [(name, value) for name, value in arguments if name.lower() not in known]

    async def _answer(
        self, tool: OperationTool, request: tuple[str, Fields, bytes | None], fields: Fields
    ) -> tuple[int, bytes]:
        """Return status and body of the service's response; raises TargetFailure."""
        target, headers, body = request
        response: UpstreamResponse | None = None
        try:
            async with asyncio.timeout(self._remote.timeout_s):
                response = await self._remote.request(tool.method, target, headers, body, origin_of(fields))
                return response.status, await body_of(response, MAX_BODY)
        except TimeoutError:
            raise TargetFailure("upstream call timeout") from None
        except OSError as error:
            raise call_failure(error) from error
        except ValueError as error:
            raise TargetFailure(f"upstream call failed: {error}") from error
        finally:
            if response is not None:
                await closed(response)

    # -- unsupported ---------------------------------------------------------------------------------------------------
    async def notify(self, message: RpcMessage, fields: Fields) -> None:
        """Drop a notification: the service has no use for it."""

    async def events(self, fields: Fields) -> None:
        """Return None: there is no event stream."""
        del fields

    async def close(self) -> None:
        """Do nothing: there is no session."""


def _of_mcp(name: str) -> bool:
    """Return True for fields of MCP, which the service must not see: session ids are secrets."""
    return name.startswith("mcp-") or name == "last-event-id"


def _acknowledged(message: RpcMessage) -> bytes:
    """Return the acknowledgement of a subscription without notifications."""
    params = {"notifications": {}, "_meta": {SUBSCRIPTION: json.loads(message.raw_id or b"null")}}
    note = {"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params}
    return json.dumps(note, ensure_ascii=False, separators=(",", ":")).encode()


def _response(message: RpcMessage, result: dict[str, Any]) -> bytes:
    body = json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return b'{"jsonrpc":"2.0","id":' + (message.raw_id or b"null") + b',"result":' + body + b"}"


async def body_of(response: UpstreamResponse, limit: int) -> bytes:
    """Return the decompressed body; raises ValueError if it exceeds `limit` bytes or has an unknown content coding."""
    body = await response.read(limit)
    coding = (response.header("content-encoding") or "identity").strip().lower()
    if coding in ("", "identity"):
        return body
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"the answer has content encoding {coding[:40]!r}")
    # 32: accept both gzip and zlib headers (https://zlib.net/manual.html, inflateInit2).
    inflating = zlib.decompressobj(32 + zlib.MAX_WBITS)
    try:
        found = inflating.decompress(body, limit + 1)
    except zlib.error as error:
        raise ValueError(f"the answer cannot be decompressed: {error}") from None
    if len(found) > limit:
        raise ValueError(f"the answer is longer than {limit} bytes")
    if not inflating.eof:
        raise ValueError("the answer is cut short")
    return found


async def closed(response: UpstreamResponse) -> None:
    """Close a response."""
    with contextlib.suppress(OSError):
        await response.aclose()


