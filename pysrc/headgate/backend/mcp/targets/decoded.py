"""Answers whose content coding is undone. No target is asked for one (no accept-encoding is sent), but there are caches
and servers that pack all the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from headgate.backend.contract import Response
from headgate_engine.wire.coding import CodingError, Decoder, name_of

# A few bytes can stand for gigabytes: what is unpacked at once is bounded by what goes in.
STEP: Final = 4096
PIECE: Final = 1024 * 1024
# What a packed body is described with, which the plain one is not.
OF_THE_CODING: Final = frozenset(("content-encoding", "content-length"))


class Decoded:
    """An answer in `coding`, plain."""

    def __init__(self, response: Response, coding: str) -> None:
        self._response = response
        self._coding = coding

    @property
    def status(self) -> int:
        """Its status."""
        return self._response.status

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Its fields, as far as they are true of the plain body."""
        return [field for field in self._response.headers if field[0].lower() not in OF_THE_CODING]

    def header(self, name: str) -> str | None:
        """Return the first field of a name."""
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
            raise OSError(f"the answer cannot be unpacked: {error}") from None
        if not (decoder.done or empty):
            raise OSError("the packed answer ends too early")

    async def read(self, limit: int) -> bytes:
        """Return the whole body; ValueError past `limit` bytes, OSError when it breaks off."""
        pieces: list[bytes] = []
        length = 0
        async for piece in self:
            length += len(piece)
            if length > limit:
                raise ValueError(f"response body is longer than {limit} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    async def aclose(self) -> None:
        """Let go of it."""
        await self._response.aclose()


def plain(response: Response) -> Response:
    """Return an answer without its coding; one in a coding that nobody knows as it is."""
    coding = name_of(response.header("content-encoding"))
    return Decoded(response, coding) if coding else response
