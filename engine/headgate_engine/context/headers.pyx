# cython: boundscheck=False
"""Message heads as spans; see headers.pxd.

boundscheck is off: bytes and spans are C memory, and the offsets come from the parser that filled it.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stdint cimport uint32_t
from libc.string cimport memchr, memcpy

from headgate_engine.wire.block cimport is_value
from headgate_engine.wire.scan cimport IS_TARGET, IS_TOKEN, IS_VALUE, all_of, is_name, same_lower

cdef enum:
    FIRST_DATA = 1024
    FIRST_SPANS = 24
    # Largest buffers that are reused for another head.
    KEEP_DATA = 16384
    KEEP_SPANS = 256
    MAX_DATA = 16777216
    MAX_SPARE = 128

# Only the memory of freed heads is reused, never a head that may still be referenced.
cdef struct HeadMemory:
    char* data
    HeaderSpan* spans
    uint32_t capacity
    int span_capacity

cdef HeadMemory _spare[MAX_SPARE]
cdef int _spare_count = 0


cdef void drop_underscores(MessageHead head) noexcept:
    cdef HeaderSpan* span
    cdef int i
    for i in range(head.count):
        span = &head.spans[i]
        # No known name has one.
        if span.id == 0 and memchr(head.data + span.name_off, c'_', span.name_len) != NULL:
            span.flags |= SPAN_DROPPED


cdef MessageHead new_head():
    return MessageHead.__new__(MessageHead)


cdef int header_id_of(const char* name, Py_ssize_t n) noexcept nogil:
    if n == 2:
        return H_TE if same_lower(name, b"te", 2) else H_OTHER
    if n == 4:
        if is_name(name, b"host", 4):
            return H_HOST
        return H_DATE if is_name(name, b"date", 4) else H_OTHER
    if n == 6:
        if is_name(name, b"accept", 6):
            return H_ACCEPT
        if is_name(name, b"cookie", 6):
            return H_COOKIE
        if is_name(name, b"expect", 6):
            return H_EXPECT
        return H_SERVER if is_name(name, b"server", 6) else H_OTHER
    if n == 7:
        if is_name(name, b"trailer", 7):
            return H_TRAILER
        return H_UPGRADE if is_name(name, b"upgrade", 7) else H_OTHER
    if n == 10:
        if is_name(name, b"connection", 10):
            return H_CONNECTION
        if is_name(name, b"user-agent", 10):
            return H_USER_AGENT
        if is_name(name, b"set-cookie", 10):
            return H_SET_COOKIE
        return H_KEEP_ALIVE if is_name(name, b"keep-alive", 10) else H_OTHER
    if n == 12:
        return H_CONTENT_TYPE if is_name(name, b"content-type", 12) else H_OTHER
    if n == 13:
        return H_AUTHORIZATION if is_name(name, b"authorization", 13) else H_OTHER
    if n == 14:
        return H_CONTENT_LENGTH if is_name(name, b"content-length", 14) else H_OTHER
    if n == 16:
        if is_name(name, b"content-encoding", 16):
            return H_CONTENT_ENCODING
        return H_PROXY_CONNECTION if is_name(name, b"proxy-connection", 16) else H_OTHER
    if n == 17:
        return H_TRANSFER_ENCODING if is_name(name, b"transfer-encoding", 17) else H_OTHER
    if n == 18:
        return H_PROXY_AUTHENTICATE if is_name(name, b"proxy-authenticate", 18) else H_OTHER
    if n == 19:
        return H_PROXY_AUTHORIZATION if is_name(name, b"proxy-authorization", 19) else H_OTHER
    return H_OTHER


@cython.freelist(32)
cdef class MessageHead:
    def __cinit__(self):
        global _spare_count
        cdef HeadMemory* spare
        self.minor_version = 1
        self.content_length = -1
        if _spare_count:
            _spare_count -= 1
            spare = &_spare[_spare_count]
            self.data = spare.data
            self.spans = spare.spans
            self.capacity = spare.capacity
            self.span_capacity = spare.span_capacity
            return
        self.data = <char*>PyMem_Malloc(FIRST_DATA)
        self.spans = <HeaderSpan*>PyMem_Malloc(FIRST_SPANS * sizeof(HeaderSpan))
        if self.data == NULL or self.spans == NULL:
            raise MemoryError()
        self.capacity = FIRST_DATA
        self.span_capacity = FIRST_SPANS

    def __dealloc__(self):
        global _spare_count
        cdef HeadMemory* spare
        if _spare_count == MAX_SPARE or self.data == NULL or self.spans == NULL or self.capacity > KEEP_DATA \
                or self.span_capacity > KEEP_SPANS:
            PyMem_Free(self.data)
            PyMem_Free(self.spans)
            return
        spare = &_spare[_spare_count]
        spare.data = self.data
        spare.spans = self.spans
        spare.capacity = self.capacity
        spare.span_capacity = self.span_capacity
        _spare_count += 1

    cdef void clear(self) noexcept:
        self.length = self.parsed = 0
        self.method_off = self.method_len = 0
        self.target_off = self.target_len = self.path_len = 0
        self.authority_off = self.authority_len = 0
        self.reason_off = self.reason_len = 0
        self.status = 0
        self.minor_version = 1
        self.flags = 0
        self.content_length = -1
        self.count = 0

    cdef int reserve(self, uint32_t extra) except -1:
        cdef size_t wanted = <size_t>self.length + extra
        cdef size_t capacity = self.capacity
        cdef char* data
        if wanted <= capacity:
            return 0
        if wanted > MAX_DATA:
            raise ValueError("message head is too large")
        while capacity < wanted:
            capacity *= 2
        data = <char*>PyMem_Realloc(self.data, capacity)
        if data == NULL:
            raise MemoryError()
        self.data = data
        self.capacity = <uint32_t>capacity
        return 0

    cdef int push_span(self, HeaderSpan span) except -1:
        cdef HeaderSpan* spans
        if self.count == self.span_capacity:
            spans = <HeaderSpan*>PyMem_Realloc(self.spans, 2 * self.span_capacity * sizeof(HeaderSpan))
            if spans == NULL:
                raise MemoryError()
            self.spans = spans
            self.span_capacity *= 2
        self.spans[self.count] = span
        self.count += 1
        return 0

    cdef int find(self, const char* name, Py_ssize_t n, int start) noexcept:
        # No field has a name with control characters, but header_id_of() would mistake some for valid names.
        return self.find_known(header_id_of(name, n) if is_value(name, n) else H_OTHER, name, n, start)

    cdef int find_known(self, int header_id, const char* name, Py_ssize_t n, int start) noexcept:
        cdef int i
        cdef HeaderSpan* span
        cdef char first
        if header_id != H_OTHER:
            return self.find_id(header_id, start)
        if n == 0:
            return -1
        first = name[0] | 32
        for i in range(start, self.count):
            span = &self.spans[i]
            # Different names rarely have the same length and first letter.
            if span.name_len == n and span.id == H_OTHER and self.data[span.name_off] | 32 == first \
                    and not span.flags & SPAN_DROPPED and same_lower(self.data + span.name_off, name, n):
                return i
        return -1

    cdef int find_id(self, int header_id, int start) noexcept:
        cdef int i
        for i in range(start, self.count):
            if self.spans[i].id == header_id and not self.spans[i].flags & SPAN_DROPPED:
                return i
        return -1

    cdef int add_field(self, const char* name, Py_ssize_t name_len, const char* value,
                       Py_ssize_t value_len) except -1:
        cdef HeaderSpan span
        if name_len > 65535:
            raise ValueError("field name is too long")
        span.name_off = self._put(name, name_len)
        span.name_len = <unsigned short>name_len
        span.value_off = self._put(value, value_len)
        span.value_len = <uint32_t>value_len
        span.id = <unsigned char>header_id_of(self.data + span.name_off, name_len)
        span.flags = SPAN_ADDED | sensitivity(span.id, self.data + span.name_off, name_len)
        return self.push_span(span)

    cdef int drop_field(self, const char* name, Py_ssize_t name_len) noexcept:
        cdef int dropped = 0
        cdef int i = self.find(name, name_len, 0)
        while i >= 0:
            self.spans[i].flags |= SPAN_DROPPED
            dropped += 1
            i = self.find(name, name_len, i + 1)
        return dropped

    cdef int drop_id(self, int header_id) noexcept:
        cdef int dropped = 0
        cdef int i = self.find_id(header_id, 0)
        while i >= 0:
            self.spans[i].flags |= SPAN_DROPPED
            dropped += 1
            i = self.find_id(header_id, i + 1)
        return dropped

    cdef uint32_t _put(self, const char* p, Py_ssize_t n) except? 4294967295:
        cdef uint32_t at = self.length
        cdef Py_ssize_t inside = -1
        if n > MAX_DATA:
            raise ValueError("message head is too large")
        # The bytes may be part of this head's buffer, which reserve() may move.
        if p >= self.data and p < self.data + self.length:
            inside = p - self.data
        self.reserve(<uint32_t>n)
        if inside >= 0:
            p = self.data + inside
        memcpy(self.data + at, p, n)
        self.length += <uint32_t>n
        return at

    cdef int set_target(self, const char* target, Py_ssize_t n) except -1:
        cdef Py_ssize_t i = 0
        self.target_off = self._put(target, n)
        self.target_len = <uint32_t>n
        while i < n and target[i] != b"?":
            i += 1
        self.path_len = <uint32_t>i
        return 0

    cdef int set_authority(self, const char* authority, Py_ssize_t n) except -1:
        self.authority_off = self._put(authority, n)
        self.authority_len = <uint32_t>n
        return 0

    # -- Python face ---------------------------------------------------------------------------------------------------
    cdef str _text(self, uint32_t off, uint32_t n):
        return self.data[off:off + n].decode("utf-8", "surrogateescape") if n else ""

    @property
    def method(self):
        return self._text(self.method_off, self.method_len)

    @property
    def target(self):
        return self._text(self.target_off, self.target_len)

    @property
    def path(self):
        return self._text(self.target_off, self.path_len)

    @property
    def query(self):
        if self.path_len >= self.target_len:
            return ""
        return self._text(self.target_off + self.path_len + 1, self.target_len - self.path_len - 1)

    @property
    def authority(self):
        return self._text(self.authority_off, self.authority_len)

    @property
    def reason(self):
        return self._text(self.reason_off, self.reason_len)

    @property
    def version(self):
        return "2" if self.minor_version == 20 else f"1.{self.minor_version}"

    def get(self, str name):
        raw = name.lower().encode("ascii")
        cdef int i = self.find(raw, len(raw), 0)
        if i < 0:
            return None
        return self._text(self.spans[i].value_off, self.spans[i].value_len)

    def get_list(self, str name):
        """Return the values of all fields with that name, in any case, in their order."""
        raw = name.lower().encode("ascii")
        found = []
        cdef int i = self.find(raw, len(raw), 0)
        while i >= 0:
            found.append(self._text(self.spans[i].value_off, self.spans[i].value_len))
            i = self.find(raw, len(raw), i + 1)
        return found

    def items(self):
        """Return (name, value) of all fields in their order."""
        cdef int i
        found = []
        for i in range(self.count):
            if not self.spans[i].flags & SPAN_DROPPED:
                found.append((self._text(self.spans[i].name_off, self.spans[i].name_len),
                              self._text(self.spans[i].value_off, self.spans[i].value_len)))
        return found

    def add(self, str name, str value):
        raw_name, raw_value = _checked(name, value)
        self.add_field(raw_name, len(raw_name), raw_value, len(raw_value))

    def set(self, str name, str value):
        raw_name, raw_value = _checked(name, value)
        lowered = raw_name.lower()
        self.drop_field(lowered, len(lowered))
        self.add_field(raw_name, len(raw_name), raw_value, len(raw_value))

    def remove(self, str name):
        raw = name.lower().encode("ascii")
        return self.drop_field(raw, len(raw))

    def set_request(self, str method, str target, str authority):
        """Make this the head of a request. Raises ValueError for parts that are invalid in a request line."""
        raw_method = method.encode("ascii")
        raw_target = target.encode("ascii")
        raw_authority = authority.encode("ascii")
        if not raw_method or not all_of(raw_method, len(raw_method), IS_TOKEN):
            raise ValueError(f"{method!r} is not a method")
        if raw_method == b"CONNECT":
            formed = raw_target == raw_authority != b""
        else:
            formed = raw_target.startswith(b"/") or raw_method == b"OPTIONS" and raw_target == b"*"
        if not formed or not all_of(raw_target, len(raw_target), IS_TARGET):
            raise ValueError(f"{target!r} is not a request target")
        if not all_of(raw_authority, len(raw_authority), IS_TARGET):
            raise ValueError(f"{authority!r} is not an authority")
        self.method_off = self._put(raw_method, len(raw_method))
        self.method_len = <uint32_t>len(raw_method)
        self.flags &= ~(HEAD_IS_HEAD | HEAD_CONNECT)
        if raw_method == b"HEAD":
            self.flags |= HEAD_IS_HEAD
        elif raw_method == b"CONNECT":
            self.flags |= HEAD_CONNECT
        self.set_target(raw_target, len(raw_target))
        self.set_authority(raw_authority, len(raw_authority))


def _checked(str name, str value):
    raw_name = name.encode("ascii")
    raw_value = value.encode("utf-8", "surrogateescape").strip(b" \t")
    if not raw_name or not all_of(raw_name, len(raw_name), IS_TOKEN):
        raise ValueError(f"{name!r} is not a header name")
    if not all_of(raw_value, len(raw_value), IS_VALUE):
        raise ValueError(f"header {name!r} has a control character in its value")
    return raw_name, raw_value


# Names that the configuration marks as sensitive, in lower case.
cdef enum:
    MAX_NAMED = 64
cdef tuple named_sensitive = ()      # holds what the pointers lead to
cdef const char* sensitive_names[MAX_NAMED]
cdef Py_ssize_t sensitive_lengths[MAX_NAMED]
cdef int sensitive_count = 0


def hide_headers(names not None):
    """Treat the values of these fields, and of no others that were named before, as credentials in this process.

    redacted() hides them in messages that are read from now on. Raises ValueError if there are too many.
    """
    global named_sensitive, sensitive_count
    cdef tuple found = tuple({(<str?>name).lower().encode("ascii"): None for name in names})
    cdef Py_ssize_t i
    if len(found) > MAX_NAMED:
        raise ValueError(f"more than {MAX_NAMED} sensitive headers")
    for i in range(len(found)):
        sensitive_names[i] = <bytes>found[i]
        sensitive_lengths[i] = len(<bytes>found[i])
    sensitive_count = <int>len(found)
    named_sensitive = found


cdef unsigned char sensitivity(int header_id, const char* name, Py_ssize_t n) noexcept nogil:
    """Return SPAN_SENSITIVE for fields that contain credentials, else 0."""
    cdef int i
    cdef char last
    if header_id in (H_AUTHORIZATION, H_PROXY_AUTHORIZATION, H_COOKIE, H_SET_COOKIE):
        return SPAN_SENSITIVE
    if header_id != H_OTHER and sensitive_count == 0:
        return 0
    # By the last letter: `api-key`, `x-goog-api-key`; `x-auth-token`, `x-amz-security-token`; `client-secret`; `x-db-password`.
    # Whoever has the id of an MCP session can use it.
    last = name[n - 1] | 32 if n else 0
    if (last == 121 and n >= 7 and same_lower(name + n - 7, b"api-key", 7)
            or last == 110 and n >= 5 and same_lower(name + n - 5, b"token", 5)
            or last == 116 and n >= 6 and same_lower(name + n - 6, b"secret", 6)
            or last == 100 and (n >= 8 and same_lower(name + n - 8, b"password", 8)
                                or n == 14 and same_lower(name, b"mcp-session-id", 14))):
        return SPAN_SENSITIVE
    # Browsers send API keys of realtime conversations as a subprotocol.
    if n == 22 and same_lower(name, b"sec-websocket-protocol", 22):
        return SPAN_SENSITIVE
    for i in range(sensitive_count):
        if n == sensitive_lengths[i] and same_lower(name, sensitive_names[i], n):
            return SPAN_SENSITIVE
    return 0
