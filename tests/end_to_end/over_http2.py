"""Has the Python clients of the end-to-end tests speak HTTP/2 to gateways: the tables that are written for HTTP/1.1 hold over
both. `HEADGATE_HTTP2=1` in the environment (`make test-http2`) switches it on; a test whose subject is HTTP/1.1 itself is
marked `http1`, or uses sockets of its own.

Clients of httpx, and with it the vendors' own, choose the version by the port: gateways by prior knowledge (RFC 9113, section
3.3), everything else as before.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import Any

WANTED = os.environ.get("HEADGATE_HTTP2") == "1"
# Ports of gateways on which requests arrive.
PORTS: set[int] = set()


def speak(ports: set[int] = PORTS) -> None:
    """Send the requests for these ports over HTTP/2, in this process and from now on."""
    for name in ("httpx", "httpx2"):
        try:
            client = importlib.import_module(name)
        except ImportError:
            continue
        _change(client, ports)


def _change(client: ModuleType, ports: set[int]) -> None:
    class Synchronous(client.HTTPTransport):  # type: ignore[misc,name-defined]
        def handle_request(self, request: Any) -> Any:
            return plain_request(self, request)

    class Asynchronous(client.AsyncHTTPTransport):  # type: ignore[misc,name-defined]
        async def handle_async_request(self, request: Any) -> Any:
            return await plain_async_request(self, request)

    def chosen(transport: Any, request: Any, kind: Any) -> Any:
        if request.url.scheme != "http" or request.url.port not in ports or "upgrade" in request.headers:
            return None
        if "_over_http2" not in transport.__dict__:
            transport._over_http2 = kind(http1=False, http2=True)
        return transport._over_http2

    def handle(transport: Any, request: Any) -> Any:
        other = None if isinstance(transport, Synchronous) else chosen(transport, request, Synchronous)
        return plain_request(transport, request) if other is None else other.handle_request(request)

    async def handle_async(transport: Any, request: Any) -> Any:
        other = None if isinstance(transport, Asynchronous) else chosen(transport, request, Asynchronous)
        if other is None:
            return await plain_async_request(transport, request)
        return await other.handle_async_request(request)

    def leave(transport: Any, *raised: Any) -> None:
        plain_exit(transport, *raised)
        close_other(transport)

    async def leave_async(transport: Any, *raised: Any) -> None:
        await plain_async_exit(transport, *raised)
        await close_other_async(transport)

    def close(transport: Any) -> None:
        plain_close(transport)
        close_other(transport)

    async def close_async(transport: Any) -> None:
        await plain_async_close(transport)
        await close_other_async(transport)

    def close_other(transport: Any) -> None:
        if "_over_http2" in transport.__dict__:
            transport._over_http2.close()

    async def close_other_async(transport: Any) -> None:
        if "_over_http2" in transport.__dict__:
            await transport._over_http2.aclose()

    one, many = client.HTTPTransport, client.AsyncHTTPTransport
    plain_request, plain_async_request = one.handle_request, many.handle_async_request
    plain_exit, plain_async_exit = one.__exit__, many.__aexit__
    plain_close, plain_async_close = one.close, many.aclose
    one.handle_request, many.handle_async_request = handle, handle_async
    one.__exit__, many.__aexit__ = leave, leave_async
    one.close, many.aclose = close, close_async
