"""The state machine of one direction of an HTTP/1.1 exchange (RFC 9112): what may be received or sent when.

TRANSITIONS is the machine; pairs that it does not list are refused. Receiving and sending, client and server use the
same table. The codec decides on a body's framing.
"""

from libc.stdint cimport uint8_t

STATES = ("IDLE", "BODY", "DONE", "TUNNEL", "CLOSED", "ERROR")
INPUTS = ("HEAD", "INFORMATIONAL", "DATA", "END", "SWITCH", "CYCLE", "EOF", "FAULT")

TRANSITIONS = (
    ("IDLE", "HEAD", "BODY"),
    ("IDLE", "INFORMATIONAL", "IDLE"),
    ("IDLE", "EOF", "CLOSED"),
    ("IDLE", "FAULT", "ERROR"),
    ("BODY", "DATA", "BODY"),
    ("BODY", "END", "DONE"),
    ("BODY", "SWITCH", "TUNNEL"),
    ("BODY", "FAULT", "ERROR"),
    ("DONE", "CYCLE", "IDLE"),
    ("DONE", "SWITCH", "TUNNEL"),
    ("DONE", "EOF", "CLOSED"),
    ("DONE", "FAULT", "ERROR"),
    ("TUNNEL", "EOF", "CLOSED"),
    ("TUNNEL", "FAULT", "ERROR"),
    ("CLOSED", "EOF", "CLOSED"),
    ("CLOSED", "FAULT", "ERROR"),
    ("ERROR", "EOF", "ERROR"),
    ("ERROR", "FAULT", "ERROR"),
)

cdef uint8_t NEXT[N_STATES][N_INPUTS]


cdef _fill():
    cdef int state, event
    for state in range(N_STATES):
        for event in range(N_INPUTS):
            NEXT[state][event] = REFUSED
    for before, name, after in TRANSITIONS:
        state = STATES.index(before)
        event = INPUTS.index(name)
        NEXT[state][event] = STATES.index(after)


_fill()


cdef int next_state(int state, int event) noexcept nogil:
    return NEXT[state][event]


def step(str state, str event):
    """Return the next state by name, None if the machine refuses the event."""
    cdef int found = next_state(STATES.index(state), INPUTS.index(event))
    return None if found == REFUSED else STATES[found]
