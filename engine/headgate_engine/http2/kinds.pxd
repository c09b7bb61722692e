# Numbers of RFC 9113: frame types, flags, error codes and settings. kinds.pyx has their names and rules as tables.

from libc.stdint cimport uint32_t

cdef enum FrameKind:
    F_DATA = 0
    F_HEADERS = 1
    F_PRIORITY = 2
    F_RST_STREAM = 3
    F_SETTINGS = 4
    F_PUSH_PROMISE = 5
    F_PING = 6
    F_GOAWAY = 7
    F_WINDOW_UPDATE = 8
    F_CONTINUATION = 9
    F_PRIORITY_UPDATE = 16    # RFC 9218

cdef enum FrameFlag:
    FLAG_END_STREAM = 1
    FLAG_ACK = 1              # SETTINGS, PING
    FLAG_END_HEADERS = 4
    FLAG_PADDED = 8
    FLAG_PRIORITY = 32

cdef enum ErrorCode:
    E_NO_ERROR = 0
    E_PROTOCOL = 1
    E_INTERNAL = 2
    E_FLOW_CONTROL = 3
    E_SETTINGS_TIMEOUT = 4
    E_STREAM_CLOSED = 5
    E_FRAME_SIZE = 6
    E_REFUSED_STREAM = 7
    E_CANCEL = 8
    E_COMPRESSION = 9
    E_CONNECT = 10
    E_CALM = 11
    E_SECURITY = 12
    E_HTTP_1_1_REQUIRED = 13

cdef enum SettingKind:
    SET_HEADER_TABLE_SIZE = 1
    SET_ENABLE_PUSH = 2
    SET_MAX_CONCURRENT_STREAMS = 3
    SET_INITIAL_WINDOW_SIZE = 4
    SET_MAX_FRAME_SIZE = 5
    SET_MAX_HEADER_LIST_SIZE = 6
    SET_ENABLE_CONNECT_PROTOCOL = 8   # RFC 8441
    SET_NO_RFC7540_PRIORITIES = 9     # RFC 9218
    N_SETTINGS = 10                   # array size: settings above it are unknown

cdef enum:
    FRAME_HEADER = 9
    DEFAULT_TABLE = 4096
    DEFAULT_WINDOW = 65535
    DEFAULT_FRAME = 16384
    MAX_FRAME = 16777215
    MAX_WINDOW = 2147483647
    MAX_STREAM = 2147483647
    N_KINDS = 17

cdef enum StreamRule:
    ON_STREAM = 0             # the stream of the frame must not be 0
    ON_CONNECTION = 1         # must be 0
    ON_BOTH = 2

cdef struct FrameRule:
    int known
    int where                 # StreamRule
    int length                # of the payload; -1: any
    int least                 # the least length without padding

# Rule of a frame type; NULL for types that are unknown, which are read and ignored.
cdef const FrameRule* rule_of(int kind) noexcept nogil

# Returns the error code for a setting with that value, E_NO_ERROR for a good one.
cdef int setting_fault(int setting, uint32_t value) noexcept nogil
