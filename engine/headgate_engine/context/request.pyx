"""Per-request state: connections fill it in, steps read and change it."""

cimport cython

from headgate_engine.context.trace_context cimport SPAN_ID, TRACE_ID, TraceContext
from headgate_engine.wire.block cimport is_value
from headgate_engine.wire.scan cimport IS_TOKEN, all_of


cdef int checked_fields(tuple fields) except -1:
    """Check header pairs (RFC 9110 section 5).

    Raises TypeError if one is not a pair of bytes, ValueError if a name or value is invalid.
    """
    cdef bytes name, value
    for pair in fields:
        if type(pair) is not tuple or len(<tuple>pair) != 2:
            raise TypeError(f"a header is a pair of bytes, not {pair!r}")
        name, value = <tuple>pair
        if name is None or value is None:
            raise TypeError("a header is a pair of bytes, not None")
        if len(name) == 0 or not all_of(name, len(name), IS_TOKEN):
            raise ValueError(f"{name!r} is not a header name")
        if not is_value(value, len(value)):
            raise ValueError(f"header {name!r} has a control character in its value")
    return 0


cdef class Reply:
    """A response of the gateway itself: status 200..999, body, header pairs as bytes (names in lower case).

    reason: value of the `reason` label in metrics and logs. Raises TypeError if a header is not a pair of bytes,
    ValueError for an invalid status, name or value (RFC 9110 section 5).
    """

    def __init__(self, int status, bytes body not None=b"", tuple headers not None=(), str reason not None="Internal"):
        if not 100 <= status <= 999:
            raise ValueError(f"status {status} is not in 100..999")
        checked_fields(headers)
        self.status = status
        self.body = body
        self.headers = headers
        self.reason = reason


cdef inline int64_t both(int64_t one, int64_t other) noexcept:
    """Return the sum of two counts, of which -1 means unknown."""
    return other if one < 0 else (one if other < 0 else one + other)


cdef class TokenUsage:
    def __cinit__(self):
        self.input_tokens = self.output_tokens = self.cached_tokens = self.reasoning_tokens = -1
        self.cache_write_tokens = self.provider_input_tokens = self.provider_total_tokens = -1
        self.input_text_tokens = self.input_image_tokens = self.input_audio_tokens = -1
        self.output_text_tokens = self.output_image_tokens = self.output_audio_tokens = -1

    def __init__(self, int64_t input_tokens=-1, int64_t output_tokens=-1, int64_t cached_tokens=-1,
                 int64_t reasoning_tokens=-1, int64_t cache_write_tokens=-1, int64_t provider_input_tokens=-1):
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        self.cached_tokens = cached_tokens
        self.reasoning_tokens = reasoning_tokens
        self.cache_write_tokens = cache_write_tokens
        self.provider_input_tokens = provider_input_tokens if provider_input_tokens >= 0 else input_tokens

    cdef int add(self, TokenUsage other) except -1:
        self.input_tokens = both(self.input_tokens, other.input_tokens)
        self.output_tokens = both(self.output_tokens, other.output_tokens)
        self.cached_tokens = both(self.cached_tokens, other.cached_tokens)
        self.reasoning_tokens = both(self.reasoning_tokens, other.reasoning_tokens)
        self.cache_write_tokens = both(self.cache_write_tokens, other.cache_write_tokens)
        self.provider_input_tokens = both(self.provider_input_tokens, other.provider_input_tokens)
        self.provider_total_tokens = both(self.provider_total_tokens, other.provider_total_tokens)
        self.input_text_tokens = both(self.input_text_tokens, other.input_text_tokens)
        self.input_image_tokens = both(self.input_image_tokens, other.input_image_tokens)
        self.input_audio_tokens = both(self.input_audio_tokens, other.input_audio_tokens)
        self.output_text_tokens = both(self.output_text_tokens, other.output_text_tokens)
        self.output_image_tokens = both(self.output_image_tokens, other.output_image_tokens)
        self.output_audio_tokens = both(self.output_audio_tokens, other.output_audio_tokens)
        return 0


