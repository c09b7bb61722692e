"""Decoders of content codings; see coding.pxd.

A few bytes can decode to gigabytes, so no step returns more than its caller's limit: the caller counts and stops.
Several gzip members or zstd frames in a row are one body (RFC 1952 section 2.2, RFC 8878 section 3.1). The window of
zstd is that of RFC 9659 section 3.1, 8 MiB.

A member has costs of its own, also one that is empty, so a body may have only as many as its output explains. Input is
given to the libraries in pieces: they copy what they leave over.
"""

import zlib

CODINGS = ("gzip", "deflate", "br", "zstd")
ALIASES = {"x-gzip": "gzip"}
# First byte of a member, for codings whose bodies may have several members. Bytes behind the end of a member belong to
# the body only if they begin with it.
MEMBERS = {"gzip": b"\x1f", "zstd": b"\x28"}
STEP = 65536
# Input for one call of a library: this much, and for members behind the first one less at their beginning.
PIECE = 65536
FIRST_PIECE = 512
# Members that a body may have, and one more for each so many bytes of output.
MAX_MEMBERS = 1024
BYTES_PER_MEMBER = 256
WINDOW_LOG = 23


class CodingError(ValueError):
    """The bytes do not match their coding, or end too early."""


class DecodedTooLong(CodingError):
    """The decoded body is longer than the limit."""


class _Inflated:
    """gzip and deflate with zlib. deflate is RFC 1950, or, as some servers send it, without the zlib header.

    holds: it keeps input that the limit stopped, and wants no more before that is used up; otherwise `left` has it.
    """

    holds = False

    def __init__(self, wbits):
        self._wbits = wbits
        self._work = None
        self.unused = b""
        self.left = b""

    def take(self, data, limit):
        if self._work is None:
            raw = self._wbits == zlib.MAX_WBITS and data[0] & 15 != 8
            self._work = zlib.decompressobj(wbits=-zlib.MAX_WBITS if raw else self._wbits)
        found = self._work.decompress(data, limit)
        self.left, self.unused = self._work.unconsumed_tail, self._work.unused_data
        return found

    @property
    def ended(self):
        return self._work is not None and self._work.eof


class _Brotli:
    """RFC 7932."""

    holds = True
    unused = left = b""

    def __init__(self):
        import brotli

        self._work = brotli.Decompressor()
        self._fault = brotli.error

    def take(self, data, limit):
        try:
            return self._work.process(data, output_buffer_limit=limit)
        except self._fault as error:
            raise CodingError(str(error)) from None

    @property
    def ended(self):
        return self._work.is_finished()


class _Zstandard:
    """RFC 8878."""

    holds = True
    left = b""

    def __init__(self):
        try:
            from compression import zstd      # Python 3.14
        except ImportError:
            from backports import zstd

        self._work = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW_LOG})
        self._fault = zstd.ZstdError

    def take(self, data, limit):
        try:
            return self._work.decompress(data, limit)
        except self._fault as error:
            raise CodingError(str(error)) from None

    @property
    def ended(self):
        return self._work.eof

    @property
    def unused(self):
        return self._work.unused_data if self._work.eof else b""


def _begun(coding):
    if coding == "gzip":
        return _Inflated(16 + zlib.MAX_WBITS)
    if coding == "deflate":
        return _Inflated(zlib.MAX_WBITS)
    return _Brotli() if coding == "br" else _Zstandard()


cdef str coding_of(value):
    if value is None:
        return None
    name = value.strip().lower()
    if name in ("", "identity"):
        return None
    name = ALIASES.get(name, name)
    return name if name in CODINGS else ""


cdef class Decoder:
    def __init__(self, str coding not None):
        if coding not in CODINGS:
            raise ValueError(f"coding {coding!r}")
        self.coding = coding
        self.rest = b""
        self.piece = PIECE
        self.members = 1
        self.work = _begun(coding)

    cdef int feed(self, bytes data) except -1:
        self.rest = self.rest[self.at:] + data if self.at < len(self.rest) else data
        self.at = 0
        return 0

    cdef bytes next(self, Py_ssize_t limit):
        cdef bytes data, found
        while self.at < len(self.rest) or self.more:
            if self.done and not self._another():
                return b""
            data = b"" if self.more and self.work.holds else self.rest[self.at:self.at + self.piece]
            self.at += len(data)
            self.given += len(data)
            self.piece = min(self.piece * 2, PIECE)
            try:
                found = self.work.take(data, limit)
            except zlib.error as error:
                raise CodingError(str(error)) from None
            self.produced += len(found)
            # If the limit cut the output, the next piece needs no input.
            self.more = len(found) >= limit
            if self.work.ended:
                self.done, self.more = True, False
                self.at -= len(self.work.unused)
            else:
                self.at -= len(self.work.left)
            if found:
                return found
        return b""

    cdef bint _another(self) except -1:
        """Begin the next member. Return False if there is none."""
        cdef bytes first = MEMBERS.get(self.coding)
        if self.work is None or first is None or self.rest[self.at] != first[0]:
            # Not a member of this coding: these bytes and all later ones are ignored.
            self.rest, self.work, self.at = b"", None, 0
            return False
        self.members += 1
        if self.members > MAX_MEMBERS + self.produced // BYTES_PER_MEMBER:
            raise CodingError("the body has too many members")
        self.work = _begun(self.coding)
        self.piece = FIRST_PIECE
        self.done = False
        return True

    # -- Python face ---------------------------------------------------------------------------------------------------
    def decode(self, bytes data not None, Py_ssize_t limit):
        """Return the decoded input in pieces of at most `limit` bytes (a few more with br). Raises CodingError."""
        self.feed(data)
        found = []
        while piece := self.next(limit):
            found.append(piece)
        return found


cdef bytes decoded(str coding, bytes body, Py_ssize_t limit):
    cdef Decoder decoder = Decoder(coding)
    cdef Py_ssize_t length = 0
    cdef list found = []
    cdef bytes piece
    decoder.feed(body)
    while True:
        piece = decoder.next(STEP)
        if not piece:
            break
        length += len(piece)
        if length > limit:
            raise DecodedTooLong(f"more than {limit} bytes")
        found.append(piece)
    if not decoder.done:
        raise CodingError("the body ends too early")
    return b"".join(found)


def decode(str coding not None, bytes body not None, Py_ssize_t limit):
    """Return the whole decoded body. Raises CodingError, or DecodedTooLong past `limit` bytes."""
    return decoded(coding, body, limit)


def name_of(value):
    """Return the single coding of a content-encoding, None without one, "" for several and for unknown ones."""
    return coding_of(value)
