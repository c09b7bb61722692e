"""Verified tokens; see verified.pxd."""

from itertools import islice

from headgate_engine.clock cimport monotonic_ns

from libc.stdint cimport int64_t

cdef enum:
    # Checks of one token; more than that many policies differ seldom.
    MAX_CHECKS = 16


cdef class VerifiedToken:
    pass


cdef class VerifiedTokens:
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
        """The claims of a token that was verified, whatever they say."""
        cdef VerifiedToken known = self._living(token)
        return None if known is None else known.claims

    def remember(self, bytes token not None, dict claims not None, checks not None, double seconds):
        """Notes that the claims have passed these checks. A token that is known keeps the time it has."""
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
        """Forgets a quarter, the oldest, when all places are taken; none by none would go over the same gaps each time."""
        while self.tokens and (len(self.tokens) >= MAX_TOKENS or self.size + n > MAX_BYTES):
            for token in list(islice(self.tokens, len(self.tokens) // 4 + 1)):
                del self.tokens[token]
                self.size -= len(<bytes>token)
        return 0

    def clear(self):
        self.tokens.clear()
        self.size = 0

    def __len__(self):
        return len(self.tokens)

    @property
    def bytes_kept(self):
        return self.size
