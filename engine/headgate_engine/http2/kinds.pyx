"""Frame types, flags, error codes and settings of HTTP/2 as tables (RFC 9113, RFC 8441 and RFC 9218)."""

from libc.stdint cimport uint32_t

# Name, number, stream ("stream", "connection" or "both"), length of the payload (None: any), least length, flags.
FRAMES = (
    ("DATA", F_DATA, "stream", None, 0, {"END_STREAM": 1, "PADDED": 8}),
    ("HEADERS", F_HEADERS, "stream", None, 0, {"END_STREAM": 1, "END_HEADERS": 4, "PADDED": 8, "PRIORITY": 32}),
    ("PRIORITY", F_PRIORITY, "stream", 5, 5, {}),
    ("RST_STREAM", F_RST_STREAM, "stream", 4, 4, {}),
    ("SETTINGS", F_SETTINGS, "connection", None, 0, {"ACK": 1}),
    ("PUSH_PROMISE", F_PUSH_PROMISE, "stream", None, 4, {"END_HEADERS": 4, "PADDED": 8}),
    ("PING", F_PING, "connection", 8, 8, {"ACK": 1}),
    ("GOAWAY", F_GOAWAY, "connection", None, 8, {}),
    ("WINDOW_UPDATE", F_WINDOW_UPDATE, "both", 4, 4, {}),
    ("CONTINUATION", F_CONTINUATION, "stream", None, 0, {"END_HEADERS": 4}),
    ("PRIORITY_UPDATE", F_PRIORITY_UPDATE, "connection", None, 4, {}),
)
ERRORS = (
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
    "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
)
# Name, number, value before any SETTINGS frame (None: no limit), least, most, error for values beyond.
SETTINGS = (
    ("HEADER_TABLE_SIZE", SET_HEADER_TABLE_SIZE, 4096, 0, 4294967295, "NO_ERROR"),
    ("ENABLE_PUSH", SET_ENABLE_PUSH, 1, 0, 1, "PROTOCOL_ERROR"),
    ("MAX_CONCURRENT_STREAMS", SET_MAX_CONCURRENT_STREAMS, None, 0, 4294967295, "NO_ERROR"),
    ("INITIAL_WINDOW_SIZE", SET_INITIAL_WINDOW_SIZE, 65535, 0, 2147483647, "FLOW_CONTROL_ERROR"),
    ("MAX_FRAME_SIZE", SET_MAX_FRAME_SIZE, 16384, 16384, 16777215, "PROTOCOL_ERROR"),
    ("MAX_HEADER_LIST_SIZE", SET_MAX_HEADER_LIST_SIZE, None, 0, 4294967295, "NO_ERROR"),
    ("ENABLE_CONNECT_PROTOCOL", SET_ENABLE_CONNECT_PROTOCOL, 0, 0, 1, "PROTOCOL_ERROR"),
    ("NO_RFC7540_PRIORITIES", SET_NO_RFC7540_PRIORITIES, 0, 0, 1, "PROTOCOL_ERROR"),
)
WHERE = {"stream": ON_STREAM, "connection": ON_CONNECTION, "both": ON_BOTH}

cdef FrameRule[N_KINDS] RULES
cdef uint32_t[N_SETTINGS] LEAST, MOST
cdef int[N_SETTINGS] FAULT


cdef int _fill() except -1:
    cdef int number
    for number in range(N_KINDS):
        RULES[number].known = 0
    for number in range(N_SETTINGS):
        LEAST[number], MOST[number], FAULT[number] = 0, <uint32_t>4294967295, E_NO_ERROR
    for _, kind, where, length, least, _ in FRAMES:
        number = kind
        RULES[number].known = 1
        RULES[number].where = WHERE[where]
        RULES[number].length = -1 if length is None else length
        RULES[number].least = least
    for _, setting, _, least, most, error in SETTINGS:
        number = setting
        LEAST[number], MOST[number], FAULT[number] = least, most, ERRORS.index(error)
    return 0


_fill()


cdef const FrameRule* rule_of(int kind) noexcept nogil:
    if kind < 0 or kind >= N_KINDS or not RULES[kind].known:
        return NULL
    return &RULES[kind]


cdef int setting_fault(int setting, uint32_t value) noexcept nogil:
    if setting < 1 or setting >= N_SETTINGS or LEAST[setting] <= value <= MOST[setting]:
        return E_NO_ERROR
    return FAULT[setting]


def error_name(int code):
    """Return the name of an error code, its number where it has none."""
    return ERRORS[code] if 0 <= code < len(ERRORS) else str(code)