# Only the memory of freed contexts is reused.
@cython.freelist(64)
cdef class RequestContext:
    cdef int set_response_header(self, bytes name, bytes value) except -1:
        if self.response_headers is None:
            self.response_headers = []
        self.response_headers.append((name, value))
        return 0

    cdef int replace_body(self, bytes body) except -1:
        self.body = body
        self.body_state = BODY_WHOLE
        return 0

    # -- Python face: made on demand, for steps and handlers written in Python -----------------------------------------
    @property
    def request(self):
        return self.head

    @property
    def method(self):
        return self.head.method

    @property
    def target(self):
        return self.head.target

    @property
    def client_target(self):
        if self.target_len == 0:
            return self.head.target
        return self.head._text(self.target_off, self.target_len)

    @property
    def path(self):
        return self.head.path

    @property
    def authority(self):
        return self.head.authority

    @property
    def request_body(self):
        return self.body

    @request_body.setter
    def request_body(self, bytes body):
        self.replace_body(body)

    @property
    def own_request_id(self):
        return None if self.request_id is None else self.request_id.decode("latin-1")

    @own_request_id.setter
    def own_request_id(self, str value):
        self.request_id = None if value is None else value.encode("latin-1")

    @property
    def response_head(self):
        return self.response

    @property
    def added_response_headers(self):
        return list(self.response_headers or ())

    @property
    def log_field_items(self):
        return list(self.log_fields or ())

    @property
    def peer(self):
        return self.connection.peer

    def add_log_field(self, str key, value):
        """Add a field to this request's access-log line. For rare fields only."""
        if self.log_fields is None:
            self.log_fields = []
        self.log_fields.append((key, value))

    def add_response_header(self, str name, str value):
        """Set a header of the final response, replacing one with that name; cookies are added.

        Raises ValueError for a name or value that is invalid (RFC 9110 section 5).
        """
        cdef tuple field = (name.lower().encode("ascii"), value.encode("latin-1"))
        checked_fields((field,))
        self.set_response_header(field[0], field[1])

    def edit_response_header(self, int edit, bytes name not None, bytes value not None):
        """Do something to a field of the final response: 0 appends a value, 1 adds it where there is none, 2 replaces
        all values or adds one, 3 replaces values that are there.

        Raises ValueError for a name or value that is invalid (RFC 9110 section 5).
        """
        cdef bytes lower = name.lower()
        if not EDIT_APPEND <= edit <= EDIT_REPLACE_IF_PRESENT:
            raise ValueError(f"there is no edit {edit}")
        checked_fields(((lower, value),))
        if self.response_edits is None:
            self.response_edits = []
        self.response_edits.append((edit, lower, value))

    def respond(self, Reply reply):
        """Set the reply; the step must then return RESPOND."""
        self.reply = reply


cdef RequestContext new_context():
    return RequestContext.__new__(RequestContext)


cdef int release_context(RequestContext ctx) except -1:
    ctx.exchange = None
    ctx.waiting = None
    ctx.trace = None
    ctx.llm = None
    return 0


def log_extra(RequestContext ctx, **fields):
    """Return the fields of a log line about a request (None: about none): these, and what tells it from others."""
    cdef TraceContext trace
    if ctx is None:
        return fields
    trace = ctx.trace_context
    if ctx.request_id is not None:
        fields["request.id"] = ctx.request_id.decode("latin-1")
    if trace is not None:
        fields["trace.id"] = trace.trace_id[:TRACE_ID].decode("ascii")
        fields["span.id"] = trace.span_id[:SPAN_ID].decode("ascii")
    return fields


def make_context(str method="GET", str target="/", str authority="a.test", headers=(), *, bytes body=None, bint secure=False,
                 MessageHead response=None):
    """Return a new context of a request, for tests and benchmarks. A body counts as read."""
    cdef RequestContext ctx = RequestContext.__new__(RequestContext)
    ctx.head = MessageHead()
    ctx.head.set_request(method, target, authority)
    for name, value in headers:
        ctx.head.add(name, value)
    if body is not None:
        ctx.head.content_length = len(body)
        ctx.replace_body(body)
    ctx.secure = secure
    ctx.response = response
    return ctx


def derived_context(RequestContext source, str method, str target, str authority, headers, bytes body=None):
    """Return a new context for another request on behalf of the client of `source` (None: no client).

    It has the client's identity and the results of policies. Steps that run on it do not change `source`.
    """
    cdef RequestContext ctx = make_context(method, target, authority, headers, body=body)
    if source is not None:
        ctx.secure = source.secure
        ctx.connection = source.connection
        ctx.origin = source.origin
        ctx.jwt, ctx.jwt_token = source.jwt, source.jwt_token
        ctx.api_key, ctx.api_key_text = source.api_key, source.api_key_text
        ctx.basic_user = source.basic_user
        ctx.metadata = None if source.metadata is None else dict(source.metadata)
        ctx.dynamic = None if source.dynamic is None else dict(source.dynamic)
        ctx.started_ns = source.started_ns
    return ctx


def answered_context(RequestContext source not None, MessageHead response not None):
    """Return a new context of the same request with this head of an answer, for expressions about it."""
    cdef RequestContext ctx = derived_context(source, source.method, source.target, source.authority, source.head.items())
    ctx.response = response
    return ctx
