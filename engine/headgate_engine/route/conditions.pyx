# cython: boundscheck=False
# Most indexes go into C arrays, whose bounds Cython cannot check; the few into lists are limited by their length.
"""Header and query conditions.

The names in the rules' conditions are numbered when the table is built. A request's head and query are read once, for
the first rule that needs them, so that a thousand rules on one path cost a thousand comparisons and one read.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr, memcmp, memset

from headgate_engine.context.headers cimport SPAN_DROPPED, HeaderSpan, MessageHead
from headgate_engine.route.index cimport KeyIndex
from headgate_engine.wire.scan cimport hex_value, lower


# Most bytes of a compiled pattern: RE2 takes 6 ms at most to fill them, in one call that holds the interpreter's lock.
PATTERN_MEMORY = 1 << 19
# Longest header name of a condition.
MAX_NAME = 255
PSEUDO = (":method", ":path", ":authority", ":scheme")

cdef enum Space:
    HEADER_NAMES = 0
    QUERY_NAMES = 1


def compile_pattern(str text):
    import re2  # 2.5 MB: loaded with the first pattern

    options = re2.Options()
    options.max_mem = PATTERN_MEMORY
    options.log_errors = False
    # Groups need no captures: a route needs to know only whether a value matches.
    options.never_capture = True
    if text.isascii():
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        return re2.compile(text.encode("utf-8"), options=options)
    except (re2.error, UnicodeEncodeError) as error:
        raise ValueError(f"pattern {text!r}: {_reason(error)}") from None


def _reason(error):
    detail = error.args[0] if error.args else error
    return detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(error)


cdef class ValuePredicate:
    def __init__(self, str name, str kind, str text):
        if kind not in ("exact", "regex"):
            raise ValueError(f"{kind!r} is no kind of match")
        self.name = name
        self.kind = kind
        self.text = text
        self.raw_name = name.encode()
        if kind == "exact":
            self.exact = text.encode()
        else:
            self.pattern = compile_pattern(text)

    cdef bint holds(self, const char* value, Py_ssize_t n) except -1:
        if self.pattern is None:
            return n == PyBytes_GET_SIZE(self.exact) and memcmp(value, PyBytes_AS_STRING(self.exact), n) == 0
        return self.pattern.fullmatch(value[:n] if n else b"") is not None


cdef class ConditionTable:
    def __init__(self, header_names, query_names, str scheme="http"):
        entries = []
        memset(self.header_lengths, 0, sizeof(self.header_lengths))
        self.headers = FIRST_HEADER
        for name in dict.fromkeys(name.lower().encode() for name in header_names):
            if name.startswith(b":"):
                if name.decode() not in PSEUDO:
                    raise ValueError(f"{name.decode()!r} is no pseudo-header: {', '.join(PSEUDO)}")
                entries.append((HEADER_NAMES, name, PSEUDO.index(name.decode())))
                continue
            if not 0 < len(name) <= MAX_NAME:
                raise ValueError(f"header names have 1..{MAX_NAME} bytes")
            self.header_lengths[len(<bytes>name)] = 1
            entries.append((HEADER_NAMES, name, self.headers))
            self.headers += 1
        for name in dict.fromkeys(name.encode() for name in query_names):
            entries.append((QUERY_NAMES, name, self.queries))
            self.queries += 1
        self.names = KeyIndex(entries)
        self.scheme = scheme.encode()

    cdef Condition compiled(self, ValuePredicate predicate, bint query) except *:
        cdef Condition condition
        cdef bytes name = predicate.raw_name if query else predicate.raw_name.lower()
        condition.slot = <uint32_t>self.names.find(QUERY_NAMES if query else HEADER_NAMES, name, len(name))
        condition.predicate = <PyObject*>predicate
        condition.exact = NULL
        condition.exact_len = 0
        if predicate.pattern is None:
            condition.exact = PyBytes_AS_STRING(predicate.exact)
            condition.exact_len = <uint32_t>len(predicate.exact)
        return condition

    cdef bint header_holds(self, const Condition* condition, Facts* facts, MessageHead head) except -1:
        cdef int32_t at
        cdef HeaderSpan* span
        if condition.slot < FIRST_HEADER:
            if condition.slot == PSEUDO_METHOD:
                return _holds(condition, head.data + head.method_off, head.method_len)
            if condition.slot == PSEUDO_PATH:
                return _holds(condition, head.data + head.target_off, head.target_len)
            if condition.slot == PSEUDO_AUTHORITY:
                return _holds(condition, head.data + head.authority_off, head.authority_len)
            return _holds(condition, self.scheme, len(self.scheme))
        if facts.first == NULL:
            self._read_headers(facts, head)
        at = facts.first[condition.slot]
        while at >= 0:
            span = &head.spans[at]
            if _holds(condition, head.data + span.value_off, span.value_len):
                return True
            at = facts.earlier[at]
        return False

    cdef bint query_holds(self, const Condition* condition, Facts* facts, MessageHead head) except -1:
        cdef ValueSpan* value
        if facts.values == NULL:
            self._read_query(facts, head)
        value = &facts.values[condition.slot]
        return value.text != NULL and _holds(condition, value.text, value.length)

    cdef int _read_headers(self, Facts* facts, MessageHead head) except -1:
        cdef char name[256]
        cdef uint32_t i
        cdef int32_t slot
        cdef int at
        cdef HeaderSpan* span
        facts.first = <int32_t*>malloc((self.headers + head.count) * sizeof(int32_t))
        if facts.first == NULL:
            raise MemoryError()
        facts.earlier = facts.first + self.headers
        memset(facts.first, 0xFF, self.headers * sizeof(int32_t))
        for at in range(head.count):
            span = &head.spans[at]
            if span.name_len > 255 or not self.header_lengths[span.name_len] or span.flags & SPAN_DROPPED:
                continue
            for i in range(span.name_len):
                name[i] = lower(head.data[span.name_off + i])
            slot = self.names.find(HEADER_NAMES, name, span.name_len)
            if slot >= 0:
                facts.earlier[at] = facts.first[slot]
                facts.first[slot] = at
        return 0

    cdef int _read_query(self, Facts* facts, MessageHead head) except -1:
        cdef Py_ssize_t room = self.queries * sizeof(ValueSpan)
        cdef const char* p = head.data + head.target_off + head.path_len
        cdef const char* end = head.data + head.target_off + head.target_len
        cdef const char* stop
        cdef const char* equals
        cdef char* out
        cdef Py_ssize_t n
        cdef int32_t slot
        # Decoding never makes a value longer, so all values fit into the target's length.
        facts.values = <ValueSpan*>calloc(1, room + (end - p) + 1)
        if facts.values == NULL:
            raise MemoryError()
        out = <char*>facts.values + room
        while p < end:
            p += 1                  # the '?' or '&' before the pair
            stop = <const char*>memchr(p, 38, end - p)
            if stop == NULL:
                stop = end
            if stop > p:
                equals = <const char*>memchr(p, 61, stop - p)
                if equals == NULL:
                    equals = stop
                n = _decoded(p, equals, out)
                slot = self.names.find(QUERY_NAMES, out, n)
                if slot >= 0:
                    n = _decoded(equals + 1, stop, out)
                    facts.values[slot].text = out
                    facts.values[slot].length = <uint32_t>n
                    out += n
            p = stop
        return 0


cdef bint _holds(const Condition* condition, const char* value, Py_ssize_t n) except -1:
    if condition.exact != NULL:
        return n == condition.exact_len and memcmp(value, condition.exact, n) == 0
    return (<ValuePredicate>condition.predicate).holds(value, n)


cdef Py_ssize_t _decoded(const char* p, const char* end, char* out) noexcept nogil:
    """Write p..end decoded as application/x-www-form-urlencoded (%XX and '+'). Invalid escapes stay unchanged."""
    cdef char* start = out
    while p < end:
        if p[0] == 37 and end - p > 2 and hex_value(p[1]) >= 0 and hex_value(p[2]) >= 0:
            out[0] = <char>(hex_value(p[1]) << 4 | hex_value(p[2]))
            p += 3
        else:
            out[0] = 32 if p[0] == 43 else p[0]
            p += 1
        out += 1
    return out - start


cdef void forget(Facts* facts) noexcept nogil:
    free(facts.first)
    free(facts.values)
    facts.first = NULL
    facts.values = NULL
