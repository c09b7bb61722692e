"""Values by keys that expressions make of requests; see keyed.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program
from headgate_engine.expr.values cimport Duration, Timestamp, Uint

from headgate_engine.expr.values import EvaluationError

cdef enum:
    # Characters of strings in a key. A longer one is none: a table of 10,000 of them has to stay small.
    MAX_KEY_LENGTH = 4096


cdef class KeptValue:
    pass


cdef class KeyedValues:
    """A table of at most `most` values. The least recently used one is dropped first."""

    def __cinit__(self):
        # For one that is made with __new__ alone.
        self.programs, self.kept = (), {}

    def __init__(self, programs, Py_ssize_t most, clock=None):
        cdef Program program
        cdef tuple given = tuple(programs)
        for program in given:
            if program is None:
                raise TypeError("a program is needed")
        # Only what was looked at: what is called later has no checks.
        self.programs = given
        self.most = most
        self.clock = clock
        self.kept = {}

    def __len__(self):
        return len(self.kept)

    cdef double now(self) except? -1:
        return monotonic_ns() * 1e-9 if self.clock is None else self.clock()

    def key(self, RequestContext ctx not None):
        """Return the key of a request, None if it has none: an expression fails or gives no scalar."""
        return self.key_of(ctx)

    cdef object key_of(self, RequestContext ctx):
        cdef list found = []
        cdef Py_ssize_t length = 0
        cdef object value
        try:
            for program in self.programs:
                value = (<Program>program).evaluate(ctx)
                if isinstance(value, str):
                    length += len(<str>value)
                elif isinstance(value, bytes):
                    length += len(<bytes>value)
                elif value is not None and not isinstance(value, (int, float, Uint, Duration, Timestamp)):
                    return None
                # 1, 1.0 and true are equal in Python.
                found.append(type(value))
                found.append(value)
        except EvaluationError:
            return None
        return tuple(found) if found and length <= MAX_KEY_LENGTH else None

    def get(self, tuple key not None):
        """Return a value that is still good. None: the caller makes one, and stores it."""
        cdef KeptValue found = <KeptValue>self.kept.get(key)
        cdef double now
        if found is None:
            return None
        now = self.now()
        if now >= found.until:
            del self.kept[key]
            return None
        if found is not self.newest:
            del self.kept[key]
            self.kept[key] = self.newest = found
        if now >= found.renew:
            # Others use it meanwhile, and until it ends if this attempt fails.
            found.renew = found.until
            return None
        return found.value

    def held(self, tuple key not None):
        """Return a value that is still good, for one that could not renew it; None: there is none."""
        cdef KeptValue found = <KeptValue>self.kept.get(key)
        return found.value if found is not None and self.now() < found.until else None

    def keep(self, tuple key not None, value, double seconds, double margin):
        """Store a value for so many seconds. In the last `margin` of them, one request renews it."""
        cdef KeptValue made = KeptValue.__new__(KeptValue)
        made.value = value
        made.until = self.now() + seconds
        made.renew = made.until - margin
        self.kept.pop(key, None)
        while len(self.kept) >= self.most:
            del self.kept[next(iter(self.kept))]
        self.kept[key] = self.newest = made

    def drop(self, tuple key not None):
        """Forget a value, if there is one."""
        self.kept.pop(key, None)
