"""The handshake of WebSocket between HTTP/1.1 and HTTP/2; see websocket_key.pxd."""

from headgate_engine.context.headers cimport (
    H_UPGRADE, HEAD_UPGRADE, HeaderSpan, MessageHead, SPAN_ADDED, SPAN_CHECKED, SPAN_DROPPED)

from headgate_engine.wire.scan cimport same_lower

from libc.stdint cimport uint32_t

import base64
import hashlib
import os

cdef bytes GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


cdef bytes protocol_of(MessageHead head):
    """The `upgrade` field of a request, in lower case; empty without one."""
    cdef int i
    for i in range(head.count):
        if head.spans[i].id == H_UPGRADE:
            return head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len].lower()
    return b""


cdef int add_key(MessageHead request) except -1:
    cdef bytes key
    if not request.flags & HEAD_UPGRADE or protocol_of(request) != b"websocket" or request.find(
            b"sec-websocket-key", 17, 0) >= 0:
        return 0
    key = base64.b64encode(os.urandom(16))
    return request.add_field(b"sec-websocket-key", 17, key, len(key))


cdef int drop_accept(MessageHead response) except -1:
    response.drop_field(b"sec-websocket-accept", 20)
    return 0


cdef int key_of(MessageHead head) noexcept:
    """The place of the key among the fields, also of one that is not sent; -1 without one."""
    cdef int i
    for i in range(head.count):
        if head.spans[i].name_len == 17 and same_lower(head.data + head.spans[i].name_off, b"sec-websocket-key", 17):
            return i
    return -1


cdef int drop_key(MessageHead request) except -1:
    cdef int at = key_of(request)
    if at >= 0:
        request.spans[at].flags |= SPAN_DROPPED
    return 0


cdef int as_switch(MessageHead request, MessageHead response) except -1:
    cdef HeaderSpan span
    cdef bytes protocol = protocol_of(request)
    cdef int at = key_of(request)
    response.status = 101
    response.content_length = -1
    if at >= 0:
        key = request.data[request.spans[at].value_off:request.spans[at].value_off + request.spans[at].value_len]
        proof = base64.b64encode(hashlib.sha1(key + GUID).digest())
        response.add_field(b"sec-websocket-accept", 20, proof, len(proof))
    # As a codec of HTTP/1.1 leaves it: hop-by-hop, and so marked.
    span.name_off = response._put(b"upgrade", 7)
    span.name_len = 7
    span.value_off = response._put(protocol, len(protocol))
    span.value_len = <uint32_t>len(protocol)
    span.id = H_UPGRADE
    span.flags = SPAN_ADDED | SPAN_CHECKED | SPAN_DROPPED
    return response.push_span(span)
