# The handshake of WebSocket between HTTP/1.1, where a key and its proof go back and forth (RFC 6455 section 4), and HTTP/2,
# which has neither (RFC 8441).

from headgate_engine.context.headers cimport MessageHead

# A request of HTTP/2 that is an upgrade to WebSocket for the rest of the gateway gets a key, which only HTTP/1.1 sends on.
cdef int add_key(MessageHead request) except -1
cdef int drop_accept(MessageHead response) except -1
# Over HTTP/2 no key is sent; as_switch() still finds it.
cdef int drop_key(MessageHead request) except -1
# The response of HTTP/2 gets the fields with which HTTP/1.1 answers the upgrade in `request`.
cdef int as_switch(MessageHead request, MessageHead response) except -1
