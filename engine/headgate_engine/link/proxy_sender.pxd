# PROXY protocol headers for backends: whose connection it is that we open. Versions 1 and 2:
# https://github.com/haproxy/haproxy/blob/master/doc/proxy-protocol.txt

from headgate_engine.link.face cimport ClientFace
from headgate_engine.link.pool cimport ClientPools, Pool

cdef class ProxySender(ClientPools):
    cdef readonly int version        # 1 or 2
    cdef object open                 # open(header: bytes) -> Pool, whose connections begin with the header
    # What a connection for this client begins with.
    cdef bytes header_for(self, ClientFace face)
