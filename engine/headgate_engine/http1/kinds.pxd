# Roles, events and body modes of the HTTP/1.1 codec.

cdef enum Role:
    ROLE_SERVER = 0       # receives requests, sends responses
    ROLE_CLIENT = 1       # sends requests, receives responses

cdef enum Event:
    EV_NEED_DATA = 0
    EV_HEAD = 1           # self.head is set; the caller gets it with take_head()
    EV_INFORMATIONAL = 2  # 1xx response (not 101): self.head is set
    EV_DATA = 3           # self.data_ptr, self.data_len: body bytes, framing removed
    EV_END = 4            # the message is complete; self.trailers (MessageHead or None)
    EV_PAUSED = 5         # the message is complete, the other direction is not; call start_next_cycle() to continue
    EV_UPGRADED = 6       # tunnel: all later bytes are raw; leftover() returns those already read
    EV_CLOSED = 7         # clean end of input

cdef enum BodyMode:
    BODY_NONE = 0
    BODY_LENGTH = 1
    BODY_CHUNKED = 2
    BODY_UNTIL_CLOSE = 3
