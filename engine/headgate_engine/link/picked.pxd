# Backends whose endpoints a service picks for each request (`inferenceRouting`).

from headgate_engine.link.backend cimport PoolBackend, RoutedRequest
from headgate_engine.link.dynamic cimport Destinations
from headgate_engine.link.pool cimport Pool

cdef class PickedBackend(PoolBackend):
    cdef Destinations places         # of endpoints that are not known; None: only those of the plan may be picked

    # Sends the request to a place, if there may be one of this name.
    cdef bint forward_to_place(self, RoutedRequest request, bytes place) except -1
