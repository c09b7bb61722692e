"""The states of one request, from its head to its end.

TRANSITIONS is the machine; every pair it does not list is refused, which means that the event comes too late and is
ignored: nothing happens to a request that is DONE. engine/README.md shows the table as a diagram.
"""

from libc.stdint cimport uint8_t

STATES = (
    "RUNNING", "SUSPENDED", "STEP_BODY", "BACKEND_BODY", "BACKOFF", "CONNECTING", "FORWARDING", "AWAITING",
    "AWAITING_GUARDS", "TAKEN", "RESPONDING", "RESPONDING_GUARDS", "TUNNEL", "DONE")
EVENTS = (
    "SUSPEND", "RESUME", "WANT_BODY", "COLLECT", "BODY_CAME", "CONNECT", "CONNECTED", "TAKE", "KEEP_HEAD", "BEGIN",
    "RESPOND", "CALL_GUARDS", "GUARDS_ANSWERED", "RETRY", "BACK_OFF", "DUE", "UPGRADE", "FINISH")

TRANSITIONS = (
    ("RUNNING", "SUSPEND", "SUSPENDED"),
    ("RUNNING", "WANT_BODY", "STEP_BODY"),
    ("RUNNING", "COLLECT", "BACKEND_BODY"),
    ("RUNNING", "BACK_OFF", "BACKOFF"),
    ("RUNNING", "CONNECT", "CONNECTING"),
    ("RUNNING", "TAKE", "TAKEN"),
    ("RUNNING", "RESPOND", "RESPONDING"),
    ("RUNNING", "FINISH", "DONE"),
    ("SUSPENDED", "RESUME", "RUNNING"),
    ("SUSPENDED", "RESPOND", "RESPONDING"),
    ("SUSPENDED", "FINISH", "DONE"),
    ("STEP_BODY", "BODY_CAME", "RUNNING"),
    ("STEP_BODY", "RESPOND", "RESPONDING"),
    ("STEP_BODY", "FINISH", "DONE"),
    ("BACKEND_BODY", "BODY_CAME", "RUNNING"),
    ("BACKEND_BODY", "RESPOND", "RESPONDING"),
    ("BACKEND_BODY", "FINISH", "DONE"),
    ("BACKOFF", "DUE", "RUNNING"),
    ("BACKOFF", "RESPOND", "RESPONDING"),
    ("BACKOFF", "FINISH", "DONE"),
    ("CONNECTING", "CONNECTED", "FORWARDING"),
    ("CONNECTING", "RETRY", "RUNNING"),
    ("CONNECTING", "RESPOND", "RESPONDING"),
    ("CONNECTING", "FINISH", "DONE"),
    ("FORWARDING", "CONNECT", "CONNECTING"),
    ("FORWARDING", "KEEP_HEAD", "AWAITING"),
    ("FORWARDING", "BEGIN", "RESPONDING"),
    ("FORWARDING", "RETRY", "RUNNING"),
    ("FORWARDING", "RESPOND", "RESPONDING"),
    ("FORWARDING", "FINISH", "DONE"),
    ("AWAITING", "BEGIN", "RESPONDING"),
    ("AWAITING", "CALL_GUARDS", "AWAITING_GUARDS"),
    ("AWAITING", "RETRY", "RUNNING"),
    ("AWAITING", "RESPOND", "RESPONDING"),
    ("AWAITING", "FINISH", "DONE"),
    ("AWAITING_GUARDS", "GUARDS_ANSWERED", "AWAITING"),
    ("AWAITING_GUARDS", "BEGIN", "RESPONDING_GUARDS"),
    ("AWAITING_GUARDS", "RETRY", "RUNNING"),
    ("AWAITING_GUARDS", "RESPOND", "RESPONDING"),
    ("AWAITING_GUARDS", "FINISH", "DONE"),
    ("TAKEN", "BEGIN", "RESPONDING"),
    ("TAKEN", "RESPOND", "RESPONDING"),
    ("TAKEN", "FINISH", "DONE"),
    ("RESPONDING", "CALL_GUARDS", "RESPONDING_GUARDS"),
    ("RESPONDING", "RESPOND", "RESPONDING"),
    ("RESPONDING", "UPGRADE", "TUNNEL"),
    ("RESPONDING", "FINISH", "DONE"),
    ("RESPONDING_GUARDS", "GUARDS_ANSWERED", "RESPONDING"),
    ("RESPONDING_GUARDS", "RESPOND", "RESPONDING"),
    ("RESPONDING_GUARDS", "FINISH", "DONE"),
    ("TUNNEL", "FINISH", "DONE"),
)

cdef uint8_t NEXT[N_STATES][N_EVENTS]


cdef _fill():
    cdef int state, event
    for state in range(N_STATES):
        for event in range(N_EVENTS):
            NEXT[state][event] = REFUSED
    for before, name, after in TRANSITIONS:
        state = STATES.index(before)
        event = EVENTS.index(name)
        NEXT[state][event] = STATES.index(after)


_fill()


cdef int next_state(int state, int event) noexcept nogil:
    return NEXT[state][event]


def step(str state, str event):
    """Next state by name, None when the machine refuses; ValueError for a name that is none."""
    cdef int found = next_state(STATES.index(state), EVENTS.index(event))
    return None if found == REFUSED else STATES[found]
