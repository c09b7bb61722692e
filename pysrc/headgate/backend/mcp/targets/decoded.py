"""Responses without their content coding. The gateway sends no Accept-Encoding, but some caches and servers compress
nevertheless.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from headgate.backend.contract import UpstreamResponse
from headgate_engine.wire.coding import CodingError, Decoder, name_of

# Input is decompressed in steps of this size, because a few bytes may expand to gigabytes.
STEP: Final = 4096
PIECE: Final = 1024 * 1024
# Fields that describe the compressed body.
OF_THE_CODING: Final = frozenset(("content-encoding", "content-length"))


class Decoded:
    """A response with the content coding `coding`, decompressed."""

    def __init__(self, response: UpstreamResponse, coding: str) -> None:
        self._response = response
        self._coding = coding

    @property
    def status(self) -> int:
        """Return the status."""
        return self._response.status

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Return the fields that are valid for the decompressed body."""
        return [field for field in self._response.headers if field[0].lower() not in OF_THE_CODING]

    def header(self, name: str) -> str | None:
        """Return the first field with this name, None without one."""
        return None if name.lower() in OF_THE_CODING else self._response.header(name)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        decoder = Decoder(self._coding)
        empty = True
        try:
            async for chunk in self._response:
                for at in range(0, len(chunk), STEP):
                    empty = False
                    for piece in decoder.decode(chunk[at : at + STEP], PIECE):
                        yield piece
        except CodingError as error:
            raise OSError(f"the response cannot be decompressed: {error}") from None
        if not (decoder.done or empty):
            raise OSError("the compressed response ends too early")

    async def read(self, limit: int) -> bytes:
        """Return the complete body; raises ValueError if it exceeds `limit` bytes, OSError if it is truncated."""
        pieces: list[bytes] = []
        length = 0
        async for piece in self:
            length += len(piece)
            if length > limit:
                raise ValueError(f"response body is longer than {limit} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    async def aclose(self) -> None:
        """Close the response."""
        await self._response.aclose()


def plain(response: UpstreamResponse) -> UpstreamResponse:
    """Return a response without its content coding; one with an unknown coding is unchanged."""
    coding = name_of(response.header("content-encoding"))
    return Decoded(response, coding) if coding else response
