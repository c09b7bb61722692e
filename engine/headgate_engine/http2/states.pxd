# The state machines of HTTP/2, as data: see states.pyx.

cdef enum StreamState:
    ST_IDLE = 0
    ST_OPEN = 1
    ST_HALF_LOCAL = 2     # we have sent our end
    ST_HALF_REMOTE = 3    # the peer has sent its end
    ST_CLOSED = 4
    N_STREAM_STATES = 5

cdef enum StreamInput:
    IN_SEND_HEADERS = 0
    IN_SEND_DATA = 1
    IN_SEND_END = 2
    IN_SEND_RESET = 3
    IN_RECV_HEADERS = 4
    IN_RECV_DATA = 5
    IN_RECV_END = 6
    IN_RECV_RESET = 7
    N_STREAM_INPUTS = 8

# One direction of a stream: what of a message may come or leave next.
cdef enum MessageState:
    MS_AWAITING = 0       # no head yet
    MS_BODY = 1
    MS_DONE = 2
    N_MESSAGE_STATES = 3

cdef enum MessageInput:
    MI_INFORMATIONAL = 0
    MI_HEAD = 1
    MI_DATA = 2
    MI_TRAILERS = 3
    MI_END = 4
    N_MESSAGE_INPUTS = 5

cdef enum ConnectionState:
    CS_AWAITING = 0       # the peer's SETTINGS have to come first
    CS_OPEN = 1
    CS_NOTICED = 2        # the first GOAWAY has left: streams that are on their way are still taken
    CS_DRAINING = 3       # the second has: no more streams
    CS_CLOSED = 4
    N_CONNECTION_STATES = 5

cdef enum ConnectionInput:
    CI_SETTINGS = 0
    CI_FRAME = 1          # any other frame
    CI_STREAM = 2         # the peer opens a stream
    CI_NOTICE = 3         # we send a GOAWAY that refuses nothing
    CI_GOAWAY = 4         # we send a GOAWAY with the last stream that is taken
    CI_FAULT = 5
    CI_EOF = 6
    N_CONNECTION_INPUTS = 7

cdef enum:
    MOVE_REFUSED = 255

# The next state, or MOVE_REFUSED for pairs that the tables do not list.
cdef int next_stream(int state, int event) noexcept nogil
cdef int next_message(int state, int event) noexcept nogil
cdef int next_connection(int state, int event) noexcept nogil
