# Attributes of spans by their names in the semantic conventions (https://opentelemetry.io/docs/specs/semconv/): HTTP, RPC,
# GenAI and MCP. log/otlp_fields writes those of the access log.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport uint32_t

# Attributes that a configuration may remove, by bit.
cdef enum HiddenAttribute:
    HIDE_METHOD = 1
    HIDE_SCHEME = 2
    HIDE_PATH = 4
    HIDE_QUERY = 8
    HIDE_SERVER = 16
    HIDE_SERVER_PORT = 32
    HIDE_CLIENT = 64
    HIDE_VERSION = 128
    HIDE_STATUS = 256
    HIDE_ROUTE = 512
    HIDE_ERROR = 1024
    HIDE_RPC = 2048
    HIDE_RPC_METHOD = 4096
    HIDE_RPC_STATUS = 8192

# Of a request as the client sent it.
cdef int put_request_attributes(ByteBuffer out, RequestContext ctx, uint32_t hidden) except -1
# Of a gRPC call; status -1: unknown.
cdef int put_rpc_attributes(ByteBuffer out, RequestContext ctx, int status, uint32_t hidden) except -1
# `server.address` and `server.port` of host:port, [address]:port or a name alone.
cdef int put_server(ByteBuffer out, const char* p, Py_ssize_t n, uint32_t hidden) except -1
cdef int put_label(ByteBuffer out, str name, bytes value) except -1
cdef int put_number(ByteBuffer out, str name, long long value) except -1
# What a path that a prefix has matched is shown as: `/p/*`.
cdef int append_route(ByteBuffer out, RequestContext ctx) except -1
