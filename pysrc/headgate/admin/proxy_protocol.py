"""The PROXY protocol header before a request. Load balancers also send it with their health checks.

The server does not need the client's address, so it skips the header. Format, versions 1 and 2:
https://github.com/haproxy/haproxy/blob/master/doc/proxy-protocol.txt
"""

from __future__ import annotations

import asyncio
from typing import Final

SECONDS: Final = 5.0
SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
TEXT: Final = b"PROXY "
MAX_TEXT: Final = 107
HEAD: Final = 16
READ_SIZE: Final = 8192
VERSION: Final = 2


def header_length(data: bytes) -> int | None:
    """Return the length of the header at the beginning in bytes (0: no header), None if it needs more data.

    Raises ValueError for a malformed header.
    """
    if len(data) < len(SIGNATURE) and SIGNATURE.startswith(data):
        return None
    if data.startswith(SIGNATURE):
        if len(data) < HEAD:
            return None
        if data[12] >> 4 != VERSION:
            raise ValueError("a header of another version")
        whole = HEAD + int.from_bytes(data[14:HEAD], "big")
        return whole if len(data) >= whole else None
    if len(data) < len(TEXT) and TEXT.startswith(data):
        return None
    if not data.startswith(TEXT):
        return 0
    end = data.find(b"\r\n", 0, MAX_TEXT)
    if end < 0 and len(data) >= MAX_TEXT:
        raise ValueError("a header without an end")
    return None if end < 0 else end + 2


async def skip_header(reader: asyncio.StreamReader) -> bytes:
    """Read a header, if there is one, and return the data after it.

    Raises ConnectionAbortedError for a malformed header, and TimeoutError.
    """
    data = b""
    async with asyncio.timeout(SECONDS):
        while True:
            chunk = await reader.read(READ_SIZE)
            data += chunk
            try:
                length = header_length(data) if data else 0
            except ValueError as error:
                raise ConnectionAbortedError(str(error)) from None
            if length is not None or not chunk:
                return data[length or 0 :]
