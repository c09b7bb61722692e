"""StreamableHTTP in front of a StreamableHTTP server: messages and streams pass as they are.

The session is the server's own and its id goes through unchanged, so any worker can serve any request of it.
"""

from __future__ import annotations

import asyncio
import contextlib

from headgate.backend.contract import Call, HttpClient, Response
from headgate.backend.mcp.failure import McpFailure
from headgate.backend.mcp.front import STREAM_HEADERS
from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, Kind, Message
from headgate.dialect.mcp.versions import SESSION_HEADER
from headgate.ir.mcp import StreamableHttpTarget
from headgate.ir.policies import HeaderModifier
from headgate_engine.sse.encode import encode_event

MAX_BODY = 16 * 1024 * 1024

# Never passed to a target: framing, what describes the original body, and the client's credentials.
NOT_FORWARDED = frozenset(
    (
        "accept",
        "accept-encoding",
        "authorization",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "proxy-authorization",
        "x-api-key",
    )
)
# Not passed to the client: the body is framed anew.
NOT_RETURNED = frozenset(("content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive"))


class HttpService:
    """One remote target, reached through `client`."""

    def __init__(self, target: StreamableHttpTarget, client: HttpClient) -> None:
        self._target = target
        self._client = client

    async def post(self, call: Call, message: Message, session_id: str | None) -> None:
        """Forward a message."""
        del session_id
        headers = self._headers(call, "application/json, text/event-stream")
        headers.append(("content-type", "application/json"))
        response = await self._call(call, "POST", headers, message.text)
        await self._answer(call, response, message)

    async def get(self, call: Call, session_id: str | None) -> None:
        """Forward the event stream; a server without one says 405 itself."""
        del session_id
        response = await self._call(call, "GET", self._headers(call, "text/event-stream"), None)
        await self._answer(call, response, None)

    async def delete(self, call: Call, session_id: str | None) -> None:
        """Forward the end of the session."""
        if session_id is None:
            raise McpFailure(400, "a session id is required")
        response = await self._call(call, "DELETE", self._headers(call, "application/json"), None)
        await self._answer(call, response, None)

    def _headers(self, call: Call, accept: str) -> list[tuple[str, str]]:
        policies = self._target.policies
        headers = [(name, value) for name, value in call.headers.items() if name.lower() not in NOT_FORWARDED]
        headers.append(("accept", accept))
        if policies.auth is not None:
            headers.append((policies.auth.header, policies.auth.prefix + policies.auth.key.secret.reveal()))
        return edited(headers, policies.request_headers)

    async def _call(self, call: Call, method: str, headers: list[tuple[str, str]], body: bytes | None) -> Response:
        timeout_ms = self._target.policies.request_timeout_ms
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                return await self._client.request(method, self._target.path, headers, body)
        except TimeoutError:
            raise McpFailure(504, "upstream call timeout", INTERNAL_ERROR) from None
        except OSError as error:
            raise McpFailure(503, f"upstream call failed: {error}", INTERNAL_ERROR) from error

    async def _answer(self, call: Call, response: Response, message: Message | None) -> None:
        """Give the client the server's answer: streams as they come, a JSON response as a stream of one event."""
        kind = (response.header("content-type") or "").split(";")[0].strip().lower()
        session = response.header(SESSION_HEADER)
        own = [] if session is None else [(SESSION_HEADER, session)]
        modifier = self._target.policies.response_headers
        try:
            if 200 <= response.status < 300 and kind == "text/event-stream":
                stream = call.stream(response.status, edited([*STREAM_HEADERS, *own], modifier))
                async for chunk in response:
                    await stream.send(chunk)
                await stream.end()
                return
            body = await response.read(MAX_BODY)
            is_request = message is not None and message.kind is Kind.REQUEST
            if 200 <= response.status < 300 and kind == "application/json" and is_request and body:
                stream = call.stream(200, edited([*STREAM_HEADERS, *own], modifier))
                await stream.send(encode_event(body, "message"))
                await stream.end()
                return
            returned = [(name, value) for name, value in response.headers if name.lower() not in NOT_RETURNED]
            call.reply(response.status, edited(returned, modifier), body)
        except ValueError as error:
            raise McpFailure(502, str(error), INTERNAL_ERROR) from error
        finally:
            with contextlib.suppress(OSError):
                await response.aclose()


def edited(headers: list[tuple[str, str]], modifier: HeaderModifier | None) -> list[tuple[str, str]]:
    """Return the fields after a header modifier: add, set, remove."""
    if modifier is None:
        return headers
    gone = {name.lower() for name, _ in modifier.set} | {name.lower() for name in modifier.remove}
    kept = [(name, value) for name, value in [*headers, *modifier.add] if name.lower() not in gone]
    removed = {name.lower() for name in modifier.remove}
    return kept + [(name, value) for name, value in modifier.set if name.lower() not in removed]
