# The answer of a backend that has TAKEN the request, and sends it by itself. RuntimeError where it is answered already.

from headgate_engine.link.core cimport RequestCore

cdef int send_own_whole(RequestCore request, int status, object headers, bytes body, str reason) except -1
cdef int start_own(RequestCore request, int status, object headers) except -1
cdef int send_own(RequestCore request, bytes data) except -1
cdef int end_own(RequestCore request) except -1
