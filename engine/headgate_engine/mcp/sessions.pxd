# The sessions of one MCP backend in one worker, as every request looks them up. What begins and ends them is in Python
# (headgate.backend.mcp.session), whose classes are made of these.

cdef class TargetSession:
    # A session at one server.
    cdef str _name, _version
    cdef bytes field                 # the name as a field's value; None: the server has no sessions
    cdef bytes version_field         # None: the client's version is passed on

cdef class SessionEntry:
    cdef readonly str id
    cdef public str owner            # "": nobody is known
    cdef public object server        # what it holds: TargetSession, or what has one for each target
    cdef public double used          # seconds of the table's clock
    cdef public int busy             # requests that use it now
    cdef public bint resumable       # its id can bring it back, at any worker

cdef class SessionTable:
    cdef dict by_id                  # str -> SessionEntry; with `ordered`, the longest unused one first
    cdef object clock                # None: CLOCK_MONOTONIC
    cdef bint ordered
    cdef SessionEntry last           # the one that stands last, None: not known
    cdef double now(self) except -1
    # The living session of an id and an owner, which counts as used now; None without one.
    cdef SessionEntry look_up(self, str session_id, str owner)
    cdef int begin(self, SessionEntry session) except -1
    cdef int end(self, SessionEntry session) except -1
