from collections.abc import Iterable

from headgate_engine.context.headers import MessageHead
from headgate_engine.http2.hpack import HpackEncoder

NOT_IN_TRAILERS: frozenset[bytes]

def request_of(fields: Iterable[tuple[bytes, bytes]], extended: bool = False) -> MessageHead:
    """Return the head of a request with these (name, value) pairs; StreamFault if it is malformed."""

def response_of(fields: Iterable[tuple[bytes, bytes]]) -> MessageHead:
    """The same for a response."""

def trailers_of(fields: Iterable[tuple[bytes, bytes]]) -> MessageHead:
    """The same for trailers."""

def block_of(encoder: HpackEncoder, head: MessageHead, length: int = -1, upgrade: bool = False) -> bytes:
    """Return the header block of a request (to an http server) or, if it has a status, of a response."""
