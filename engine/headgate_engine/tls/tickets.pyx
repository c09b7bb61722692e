"""Keys of session tickets; see tickets.pxd."""

from headgate_engine.clock cimport wall_ns

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy, memset

import hmac

cdef enum:
    SECRET_SIZE = 32
    # Periods that are gone through one by one: most of a year, in 5 ms. A clock that was never set goes ahead by decades.
    MOST_STEPS = 4096


cdef bytes _from(bytes secret, bytes what):
    return hmac.digest(secret, what, "sha256")


cdef class TicketKeys:
    """Keys of session tickets.

    secret: 32 bytes, that of the period `number`. A period lasts `period_s` seconds; a ticket is taken in its own period
    and in the next one.
    """

    def __init__(self, bytes secret not None, int64_t number, int64_t period_s=7200):
        if len(secret) != SECRET_SIZE or period_s <= 0:
            raise ValueError("a secret of 32 bytes and a period are needed")
        self.period_s = period_s
        self.number = number
        self.secret = secret
        self._derive()
        # Nobody has a ticket of an earlier period: its secret is not known here.
        self.previous = self.current

    def __dealloc__(self):
        memset(&self.current, 0, sizeof(TicketKey))
        memset(&self.previous, 0, sizeof(TicketKey))

    @staticmethod
    def number_now(int64_t period_s=7200):
        return wall_ns() // 1000000000 // period_s

    def given(self):
        self.advance(wall_ns() // 1000000000)
        return self.number, self.secret

    cdef int _derive(self) except -1:
        cdef bytes name = _from(self.secret, b"name")
        cdef bytes cipher = _from(self.secret, b"cipher")
        cdef bytes mac = _from(self.secret, b"mac")
        memcpy(self.current.name, PyBytes_AS_STRING(name), 16)
        memcpy(self.current.cipher, PyBytes_AS_STRING(cipher), 32)
        memcpy(self.current.mac, PyBytes_AS_STRING(mac), 32)
        return 0

    cdef int advance(self, int64_t now_s) except -1:
        cdef int64_t wanted, first = self.number
        if self.secret is None:
            raise ValueError("no secret")
        wanted = now_s // self.period_s
        if self.number >= wanted:
            return 0
        if wanted - self.number > MOST_STEPS:
            # Processes that are in one period now, and see that clock in one period, still have the same keys.
            self.secret = _from(self.secret, b"period %d" % wanted)
            self.number = wanted
            self._derive()
            self.previous = self.current
            return 0
        while self.number < wanted:
            if self.number == wanted - 1:
                if self.number != first:
                    self._derive()
                self.previous = self.current
            self.secret = _from(self.secret, b"next")
            self.number += 1
        return self._derive()

    cdef TicketKey* find(self, const unsigned char* name) noexcept:
        if memcmp(name, self.current.name, 16) == 0:
            return &self.current
        if memcmp(name, self.previous.name, 16) == 0:
            return &self.previous
        return NULL
