# The states of a request as data: see states.pyx.

cdef enum RequestState:
    S_RUNNING = 0            # goes down its phases (link.core.Phase)
    S_SUSPENDED = 1          # a step waits for something
    S_STEP_BODY = 2          # a step waits for the request body
    S_BACKEND_BODY = 3       # the backend waits for the whole request body
    S_BACKOFF = 4            # between two attempts
    S_CONNECTING = 5
    S_FORWARDING = 6         # the request goes upstream
    S_AWAITING = 7           # the response head is kept back until its first event, or the whole body, has come
    S_AWAITING_GUARDS = 8    # the same, and guards are being asked
    # From here on no other attempt is made.
    S_TAKEN = 9              # the backend answers by itself and has not begun
    S_RESPONDING = 10
    S_RESPONDING_GUARDS = 11
    S_TUNNEL = 12
    S_DONE = 13
    N_STATES = 14

cdef enum RequestEvent:
    E_SUSPEND = 0            # a step waits
    E_RESUME = 1             # what was waited for has come
    E_WANT_BODY = 2          # a step wants the request body
    E_COLLECT = 3            # the backend wants all of it
    E_BODY_CAME = 4
    E_CONNECT = 5            # a connection is asked for
    E_CONNECTED = 6
    E_TAKE = 7               # the backend answers by itself
    E_KEEP_HEAD = 8          # the response waits for its first event
    E_BEGIN = 9              # the backend's response goes to the client
    E_RESPOND = 10           # an answer of the gateway, or a whole one, takes its place
    E_CALL_GUARDS = 11               # guards are asked about the response
    E_GUARDS_ANSWERED = 12              # and have answered
    E_RETRY = 13
    E_BACK_OFF = 14
    E_DUE = 15               # the pause between two attempts is over
    E_UPGRADE = 16
    E_FINISH = 17
    N_EVENTS = 18

cdef enum:
    REFUSED = 255

# Next state, or REFUSED for every pair the table does not list.
cdef int next_state(int state, int event) noexcept nogil
