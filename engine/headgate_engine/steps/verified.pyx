"""Verified tokens; see verified.pxd."""

from itertools import islice

from headgate_engine.clock cimport monotonic_ns

from libc.stdint cimport int64_t

cdef enum:
    # Most checks of one token. Few configurations have more policies that differ.
    MAX_CHECKS = 16


cdef class VerifiedToken:
    pass


cdef class VerifiedTokens:
    """Tokens whose signatures a key set has verified: at most 16,384, and 32 MiB of them.

    Tokens are removed when they expire. If there is no room, the oldest quarter is removed.
    """
    def __cinit__(self):
        self.tokens = {}

    cdef VerifiedToken _living(self, bytes token):
        cdef VerifiedToken known = self.tokens.get(token)
        if known is not None and known.until_ns <= monotonic_ns():
            del self.tokens[token]
            self.size -= len(token)
            return None
        return known

    cdef dict accepted(self, bytes token, object checks):
        cdef VerifiedToken known = self._living(token)
        if known is not None:
            for one in known.accepted:
                if one is checks:
                    return known.claims
        return None

    def claims(self, bytes token not None):
        """Return the claims of a verified token, whatever they are. None if it is unknown or has expired."""
        cdef VerifiedToken known = self._living(token)
        return None if known is None else known.claims

    def remember(self, bytes token not None, dict claims not None, checks not None, double seconds):
        """Record that the claims of a verified token have passed `checks`, compared by identity.

        seconds: how long; 0 or less records nothing. A token that is already known keeps its time.
        """
        cdef VerifiedToken known
        if not seconds > 0:
            return
        known = self._living(token)
        if known is None:
            self._make_room(len(token))
            known = VerifiedToken.__new__(VerifiedToken)
            known.claims = claims
            known.until_ns = monotonic_ns() + <int64_t>(min(seconds, 1e6) * 1e9)
            known.accepted = []
            self.tokens[token] = known
            self.size += len(token)
        if len(known.accepted) >= MAX_CHECKS:
            del known.accepted[0]
        known.accepted.append(checks)

    cdef int _make_room(self, Py_ssize_t n) except -1:
        """If there is no room, remove the oldest quarter at once: removing one by one from a dict is slow."""
        while self.tokens and (len(self.tokens) >= MAX_TOKENS or self.size + n > MAX_BYTES):
            for token in list(islice(self.tokens, len(self.tokens) // 4 + 1)):
                del self.tokens[token]
                self.size -= len(<bytes>token)
        return 0

    def clear(self):
        """Remove all tokens, as the keys have changed."""
        self.tokens.clear()
        self.size = 0

    def __len__(self):
        return len(self.tokens)
