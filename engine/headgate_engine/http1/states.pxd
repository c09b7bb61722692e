# The state machine of one direction, as data: see states.pyx.

cdef enum State:
    S_IDLE = 0            # no head yet
    S_BODY = 1
    S_DONE = 2            # message complete, waiting for the other direction
    S_TUNNEL = 3          # switched protocols: bytes are raw
    S_CLOSED = 4
    S_ERROR = 5
    N_STATES = 6

cdef enum Input:
    I_HEAD = 0
    I_INFORMATIONAL = 1
    I_DATA = 2
    I_END = 3
    I_SWITCH = 4
    I_CYCLE = 5           # both directions complete, the connection is reused
    I_EOF = 6
    I_FAULT = 7
    N_INPUTS = 8

cdef enum:
    REFUSED = 255

# Returns the next state, or REFUSED for pairs that the table does not list.
cdef int next_state(int state, int event) noexcept nogil
