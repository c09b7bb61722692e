# Where an agent is: for its clients, and for the gateway.

cdef class AgentPlace:
    cdef str scheme, authority      # of the client's URL of the gateway
    cdef str client_base            # path of the agent there, without a slash at its end
    cdef str agent_base             # path of the agent at the backend
    # A rewrite of a path prefix: what was matched, and what has replaced it, without slashes at their ends. None: none.
    cdef str matched, replaced
    # Returns the URL that clients use for one that the agent tells. `base`: of the agent as a whole.
    cpdef str url_for(self, str url, bint base=*)
    cdef str _path_for(self, str path)
    cdef bint _is_own(self, str scheme, str rest)
    cdef str _endpoint(self)
