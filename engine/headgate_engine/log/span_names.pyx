"""Attributes of spans by their names in the semantic conventions; see span_names.pxd."""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memchr

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.redact cimport has_secret, redact
from headgate_engine.context.request cimport RequestContext
from headgate_engine.log.otlp_fields cimport SPAN_ATTRIBUTES
from headgate_engine.log.protobuf cimport key_of, put_int_attribute, put_text_attribute
from headgate_engine.route.table cimport RouteRule
from headgate_engine.wire.buffer cimport ByteBuffer

# Attributes that `remove` knows, with their bits.
HIDABLE = {
    "http.request.method": HIDE_METHOD, "url.scheme": HIDE_SCHEME, "url.path": HIDE_PATH, "url.query": HIDE_QUERY,
    "server.address": HIDE_SERVER, "server.port": HIDE_SERVER_PORT, "client.address": HIDE_CLIENT,
    "network.protocol.version": HIDE_VERSION, "http.response.status_code": HIDE_STATUS, "http.route": HIDE_ROUTE,
    "error.type": HIDE_ERROR, "rpc.system.name": HIDE_RPC, "rpc.method": HIDE_RPC_METHOD,
    "rpc.response.status_code": HIDE_RPC_STATUS,
}
# Names of the status codes of gRPC, by number.
GRPC_CODES = ("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
              "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
              "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED")
cdef tuple _codes = tuple([name.encode() for name in GRPC_CODES])

cdef bytes K_METHOD = key_of("http.request.method"), K_SCHEME = key_of("url.scheme"), K_PATH = key_of("url.path")
cdef bytes K_QUERY = key_of("url.query"), K_SERVER = key_of("server.address"), K_PORT = key_of("server.port")
cdef bytes K_CLIENT = key_of("client.address"), K_VERSION = key_of("network.protocol.version")
cdef bytes K_STATUS = key_of("http.response.status_code"), K_ROUTE = key_of("http.route")
cdef bytes K_RPC = key_of("rpc.system.name"), K_RPC_METHOD = key_of("rpc.method")
cdef bytes K_RPC_STATUS = key_of("rpc.response.status_code")
# Keys of put_label() and put_number(): a fixed set of names.
cdef dict _keys = {}


cdef int text(ByteBuffer out, bytes key, const char* p, Py_ssize_t n) except -1:
    return put_text_attribute(out, SPAN_ATTRIBUTES, key, p, n)


cdef int put_request_attributes(ByteBuffer out, RequestContext ctx, uint32_t hidden) except -1:
    cdef MessageHead head = ctx.head
    cdef const char* target = head.data + ctx.target_off
    cdef const char* query = <const char*>memchr(target, 63, ctx.target_len)
    cdef ByteBuffer route
    if not hidden & HIDE_METHOD:
        text(out, K_METHOD, head.data + head.method_off, head.method_len)
    if not hidden & HIDE_SCHEME:
        text(out, K_SCHEME, b"https" if ctx.secure else b"http", 5 if ctx.secure else 4)
    if not hidden & HIDE_PATH:
        text(out, K_PATH, target, ctx.target_len if query == NULL else query - target)
    if query != NULL and not hidden & HIDE_QUERY:
        put_query(out, query + 1, target + ctx.target_len)
    if ctx.host_len:
        put_server(out, head.data + ctx.host_off, ctx.host_len, hidden)
    if ctx.peer_text is not None and not hidden & HIDE_CLIENT:
        address = ctx.peer_text.rpartition(":")[0].strip("[]").encode("utf-8", "replace")
        text(out, K_CLIENT, <bytes>address, len(<bytes>address))
    if not hidden & HIDE_VERSION:
        if head.minor_version == 20:
            text(out, K_VERSION, b"2", 1)
        else:
            text(out, K_VERSION, b"1.1" if head.minor_version else b"1.0", 3)
    if ctx.status and not hidden & HIDE_STATUS:
        put_int_attribute(out, SPAN_ATTRIBUTES, K_STATUS, ctx.status)
    if ctx.rule is not None and not hidden & HIDE_ROUTE:
        route = ByteBuffer()
        append_route(route, ctx)
        text(out, K_ROUTE, route.data, route.length)
    return 0


cdef int put_query(ByteBuffer out, const char* p, const char* end) except -1:
    cdef ByteBuffer clean
    if not has_secret(p, end):
        return text(out, K_QUERY, p, end - p)
    clean = ByteBuffer()
    redact(clean, p, p, end)
    return text(out, K_QUERY, clean.data, clean.length)


cdef int put_rpc_attributes(ByteBuffer out, RequestContext ctx, int status, uint32_t hidden) except -1:
    cdef MessageHead head = ctx.head
    cdef const char* path = head.data + ctx.target_off
    cdef bytes name
    if not hidden & HIDE_RPC:
        text(out, K_RPC, b"grpc", 4)
    if not hidden & HIDE_RPC_METHOD and ctx.target_len > 1:
        text(out, K_RPC_METHOD, path + 1, ctx.target_len - 1)
    if status >= 0 and not hidden & HIDE_RPC_STATUS:
        name = <bytes>_codes[status] if status < len(_codes) else b"%d" % status
        text(out, K_RPC_STATUS, name, len(name))
    return 0


cdef int put_server(ByteBuffer out, const char* p, Py_ssize_t n, uint32_t hidden) except -1:
    cdef Py_ssize_t i = n
    cdef int64_t port = 0
    cdef int64_t unit = 1
    while i > 0 and 48 <= p[i - 1] <= 57 and unit < 1000000:
        i -= 1
        port += (p[i] - 48) * unit
        unit *= 10
    if i == n or i < 2 or p[i - 1] != 58:
        i = n + 1
        port = 0
    if not hidden & HIDE_SERVER:
        if p[0] == 91 and p[i - 2] == 93:
            text(out, K_SERVER, p + 1, i - 3)
        else:
            text(out, K_SERVER, p, i - 1)
    return put_int_attribute(out, SPAN_ATTRIBUTES, K_PORT, port) if port and not hidden & HIDE_SERVER_PORT else 0


cdef int append_route(ByteBuffer out, RequestContext ctx) except -1:
    cdef RouteRule rule = <RouteRule?>ctx.rule
    cdef bytes path
    if rule.path is None:
        return out.append(b"/*", 2)
    path = rule.path.encode("utf-8", "replace")
    out.append(path, len(path))
    if rule.path_kind == "prefix":
        return out.append(b"*", 1) if path.endswith(b"/") else out.append(b"/*", 2)
    return 0


cdef bytes known_key(str name):
    cdef bytes found = <bytes>_keys.get(name)
    if found is None:
        found = _keys[name] = key_of(name)
    return found


cdef int put_label(ByteBuffer out, str name, bytes value) except -1:
    return 0 if value is None else text(out, known_key(name), value, len(value))


cdef int put_number(ByteBuffer out, str name, long long value) except -1:
    return put_int_attribute(out, SPAN_ATTRIBUTES, known_key(name), value)
