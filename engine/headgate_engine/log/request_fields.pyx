# cython: boundscheck=False
# Most indexes go into C arrays, whose bounds Cython cannot check; the few into lists are limited by their length.
"""The fields of a finished request, in their order; see request_fields.pxd.

`http.host` has no port. `http.path` has the query, in which `<redacted>` replaces the values of CREDENTIALS: secrets
never appear in a log or a trace.

Apart from the client's address, this makes no Python objects unless a request has fields that are not in FIELDS.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memchr, memcpy

from headgate_engine.context.headers cimport H_USER_AGENT, MessageHead
from headgate_engine.context.redact cimport has_secret, redact
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.context.trace_context cimport SPAN_ID, TRACE_ID
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.log.fields cimport LogFields
from headgate_engine.plan.plans cimport ListenerPlan, RoutePlan
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.log.keys import FIELDS, ORDER

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    const char* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef enum:
    END_OF_LINE = 1 << 20
    # Longer pairs of names are joined as Python strings.
    PAIR_SIZE = 256

MAX_REMOVED = 32

cdef dict PLACES = {key: place for place, key in enumerate(ORDER)}

# Positions in ORDER of the keys of FIELDS, for fields that are written before them.
cdef int[FIELD_COUNT] PLACE
for _field in range(FIELD_COUNT):
    PLACE[_field] = PLACES[FIELDS[_field]]


cdef class RequestFields:
    def __init__(self, remove=(), LogFields fields=None):
        cdef int i
        self.remove = tuple(remove)
        if len(self.remove) > MAX_REMOVED:
            raise ValueError(f"at most {MAX_REMOVED} fields can be removed")
        self.fields = fields
        self.removed = set(self.remove)
        if fields is not None:
            # A key that the configuration adds replaces the engine's field with that key.
            self.removed.update(key for key, _ in fields.added)
        self.kept = 0
        for i in range(FIELD_COUNT):
            if FIELDS[i] not in self.removed:
                self.kept |= <uint64_t>1 << i
        self.usual = self.kept

    cdef bint wants(self, RequestContext ctx) except -1:
        return self.fields is None or self.fields.wanted(ctx)

    cdef dict _named(self, RequestContext ctx):
        """Return the configured fields of a request, None if there are none. Those that flatten() has named replace the
        engine's as well."""
        cdef dict found
        cdef int i
        if self.fields is None:
            return None
        found = dict(self.fields.values(ctx))
        for i in range(FIELD_COUNT):
            if FIELDS[i] in found:
                self.kept &= ~(<uint64_t>1 << i)
        return found

    cdef list _placed(self, list fields, dict named):
        """Return (place, number, key, value) of the added fields, the last one first. A key is there once."""
        cdef dict found = {}
        for key, value in fields:
            if value is None or key in self.removed or named is not None and key in named:
                continue
            if key in found and type(value) is str and type(found[key]) is str:
                value = f"{found[key]}, {value}"
            found[key] = value
        placed = [(PLACES.get(key, END_OF_LINE), i, key, value) for i, (key, value) in enumerate(found.items())]
        placed.sort(reverse=True)
        return placed

    cdef int write_fields(self, ByteBuffer out, RequestContext ctx, dict named) except -1:
        cdef list extras = None if ctx.log_fields is None else self._placed(ctx.log_fields, named)
        if extras:
            self._extras(out, extras, PLACE[F_REQUEST_ID])
        if ctx.request_id is not None:
            self._text(out, F_REQUEST_ID, ctx.request_id, len(ctx.request_id))
        if extras:
            self._extras(out, extras, PLACE[F_GATEWAY])
        self._target(out, ctx)
        if extras:
            self._extras(out, extras, PLACE[F_BYTES_RECEIVED])
        if ctx.protocol is None or len(ctx.protocol) != 3 or ctx.protocol != "tcp":
            self._request(out, ctx, extras)        # a connection whose bytes go on as they come has none
        if ctx.secure and ctx.connection is not None:
            if extras:
                self._extras(out, extras, PLACE[F_TLS_SNI])
            name = getattr(ctx.connection, "server_name", None)
            if name is not None:
                self._str(out, F_TLS_SNI, name)
        if extras:
            self._extras(out, extras, PLACE[F_TRACE_ID])
        if ctx.trace_context is not None:
            self._plain(out, F_TRACE_ID, ctx.trace_context.trace_id, TRACE_ID)
            self._plain(out, F_SPAN_ID, ctx.trace_context.span_id, SPAN_ID)
        if extras:
            self._extras(out, extras, PLACE[F_PROTOCOL])
        if ctx.protocol is not None:
            self._str(out, F_PROTOCOL, ctx.protocol)
        else:
            self._plain(out, F_PROTOCOL, b"http", 4)
        if extras:
            self._extras(out, extras, PLACE[F_OPERATION])
        if ctx.provider is not None:
            self._llm(out, ctx, extras)
        elif ctx.requested_model is not None:
            # Nobody was asked: the model is not served, or not for this client.
            self._text(out, F_MODEL, ctx.requested_model, len(ctx.requested_model))
        if extras:
            self._extras(out, extras, PLACE[F_RETRY])
        self._outcome(out, ctx)
        if extras:
            self._extras(out, extras, END_OF_LINE + 1)
        if named is not None:
            for key, value in named.items():
                self._extra(out, key, value)
        return 0

    cdef int _target(self, ByteBuffer out, RequestContext ctx) except -1:
        """Write the fields of gateway, route, endpoint and client."""
        self._place(out, ctx.listener, <RoutePlan>ctx.route)
        if ctx.endpoint is not None:
            self._text(out, F_ENDPOINT, ctx.endpoint, len(ctx.endpoint))
        if self.kept >> F_SRC_ADDR & 1 and ctx.connection is not None:
            if ctx.peer_text is None:
                ctx.peer_text = ctx.connection.peer
            self._str(out, F_SRC_ADDR, ctx.peer_text)
        if ctx.secure and self.kept >> F_SRC_IDENTITY & 1 and ctx.connection is not None:
            identity = getattr(ctx.connection, "client_identity", None)
            if identity is not None and identity.name:
                self._str(out, F_SRC_IDENTITY, identity.name)
        return 0

    cdef int _place(self, ByteBuffer out, ListenerPlan listener, RoutePlan route) except -1:
        return self._names(out, listener, route)

    cdef int _names(self, ByteBuffer out, ListenerPlan listener, RoutePlan route) except -1:
        if listener is not None:
            self._pair(out, F_GATEWAY, listener.gateway_namespace, listener.gateway)
            self._str(out, F_LISTENER, listener.name)
        if route is not None:
            if route.rule_name:
                self._str(out, F_ROUTE_RULE, route.rule_name)
            self._pair(out, F_ROUTE, route.namespace, route.name)
        return 0

    cdef int _request(self, ByteBuffer out, RequestContext ctx, list extras) except -1:
        """Write the fields of the request, its size and its status."""
        cdef MessageHead head = ctx.head
        cdef const char* host = head.data + ctx.host_off
        cdef const char* target = head.data + ctx.target_off
        cdef const char* query
        cdef ByteBuffer clean
        cdef int agent
        self._count(out, F_BYTES_RECEIVED, <int64_t>ctx.request_bytes)
        self._count(out, F_BYTES_SENT, <int64_t>ctx.response_bytes)
        if extras:
            self._extras(out, extras, PLACE[F_METHOD])
        self._text(out, F_METHOD, head.data + head.method_off, head.method_len)
        if ctx.host_len:
            self._text(out, F_HOST, host, without_port(host, ctx.host_len))
        query = <const char*>memchr(target, 63, ctx.target_len)
        if query == NULL or not has_secret(query + 1, target + ctx.target_len):
            self._text(out, F_PATH, target, ctx.target_len)
        else:
            clean = ByteBuffer()
            redact(clean, target, query + 1, target + ctx.target_len)
            self._text(out, F_PATH, clean.data, clean.length)
        if head.minor_version == 20:
            self._plain(out, F_VERSION, b"HTTP/2.0", 8)
        else:
            self._plain(out, F_VERSION, b"HTTP/1.1" if head.minor_version else b"HTTP/1.0", 8)
        if ctx.status:
            self._count(out, F_STATUS, ctx.status)
        if self.kept >> F_USER_AGENT & 1:
            agent = head.find_id(H_USER_AGENT, 0)
            if agent >= 0:
                self._text(out, F_USER_AGENT, head.data + head.spans[agent].value_off, head.spans[agent].value_len)
        return 0

    cdef int _llm(self, ByteBuffer out, RequestContext ctx, list extras) except -1:
        cdef TokenUsage usage = ctx.usage
        if ctx.llm is not None and (<LlmCall>ctx.llm).format == "embeddings":
            self._text(out, F_OPERATION, b"embeddings", 10)
        else:
            self._text(out, F_OPERATION, b"chat", 4)
        self._text(out, F_PROVIDER, ctx.provider, len(ctx.provider))
        if ctx.requested_model is not None:
            self._text(out, F_MODEL, ctx.requested_model, len(ctx.requested_model))
        if extras:
            self._extras(out, extras, PLACE[F_INPUT_TOKENS])
        if usage is None:
            return 0
        if usage.input_tokens >= 0:
            self._count(out, F_INPUT_TOKENS, usage.input_tokens)
        if extras:
            self._extras(out, extras, PLACE[F_CACHED_TOKENS])
        if usage.cached_tokens >= 0:
            self._count(out, F_CACHED_TOKENS, usage.cached_tokens)
        if usage.output_tokens >= 0:
            self._count(out, F_OUTPUT_TOKENS, usage.output_tokens)
        if usage.reasoning_tokens >= 0:
            self._count(out, F_REASONING_TOKENS, usage.reasoning_tokens)
        return 0

    cdef int _outcome(self, ByteBuffer out, RequestContext ctx) except -1:
        if ctx.attempts > 1:
            self._count(out, F_RETRY, ctx.attempts - 1)
        if ctx.error is not None:
            self._str(out, F_ERROR, ctx.error)
        if ctx.reason is not None:
            self._str(out, F_REASON, ctx.reason)
        if ctx.upstream_started_ns and ctx.head_received_ns > ctx.upstream_started_ns:
            self._span(out, F_UPSTREAM, ctx.head_received_ns - ctx.upstream_started_ns)
        return self._span(out, F_DURATION, max(ctx.finished_ns - ctx.started_ns, 0))

    cdef int _extras(self, ByteBuffer out, list extras, int before) except -1:
        """Write the added fields that come before a place of ORDER, and remove them from the list."""
        cdef tuple extra
        while extras:
            extra = <tuple>extras[len(extras) - 1]
            if <int>extra[0] >= before:
                break
            extras.pop()
            self._extra(out, <str>extra[2], extra[3])
        return 0

    cdef int _str(self, ByteBuffer out, int field, str value) except -1:
        cdef Py_ssize_t n
        cdef const char* p
        cdef bytes raw
        if value is not None and PyUnicode_IS_COMPACT_ASCII(value):
            return self._text(out, field, PyUnicode_DATA(value), PyUnicode_GET_LENGTH(value))
        try:
            p = PyUnicode_AsUTF8AndSize(value, &n)
        except UnicodeEncodeError:
            raw = value.encode("utf-8", "surrogatepass")
            return self._text(out, field, raw, len(raw))
        return self._text(out, field, p, n)

    cdef int _pair(self, ByteBuffer out, int field, str first, str second) except -1:
        cdef char[PAIR_SIZE] text
        cdef Py_ssize_t n, m
        cdef const char* p
        if not self.kept >> field & 1:
            return 0
        p = PyUnicode_AsUTF8AndSize(first, &n)
        if n >= PAIR_SIZE:
            return self._str(out, field, f"{first}/{second}")
        memcpy(text, p, n)
        text[n] = 47
        p = PyUnicode_AsUTF8AndSize(second, &m)
        if n + 1 + m > PAIR_SIZE:
            return self._str(out, field, f"{first}/{second}")
        memcpy(text + n + 1, p, m)
        return self._text(out, field, text, n + 1 + m)

    # -- what a form of lines does ---------------------------------------------------------------------------------------
    cdef int _extra(self, ByteBuffer out, str key, value) except -1:
        raise NotImplementedError("RequestFields._extra")

    cdef int _text(self, ByteBuffer out, int field, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("RequestFields._text")

    cdef int _plain(self, ByteBuffer out, int field, const char* p, Py_ssize_t n) except -1:
        return self._text(out, field, p, n)

    cdef int _count(self, ByteBuffer out, int field, int64_t value) except -1:
        raise NotImplementedError("RequestFields._count")

    cdef int _span(self, ByteBuffer out, int field, int64_t ns) except -1:
        raise NotImplementedError("RequestFields._span")


cdef Py_ssize_t without_port(const char* host, Py_ssize_t n) noexcept nogil:
    cdef const char* end
    if host[0] == 91:
        end = <const char*>memchr(host, 93, n)
        return n if end == NULL else end - host + 1
    end = <const char*>memchr(host, 58, n)
    return n if end == NULL else end - host
