# Message heads as spans over one buffer that the head owns. The bytes are copied once, when the head is parsed, so that
# it stays valid while a request waits. Edits append bytes and spans; nothing is moved.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

# Names that the engine itself recognises; every other field is H_OTHER.
cdef enum HeaderId:
    H_OTHER = 0
    H_HOST = 1
    H_CONTENT_LENGTH = 2
    H_TRANSFER_ENCODING = 3
    H_CONNECTION = 4
    H_KEEP_ALIVE = 5
    H_PROXY_CONNECTION = 6
    H_TE = 7
    H_TRAILER = 8
    H_UPGRADE = 9
    H_EXPECT = 10
    H_PROXY_AUTHENTICATE = 11
    H_PROXY_AUTHORIZATION = 12
    H_AUTHORIZATION = 13
    H_CONTENT_TYPE = 14
    H_CONTENT_ENCODING = 15
    H_ACCEPT = 16
    H_DATE = 17
    H_SERVER = 18
    H_COOKIE = 19
    H_SET_COOKIE = 20
    H_USER_AGENT = 21

cdef enum SpanFlag:
    SPAN_DROPPED = 1      # not sent on (hop-by-hop, consumed or removed by a step)
    SPAN_SENSITIVE = 2    # never shown in logs, dumps or traces
    SPAN_ADDED = 4        # added by the gateway, not received
    SPAN_CHECKED = 8      # added, and validated by the code that added it

cdef struct HeaderSpan:
    uint32_t name_off
    uint32_t value_off
    uint32_t value_len
    uint16_t name_len
    uint8_t id            # HeaderId
    uint8_t flags         # SpanFlag bits

cdef enum HeadFlag:
    HEAD_CHUNKED = 1            # last transfer coding is chunked
    HEAD_KEEP_ALIVE = 2         # the peer keeps the connection open after this message
    HEAD_UPGRADE = 4            # `connection: upgrade` and an `upgrade` field
    HEAD_EXPECT_CONTINUE = 8
    HEAD_ABSOLUTE_FORM = 16     # request target was absolute-form
    HEAD_TE_TRAILERS = 32       # the peer sent `te: trailers`
    HEAD_HAS_HOST = 64
    HEAD_CONNECT = 128          # authority-form, method CONNECT
    HEAD_IS_HEAD = 256          # method HEAD (its response has no body)
    HEAD_SEVERAL_READINGS = 1024  # servers may read the path in more than one way (context.paths)
    HEAD_CLOSE_DELIMITED = 512  # response body runs until the connection closes
    HEAD_KEEPS_CASE = 2048      # HTTP/1.1 sends the field names on as the peer wrote them, not in lower case

cdef class MessageHead:
    # -- bytes: everything below is an offset into `data` --------------------------------------------------------
    cdef char* data
    cdef uint32_t length, capacity
    cdef uint32_t parsed                       # length of the peer's bytes, which the parser has validated
    # -- start line -----------------------------------------------------------------------------------------------
    cdef uint32_t method_off, method_len
    cdef uint32_t target_off, target_len       # request target as sent upstream (origin-form: path + query)
    cdef uint32_t path_len                     # length of the path part of the target (before '?')
    cdef uint32_t authority_off, authority_len  # Host or the absolute-form authority, with port; 0 length if none
    cdef uint32_t reason_off, reason_len       # responses
    cdef readonly int status  # responses: 100..999; 0 for requests
    cdef int minor_version                     # HTTP/1.<minor>; 20 for HTTP/2
    cdef uint32_t flags                        # HeadFlag bits
    cdef readonly int64_t content_length  # -1: the message has none
    # -- fields ---------------------------------------------------------------------------------------------------
    cdef HeaderSpan* spans
    cdef int count, span_capacity

    cdef void clear(self) noexcept
    cdef int reserve(self, uint32_t extra) except -1
    cdef int push_span(self, HeaderSpan span) except -1
    # Returns the index of the first field with that name (lower case, `n` bytes) that is not dropped, or -1.
    cdef int find(self, const char* name, Py_ssize_t n, int start) noexcept
    # As find(), for a name with a known HeaderId: fields with an id are found without comparing names.
    cdef int find_known(self, int header_id, const char* name, Py_ssize_t n, int start) noexcept
    cdef int find_id(self, int header_id, int start) noexcept
    # Appends a field; name and value are copied. The caller must have validated both.
    cdef int add_field(self, const char* name, Py_ssize_t name_len, const char* value, Py_ssize_t value_len) except -1
    # Marks all fields with that name as dropped. Returns their number.
    cdef int drop_field(self, const char* name, Py_ssize_t name_len) noexcept
    cdef int drop_id(self, int header_id) noexcept
    # Replaces the request target (path and query) or the authority; bytes are copied.
    cdef int set_target(self, const char* target, Py_ssize_t n) except -1
    cdef int set_authority(self, const char* authority, Py_ssize_t n) except -1
    cdef uint32_t _put(self, const char* p, Py_ssize_t n) except? 4294967295
    cdef str _text(self, uint32_t off, uint32_t n)

cdef int header_id_of(const char* name, Py_ssize_t n) noexcept nogil

# Returns SPAN_SENSITIVE for fields that contain credentials, else 0.
cdef unsigned char sensitivity(int header_id, const char* name, Py_ssize_t n) noexcept nogil

# Drops the fields with an underscore in their names.
cdef void drop_underscores(MessageHead head) noexcept

cdef MessageHead new_head()
