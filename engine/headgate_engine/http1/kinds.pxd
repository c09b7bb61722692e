# What the two halves of an HTTP/1.1 codec and its users tell each other.

cdef enum Role:
    ROLE_SERVER = 0       # receives requests, sends responses
    ROLE_CLIENT = 1       # sends requests, receives responses

cdef enum Event:
    EV_NEED_DATA = 0
    EV_HEAD = 1           # self.head is set; the caller takes it with take_head()
    EV_INFORMATIONAL = 2  # 1xx response (not 101): self.head is set
    EV_DATA = 3           # self.data_ptr, self.data_len: body bytes, framing removed
    EV_END = 4            # message complete; self.trailers (MessageHead or None)
    EV_PAUSED = 5         # the message is complete and the other half is not; call start_next_cycle() to go on
    EV_UPGRADED = 6       # tunnel: everything from here is raw; leftover() gives bytes already read
    EV_CLOSED = 7         # clean end of input

cdef enum BodyMode:
    BODY_NONE = 0
    BODY_LENGTH = 1
    BODY_CHUNKED = 2
    BODY_UNTIL_CLOSE = 3
