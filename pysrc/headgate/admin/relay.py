"""Sends one request for the page to one of the gateway's own ports over loopback; the browser may not send it itself.

The page names a port of the running configuration, never an address, so this server is no open proxy. The response is
sent as lines of JSON: its head, chunks of its body as text, and how it ended. Nothing that the browser sent to the
admin server (cookies, credentials) is forwarded, and no header of the response becomes a header of the admin server's
response.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import re
import ssl
from collections.abc import AsyncGenerator
from typing import Any, Final, NamedTuple

import h11

from headgate.ir.bind import Bind
from headgate.ir.gateway import Gateway
from headgate_engine.context.field_names import FORWARDED, PROXY_AUTHORIZATION, REQUEST_FRAMING, X_FORWARDED

TYPE: Final = "application/x-ndjson"
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
# Hop-by-hop fields, and fields that only the browser or a proxy may set.
REFUSED: Final = REQUEST_FRAMING | {"expect", "cookie", "origin", FORWARDED, PROXY_AUTHORIZATION}
REFUSED_START: Final = (X_FORWARDED, "sec-", "x-envoy-")
MAX_HEADERS: Final = 32
MAX_TARGET: Final = 8192
MAX_ANSWER: Final = 8 * 1024 * 1024
MAX_AT_ONCE: Final = 16
CONNECT_SECONDS: Final = 5.0
# A model may need minutes before its first token.
SILENCE_SECONDS: Final = 300.0
TOTAL_SECONDS: Final = 900.0
READ_SIZE: Final = 65536
_HOST: Final = re.compile(r"[A-Za-z0-9.\-_]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
_TARGET: Final = re.compile(r"/[!-~]*")
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_VALUE: Final = re.compile(r"[\x20-\x7e\t]{0,8192}")
_KNOWN: Final = frozenset(("bind", "method", "path", "host", "headers", "body"))


class InvalidRelayRequest(ValueError):
    """The page requests something that is not allowed; the argument gives the reason."""


class RelayRequest(NamedTuple):
    """The request to send."""

    bind: Bind
    method: str
    target: str
    host: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


def read_relay_request(text: bytes, gateway: Gateway) -> RelayRequest:
    """Return the request that the body of a relay request describes; raises InvalidRelayRequest."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRelayRequest("the body is not JSON") from None
    if not isinstance(document, dict) or not document.keys() <= _KNOWN:
        raise InvalidRelayRequest(f"expected an object with {', '.join(sorted(_KNOWN))}")
    bind = next((one for one in gateway.binds if one.key == document.get("bind")), None)
    if bind is None:
        raise InvalidRelayRequest("bind: no such port in the running configuration")
    method = _text(document, "method", "GET")
    if method not in METHODS:
        raise InvalidRelayRequest(f"method: one of {', '.join(METHODS)}")
    target = _text(document, "path", "/")
    if len(target) > MAX_TARGET or _TARGET.fullmatch(target) is None:
        raise InvalidRelayRequest("path: must begin with a slash, without spaces or control characters")
    host = _text(document, "host", "localhost")
    if _HOST.fullmatch(host) is None:
        raise InvalidRelayRequest("host: not a host name")
    body = _text(document, "body", "").encode()
    return RelayRequest(bind, method, target, host, _headers(document.get("headers", {})), body)


def _text(document: dict[str, Any], key: str, default: str) -> str:
    value = document.get(key, default)
    if not isinstance(value, str):
        raise InvalidRelayRequest(f"{key}: expected a text")
    return value


def _headers(found: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(found, dict) or len(found) > MAX_HEADERS:
        raise InvalidRelayRequest(f"headers: expected an object with at most {MAX_HEADERS} strings")
    for name, value in found.items():
        if not isinstance(value, str) or _TOKEN.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise InvalidRelayRequest("headers: a name or value cannot be sent")
        if name.lower() in REFUSED or name.lower().startswith(REFUSED_START):
            raise InvalidRelayRequest(f"headers: {name.lower()} cannot be sent")
    return tuple((name.lower(), value) for name, value in found.items())


async def relay(request: RelayRequest) -> AsyncGenerator[bytes, None]:
    """Yield the lines of the response; the last line has `end` or `error`."""
    try:
        async with asyncio.timeout(TOTAL_SECONDS):
            async with contextlib.aclosing(_exchange(request)) as lines:
                async for line in lines:
                    yield _line(line)
    except TimeoutError:
        yield _line({"error": "the gateway did not answer in time"})
    except (OSError, h11.ProtocolError) as error:
        yield _line({"error": f"no answer from port {request.bind.port}: {error}"})


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


async def _exchange(request: RelayRequest) -> AsyncGenerator[dict[str, Any], None]:
    async with asyncio.timeout(CONNECT_SECONDS):
        reader, writer = await _connect(request)
    try:
        connection = h11.Connection(h11.CLIENT)
        writer.write(_request(connection, request))
        await writer.drain()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        size = 0
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                async with asyncio.timeout(SILENCE_SECONDS):
                    connection.receive_data(await reader.read(READ_SIZE))
            elif isinstance(event, h11.Response):
                headers = [[name.decode("ascii"), value.decode("latin-1")] for name, value in event.headers]
                yield {"status": event.status_code, "headers": headers}
            elif isinstance(event, h11.Data):
                size += len(event.data)
                if size > MAX_ANSWER:
                    yield {"error": f"the answer is longer than {MAX_ANSWER} bytes"}
                    return
                text = decoder.decode(bytes(event.data))
                if text:
                    yield {"data": text}
            elif isinstance(event, h11.EndOfMessage):
                rest = decoder.decode(b"", final=True)
                yield {"end": True, **({"data": rest} if rest else {})}
                return
            elif not isinstance(event, h11.InformationalResponse):
                yield {"error": "the gateway closed the connection"}
                return
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _request(connection: h11.Connection, request: RelayRequest) -> bytes:
    fields = [("host", request.host), *request.headers, ("connection", "close")]
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        fields.append(("content-length", str(len(request.body))))
    head = connection.send(h11.Request(method=request.method, target=request.target, headers=fields)) or b""
    body = (connection.send(h11.Data(data=request.body)) or b"") if request.body else b""
    return head + body + (connection.send(h11.EndOfMessage()) or b"")


async def _connect(request: RelayRequest) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to the port. The certificate is not verified: it is for another name, and the port is local."""
    if not request.bind.tls:
        return await asyncio.open_connection("127.0.0.1", request.bind.port)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    name = request.host if request.host.startswith("[") else request.host.partition(":")[0]
    return await asyncio.open_connection("127.0.0.1", request.bind.port, ssl=context, server_hostname=name.strip("[]"))
