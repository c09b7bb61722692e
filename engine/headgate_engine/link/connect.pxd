# CONNECT (RFC 9110 section 9.3.6): a request for a tunnel. It is refused, takes part in routing and gets a connection to the
# backend of its route (attempt.pyx), or what is in the tunnel is served by another port of this process: on the client's own
# connection, or on its stream of HTTP/2 (stream_transport).

from headgate_engine.link.core cimport RequestCore

# Decides about a request as its port says. True: it is answered, or has become something else. False: it goes on.
cdef bint settled(RequestCore request) except -1
