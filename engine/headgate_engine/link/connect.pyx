"""CONNECT; see connect.pxd."""

from headgate_engine.context.headers cimport HEAD_CONNECT, MessageHead
from headgate_engine.link.core cimport END_ABANDONED, RequestCore
from headgate_engine.link.downstream cimport DownstreamConnection
from headgate_engine.link.http2_stream cimport Http2ServerStream
from headgate_engine.link.reasons cimport REPLY_BIND_NOT_FOUND, REPLY_METHOD_NOT_ALLOWED
from headgate_engine.link.response cimport head_of, start_response
from headgate_engine.link.secure cimport SecureTransport
from headgate_engine.link.states cimport E_RESPOND
from headgate_engine.link.stream_transport cimport new_stream_transport, StreamTransport
from headgate_engine.link.wire cimport Wire
from headgate_engine.plan.plans cimport CONNECT_ROUTE, CONNECT_TUNNEL, BindPlan

import logging

from headgate_engine.link.proxy_header import ProxyAddresses

logger = logging.getLogger("headgate.downstream")

# The port that serves tunnels to ports which nobody else serves.
WILDCARD = "bind/internal"


cdef bint settled(RequestCore request) except -1:
    cdef MessageHead head = request.ctx.head
    cdef BindPlan bind = request.bind
    # What comes through a tunnel is served like any other connection, but there is no tunnel in it.
    cdef bint inside = request.ctx.connection.connect_head is not None
    if not head.flags & HEAD_CONNECT:
        if bind.connect_mode != CONNECT_TUNNEL or inside:
            return False
        request.respond(request.worker.reply(REPLY_METHOD_NOT_ALLOWED))
        return True
    if bind.connect_mode == CONNECT_ROUTE and not inside:
        head.set_target(b"/", 1)       # the path of its matches; the log has what the client sent
        return False
    # A client that believes in its tunnel sends somebody else's bytes next, which are no requests (RFC 9110 section 9.3.6).
    request.client.close_after()
    if bind.connect_mode != CONNECT_TUNNEL or inside:
        request.respond(request.worker.reply(REPLY_METHOD_NOT_ALLOWED))
        return True
    port = port_of(request.worker.ports, head)
    if port is None:
        request.respond(request.worker.reply(REPLY_BIND_NOT_FOUND))
        return True
    if (<DownstreamConnection?>request.ctx.connection).other is None:
        enter(request, port)
    else:
        enter_stream(request, port)
    return True


cdef object port_of(dict ports, MessageHead head):
    """The port of this process that a tunnel leads to; None: nobody serves it."""
    number = int((<bytes>head.data[head.authority_off:head.authority_off + head.authority_len]).rpartition(b":")[2])
    for key in (f"bind/{number}", f"bind/internal/{number}", WILDCARD):
        if key in ports:
            return ports[key]
    return None


cdef int enter(RequestCore request, port) except -1:
    """The connection continues at another port of this process."""
    cdef DownstreamConnection client = <DownstreamConnection?>request.ctx.connection
    cdef MessageHead head = request.ctx.head
    cdef Wire wire = client.wire
    cdef bint own_reads = wire.own_reads
    cdef bytes rest
    request.move(E_RESPOND)
    start_response(request, head_of(200, ()), False)
    client.flush()
    rest = client.codec.leftover()
    client.sink = None
    request.finish(END_ABANDONED)
    if client.lost or wire.closing:
        return 0
    protocol = protocol_behind(port, client, head)
    transport, client.transport = client.transport, None
    client.lost = True
    client.gone()
    if not own_reads:
        transport.pause_reading()
    wire.detach()
    # Not at once: what is being read lies in the worker's scratch memory, which the next protocol reads into.
    client.worker.loop.call_soon(begin, client.worker, transport, protocol, rest)
    return 0


cdef int enter_stream(RequestCore request, port) except -1:
    """An HTTP/2 stream continues at another port of this process. Other streams of its connection are not affected."""
    cdef DownstreamConnection client = <DownstreamConnection?>request.ctx.connection
    cdef Http2ServerStream stream = <Http2ServerStream?>request.client
    cdef MessageHead head = request.ctx.head
    cdef StreamTransport transport = new_stream_transport(client.worker, client.transport, stream)
    protocol = protocol_behind(port, client, head)
    request.move(E_RESPOND)
    start_response(request, head_of(200, ()), False)
    stream.flush()
    stream.sink = transport
    request.finish(END_ABANDONED)
    if stream.connection is None:
        return 0                  # it has broken
    stream.start_tunnel()
    client.worker.loop.call_soon(begin, client.worker, transport, protocol, b"")
    return 0


cdef object protocol_behind(port, DownstreamConnection client, MessageHead head):
    """What serves a tunnel, and knows who has opened it."""
    protocol = port.behind()
    protocol.proxied = ProxyAddresses(
        client.peer_host, client.peer_port, client.raw_host, client.raw_port, client.client_identity,
        client.reached)
    protocol.connect_head = head
    return protocol


def begin(worker, transport, protocol, bytes rest not None):
    """Start the protocol of what is in a tunnel. rest: what came behind the request for it."""
    cdef Py_ssize_t at = 0, part
    if transport.is_closing():
        return
    try:
        if isinstance(transport, SecureTransport):
            (<SecureTransport>transport).reader = None
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        while at < len(rest) and not transport.is_closing():
            protocol = transport.get_protocol()
            buffer = protocol.get_buffer(len(rest) - at)
            part = min(<Py_ssize_t>len(buffer), len(rest) - at)
            buffer[:part] = rest[at:at + part]
            at += part
            protocol.buffer_updated(part)
        if not transport.is_closing() and not isinstance(transport, SecureTransport):
            transport.resume_reading()
        elif not transport.is_closing():
            (<SecureTransport>transport).resume()
    except Exception:  # task boundary: a fault here ends this connection, never the loop
        logger.exception("client connection failed")
        transport.abort()
