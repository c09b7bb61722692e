# Field lists of HTTP/2 to heads, as requests see them whatever the protocol, and back (RFC 9113 section 8).

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.http2.hpack cimport HpackEncoder
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

# A head that HpackDecoder.decode() has filled becomes one of a request, a response or trailers. Raises StreamFault for what is
# malformed. `extended`: we have allowed extended CONNECT (RFC 8441); its request looks like an upgrade in HTTP/1.1.
cdef int accept_request(MessageHead head, bint extended) except -1
cdef int accept_response(MessageHead head) except -1
# Fields that mean nothing in trailers are marked as dropped.
cdef int accept_trailers(MessageHead head) except -1

# Appends a header block. `length`: of content-length, -1: none. Raises LocalProtocolError before anything is written.
# `upgrade`: an extended CONNECT for the protocol in the head's `upgrade` field.
cdef int write_request(
    HpackEncoder encoder, ByteBuffer out, MessageHead head, int64_t length, bint secure, bint upgrade) except -1
cdef int write_response(HpackEncoder encoder, ByteBuffer out, MessageHead head, int64_t length) except -1
cdef int write_trailers(HpackEncoder encoder, ByteBuffer out, MessageHead head) except -1
