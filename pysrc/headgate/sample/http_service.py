"""A small HTTP service: `/` says hello, `/status/N`, `/delay/MS`, `/bytes/N`, `/stream/N`, any other path is echoed."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator

from headgate.sample.web import SampleRequest, SampleResponse, end_with_parent, run

MAX_BYTES = 1 << 30
PIECE = 65536


async def handle(request: SampleRequest) -> SampleResponse:
    """Answer one request."""
    parts = request.path.strip("/").split("/")
    number = int(parts[1]) if len(parts) == 2 and parts[1].isdecimal() else None
    if request.path == "/":
        return SampleResponse(body=b"hello from the sample HTTP service\n", content_type="text/plain")
    if number is not None and parts[0] == "status" and 200 <= number <= 599:
        return SampleResponse(
            status=number, body=b"" if number in (204, 304) else b"%d\n" % number, content_type="text/plain"
        )
    if number is not None and parts[0] == "delay":
        await asyncio.sleep(min(number, 60_000) / 1000)
        return SampleResponse(body=b"late\n", content_type="text/plain")
    if number is not None and parts[0] == "bytes" and number <= MAX_BYTES:
        return SampleResponse(content_type="application/octet-stream", stream=_bytes(number))
    if number is not None and parts[0] == "stream":
        return SampleResponse(content_type="text/plain", stream=_lines(min(number, 100_000)))
    return SampleResponse(body=json.dumps(echo(request), indent=2).encode() + b"\n")


def echo(request: SampleRequest) -> dict[str, object]:
    """Return the request as an object, for the echo."""
    return {
        "method": request.method,
        "target": request.target,
        "headers": request.headers,
        "body": request.body.decode("utf-8", "replace"),
    }


async def _bytes(count: int) -> AsyncIterator[bytes]:
    while count > 0:
        yield b"x" * min(PIECE, count)
        count -= PIECE


async def _lines(count: int) -> AsyncIterator[bytes]:
    for number in range(count):
        yield b"line %d\n" % number
        await asyncio.sleep(0)


def main() -> None:
    """Run `python -m headgate.sample.http_service`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--end-with-parent", action="store_true")
    options = parser.parse_args()
    if options.end_with_parent:
        end_with_parent()
    asyncio.run(run([("http", handle, options.host, options.port)]))


if __name__ == "__main__":
    main()
