"""Sessions of an MCP server, opened before a run and closed behind it (StreamableHTTP, revision 2025-06-18)."""

from __future__ import annotations

import contextlib
import http.client
import json
from typing import Any, Final

from headgate.capacity.errors import BenchError
from headgate.capacity.transport import Trust, python_context
from headgate.capacity.workload import JSON, PROTOCOL, RPC_ACCEPT, Fields, TargetPlace

TIMEOUT: Final = 30.0
_HELLO: Final[dict[str, Any]] = {
    "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "headgate-bench", "version": "1"},
}  # fmt: skip


class BenchSession:
    """One session. `id` is None where the server keeps none."""

    def __init__(self, place: TargetPlace, fields: Fields, trust: Trust) -> None:
        self.place, self.fields, self.trust = place, fields, trust
        self.id: str | None = None
        self.greeted = False
        self._number = 0

    def open(self) -> None:
        """Introduce ourselves. Raises BenchError."""
        _, headers = self._call("initialize", _HELLO)
        self.id = headers.get("mcp-session-id")
        self.greeted = True
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools of the first page. Raises BenchError."""
        result, _ = self._call("tools/list", {})
        found: list[dict[str, Any]] = result.get("tools", [])
        return found

    def close(self) -> None:
        """End the session, as far as the server lets us."""
        if self.id is not None:
            with contextlib.suppress(OSError, http.client.HTTPException, BenchError):
                self._request("DELETE", None)

    def _call(self, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], http.client.HTTPMessage]:
        self._number += 1
        body, headers = self._post({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        message = _response(body, headers.get("content-type", ""), self._number)
        if message is None:
            raise BenchError(f"{self.place.shown}: no answer to {method}: is this an MCP server?")
        if "error" in message:
            raise BenchError(f"{self.place.shown}: {method}: {message['error'].get('message', message['error'])}")
        return message["result"], headers

    def _post(self, message: dict[str, Any]) -> tuple[bytes, http.client.HTTPMessage]:
        try:
            status, body, headers = self._request("POST", json.dumps(message))
        except (OSError, http.client.HTTPException) as error:
            raise BenchError(f"{self.place.shown}: {error or type(error).__name__}") from None
        if status >= 300:
            words = body[:200].decode(errors="replace")
            raise BenchError(f"{self.place.shown}: {message['method']} was answered with status {status}: {words}")
        return body, headers

    def _request(self, method: str, body: str | None) -> tuple[int, bytes, http.client.HTTPMessage]:
        place = self.place
        connection: http.client.HTTPConnection
        if place.secure:
            connection = http.client.HTTPSConnection(
                place.host, place.port, timeout=TIMEOUT, context=python_context(self.trust)
            )
        else:
            connection = http.client.HTTPConnection(place.host, place.port, timeout=TIMEOUT)
        fields = dict((*self.fields, JSON, RPC_ACCEPT))
        if self.greeted:
            fields["mcp-protocol-version"] = PROTOCOL
        if self.id is not None:
            fields["mcp-session-id"] = self.id
        with contextlib.closing(connection):
            connection.request(method, place.target, body, fields)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers


def _response(body: bytes, kind: str, number: int) -> dict[str, Any] | None:
    """Return the response with this id, from JSON or from the events of a stream."""
    if kind.startswith("text/event-stream"):
        texts = [event[5:] for event in body.replace(b"\r\n", b"\n").split(b"\n") if event.startswith(b"data:")]
    else:
        texts = [body]
    for text in texts:
        try:
            message = json.loads(text)
        except ValueError:
            continue
        if isinstance(message, dict) and message.get("id") == number:
            return message
    return None
