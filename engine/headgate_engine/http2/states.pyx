"""The state machines of HTTP/2 (RFC 9113 section 5.1 and 8.1): what may be received or sent when.

The tables are the machines; pairs that they do not list are refused. There are no reserved states, because pushed streams are
refused. Both roles use the same tables.
"""

from libc.stdint cimport uint8_t

STREAM_STATES = ("IDLE", "OPEN", "HALF_CLOSED_LOCAL", "HALF_CLOSED_REMOTE", "CLOSED")
STREAM_INPUTS = ("SEND_HEADERS", "SEND_DATA", "SEND_END", "SEND_RESET", "RECV_HEADERS", "RECV_DATA", "RECV_END", "RECV_RESET")
STREAM = (
    ("IDLE", "SEND_HEADERS", "OPEN"),
    ("IDLE", "RECV_HEADERS", "OPEN"),
    ("OPEN", "SEND_HEADERS", "OPEN"),
    ("OPEN", "SEND_DATA", "OPEN"),
    ("OPEN", "SEND_END", "HALF_CLOSED_LOCAL"),
    ("OPEN", "SEND_RESET", "CLOSED"),
    ("OPEN", "RECV_HEADERS", "OPEN"),
    ("OPEN", "RECV_DATA", "OPEN"),
    ("OPEN", "RECV_END", "HALF_CLOSED_REMOTE"),
    ("OPEN", "RECV_RESET", "CLOSED"),
    ("HALF_CLOSED_LOCAL", "SEND_RESET", "CLOSED"),
    ("HALF_CLOSED_LOCAL", "RECV_HEADERS", "HALF_CLOSED_LOCAL"),
    ("HALF_CLOSED_LOCAL", "RECV_DATA", "HALF_CLOSED_LOCAL"),
    ("HALF_CLOSED_LOCAL", "RECV_END", "CLOSED"),
    ("HALF_CLOSED_LOCAL", "RECV_RESET", "CLOSED"),
    ("HALF_CLOSED_REMOTE", "SEND_HEADERS", "HALF_CLOSED_REMOTE"),
    ("HALF_CLOSED_REMOTE", "SEND_DATA", "HALF_CLOSED_REMOTE"),
    ("HALF_CLOSED_REMOTE", "SEND_END", "CLOSED"),
    ("HALF_CLOSED_REMOTE", "SEND_RESET", "CLOSED"),
    ("HALF_CLOSED_REMOTE", "RECV_RESET", "CLOSED"),
    ("CLOSED", "RECV_RESET", "CLOSED"),
)

MESSAGE_STATES = ("AWAITING", "BODY", "DONE")
MESSAGE_INPUTS = ("INFORMATIONAL", "HEAD", "DATA", "TRAILERS", "END")
MESSAGE = (
    ("AWAITING", "INFORMATIONAL", "AWAITING"),
    ("AWAITING", "HEAD", "BODY"),
    ("BODY", "DATA", "BODY"),
    ("BODY", "TRAILERS", "DONE"),
    ("BODY", "END", "DONE"),
)

CONNECTION_STATES = ("AWAITING", "OPEN", "NOTICED", "DRAINING", "CLOSED")
CONNECTION_INPUTS = ("SETTINGS", "FRAME", "STREAM", "NOTICE", "GOAWAY", "FAULT", "EOF")
CONNECTION = (
    ("AWAITING", "SETTINGS", "OPEN"),
    ("AWAITING", "GOAWAY", "DRAINING"),
    ("AWAITING", "FAULT", "CLOSED"),
    ("AWAITING", "EOF", "CLOSED"),
    ("OPEN", "SETTINGS", "OPEN"),
    ("OPEN", "FRAME", "OPEN"),
    ("OPEN", "STREAM", "OPEN"),
    ("OPEN", "NOTICE", "NOTICED"),
    ("OPEN", "GOAWAY", "DRAINING"),
    ("OPEN", "FAULT", "CLOSED"),
    ("OPEN", "EOF", "CLOSED"),
    ("NOTICED", "SETTINGS", "NOTICED"),
    ("NOTICED", "FRAME", "NOTICED"),
    ("NOTICED", "STREAM", "NOTICED"),
    ("NOTICED", "GOAWAY", "DRAINING"),
    ("NOTICED", "FAULT", "CLOSED"),
    ("NOTICED", "EOF", "CLOSED"),
    ("DRAINING", "SETTINGS", "DRAINING"),
    ("DRAINING", "FRAME", "DRAINING"),
    ("DRAINING", "FAULT", "CLOSED"),
    ("DRAINING", "EOF", "CLOSED"),
    ("CLOSED", "FAULT", "CLOSED"),
    ("CLOSED", "EOF", "CLOSED"),
)

MACHINES = {
    "stream": (STREAM_STATES, STREAM_INPUTS, STREAM),
    "message": (MESSAGE_STATES, MESSAGE_INPUTS, MESSAGE),
    "connection": (CONNECTION_STATES, CONNECTION_INPUTS, CONNECTION),
}

cdef uint8_t[N_STREAM_STATES * N_STREAM_INPUTS] STREAM_NEXT
cdef uint8_t[N_MESSAGE_STATES * N_MESSAGE_INPUTS] MESSAGE_NEXT
cdef uint8_t[N_CONNECTION_STATES * N_CONNECTION_INPUTS] CONNECTION_NEXT


cdef int _fill(uint8_t* table, str machine) except -1:
    cdef int pair
    states, inputs, transitions = MACHINES[machine]
    for pair in range(len(states) * len(inputs)):
        table[pair] = MOVE_REFUSED
    for before, name, after in transitions:
        pair = states.index(before) * len(inputs) + inputs.index(name)
        table[pair] = states.index(after)
    return 0


_fill(STREAM_NEXT, "stream")
_fill(MESSAGE_NEXT, "message")
_fill(CONNECTION_NEXT, "connection")


cdef int next_stream(int state, int event) noexcept nogil:
    return STREAM_NEXT[state * N_STREAM_INPUTS + event]


cdef int next_message(int state, int event) noexcept nogil:
    return MESSAGE_NEXT[state * N_MESSAGE_INPUTS + event]


cdef int next_connection(int state, int event) noexcept nogil:
    return CONNECTION_NEXT[state * N_CONNECTION_INPUTS + event]


def step(str machine, str state, str event):
    """Return the next state of a machine by name, None if it refuses the event."""
    states, inputs, _ = MACHINES[machine]
    cdef int before = states.index(state)
    cdef int name = inputs.index(event)
    cdef int found
    if machine == "stream":
        found = next_stream(before, name)
    elif machine == "message":
        found = next_message(before, name)
    else:
        found = next_connection(before, name)
    return None if found == MOVE_REFUSED else states[found]
