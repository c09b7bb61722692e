"""Posts a message to an HTTP receiver that the operator has named, from a process on asyncio's own loop (h11)."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import h11

READ_SIZE: Final = 16384
# Of the head of an answer.
MOST_HEAD: Final = 65536
PORTS: Final = {"http": 80, "https": 443}


class WebhookFailure(Exception):
    """The receiver could not be reached, or did not answer in time; the text does not have the path of the URL."""


async def post(url: str, headers: Sequence[tuple[str, str]], body: bytes, seconds: float) -> int:
    """Return the status of the answer; its body is not read. It takes `seconds` at most. Raises WebhookFailure."""
    try:
        async with asyncio.timeout(seconds):
            return await _post(url, headers, body)
    except TimeoutError:
        raise WebhookFailure(f"no answer within {seconds:g} seconds") from None
    except (OSError, h11.ProtocolError) as error:
        raise WebhookFailure(f"{type(error).__name__}: {error}") from None
    except UnicodeError:
        raise WebhookFailure("the host's name has a label that is empty or too long") from None


async def _post(url: str, headers: Sequence[tuple[str, str]], body: bytes) -> int:
    parts = urlsplit(url)
    assert parts.hostname is not None
    port = parts.port or PORTS[parts.scheme]
    context = await asyncio.to_thread(ssl.create_default_context) if parts.scheme == "https" else None
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=context)
    try:
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        fields = [("host", parts.netloc), ("content-length", str(len(body))), ("connection", "close"), *headers]
        request = h11.Request(method="POST", target=target, headers=fields)
        events = (request, h11.Data(data=body), h11.EndOfMessage())
        writer.write(b"".join(connection.send(event) or b"" for event in events))
        await writer.drain()
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Response):
                return int(event.status_code)
            if event is h11.NEED_DATA:
                connection.receive_data(await reader.read(READ_SIZE))
            elif isinstance(event, h11.ConnectionClosed):
                raise h11.RemoteProtocolError("the connection ended without an answer")
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
