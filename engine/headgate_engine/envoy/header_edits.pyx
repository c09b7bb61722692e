"""What services want done to fields of requests and responses; see header_edits.pxd."""

import logging

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport (
    EDIT_ADD_IF_ABSENT, EDIT_APPEND, EDIT_REPLACE_IF_PRESENT, EDIT_REPLACE_OR_ADD)
from headgate_engine.envoy.wire_format cimport (
    WIRE_BYTES, WIRE_VARINT, WireCursor, WireField, cursor_of, is_utf8, next_field)
from headgate_engine.wire.block cimport is_value
from headgate_engine.wire.scan cimport IS_TOKEN, all_of

from headgate_engine.context.field_names import MESSAGE_FRAMING, encoded

logger = logging.getLogger("headgate.policy")

# How a message ends is the business of the connection.
cdef frozenset FRAMING = encoded(MESSAGE_FRAMING)

cdef enum:
    MOST_NAME = 65535         # bytes, of a head
    MOST_SHOWN = 100


cdef int bad(str what) except -1:
    raise ValueError(f"{what} is malformed")


cdef int read_header(ReadHeader* header, const char* p, Py_ssize_t n) except -1:
    """Reads a HeaderValue."""
    cdef WireCursor cursor = cursor_of(p, n)
    cdef WireField part
    cdef int found
    while True:
        found = next_field(&cursor, &part)
        if found <= 0:
            return bad("a header") if found < 0 else 0
        if part.kind != WIRE_BYTES:
            continue
        if (part.number == 1 or part.number == 2) and not is_utf8(part.data, part.size):
            bad("text of a header")
        if part.number == 1:
            header.name, header.name_size = part.data, part.size
        elif part.number == 2:
            header.text, header.text_size = part.data, part.size
        elif part.number == 3:
            header.raw, header.raw_size = part.data, part.size


cdef int read_append(const char* p, Py_ssize_t n, int action) except -1:
    """Reads a BoolValue."""
    cdef WireCursor cursor = cursor_of(p, n)
    cdef WireField part
    cdef int found
    while True:
        found = next_field(&cursor, &part)
        if found < 0:
            bad("a header")
        if found == 0:
            return action
        if part.number == 1 and part.kind == WIRE_VARINT:
            action = EDIT_APPEND if part.value else EDIT_REPLACE_OR_ADD


cdef class HeaderEdits:
    def __cinit__(self):
        self.edits, self.removed = [], []

    cdef int read_option(self, const char* p, Py_ssize_t n, int usual) except -1:
        cdef WireCursor cursor = cursor_of(p, n)
        cdef WireField field
        cdef int found, action = EDIT_APPEND
        cdef bint chosen = False
        cdef ReadHeader header
        header.name_size = header.text_size = header.raw_size = 0
        while True:
            found = next_field(&cursor, &field)
            if found <= 0:
                break
            if field.number == 1 and field.kind == WIRE_BYTES:                           # header
                read_header(&header, field.data, field.size)
            elif field.number == 2 and field.kind == WIRE_BYTES:                         # append
                action = read_append(field.data, field.size, action if chosen else EDIT_REPLACE_OR_ADD)
                chosen = True
            elif field.number == 3 and field.kind == WIRE_VARINT and not chosen:         # append_action
                action = <int>field.value if field.value <= EDIT_REPLACE_IF_PRESENT else EDIT_APPEND
        if found < 0:
            bad("a header")
        return self.want(usual if not chosen and action == EDIT_APPEND else action, &header)

    cdef int read_value(self, const char* p, Py_ssize_t n, int action) except -1:
        cdef ReadHeader header
        header.name_size = header.text_size = header.raw_size = 0
        read_header(&header, p, n)
        return self.want(action, &header)

    cdef int want(self, int action, ReadHeader* header) except -1:
        """Keeps an edit, if a service may make it."""
        cdef bytes name = header.name[:header.name_size].lower() if header.name_size else b""
        cdef bytes value = b""
        if header.raw_size:
            value = header.raw[:header.raw_size]
        elif header.text_size:
            value = header.text[:header.text_size]
        if name[:1] == b":" or name == b"host":
            self.edits.append((action, name, value))
            return 0
        value = value.strip(b" \t")
        if name in FRAMING or not 0 < len(name) <= MOST_NAME or not all_of(name, len(name), IS_TOKEN) or (
                not is_value(value, len(value))):
            logger.debug("the service may not set this field", extra={"field": name[:MOST_SHOWN].decode("utf-8", "replace")})
            return 0
        self.edits.append((action, name, value))
        return 0

    cdef int read_removed(self, const char* p, Py_ssize_t n) except -1:
        cdef bytes name = p[:n].lower()
        if not is_utf8(p, n):
            bad("the name of a header")
        if name not in FRAMING and name != b"host" and name.isascii():
            self.removed.append(name)
        return 0

    cdef int read_mutation(self, const char* p, Py_ssize_t n) except -1:
        cdef WireCursor cursor = cursor_of(p, n)
        cdef WireField field
        cdef int found
        while True:
            found = next_field(&cursor, &field)
            if found <= 0:
                return bad("a header mutation") if found < 0 else 0
            if field.kind != WIRE_BYTES:
                continue
            if field.number == 1:
                self.read_option(field.data, field.size, EDIT_REPLACE_OR_ADD)
            elif field.number == 2:
                self.read_removed(field.data, field.size)

    cdef bint touches_start(self) noexcept:
        for _, name, _ in self.edits:
            if (<bytes>name)[:1] == b":" or <bytes>name == b"host":
                return True
        return False


cdef int apply_edit(MessageHead head, int action, bytes name, bytes value) except -1:
    cdef bint there = action != EDIT_APPEND and head.find(name, len(name), 0) >= 0
    if action == (EDIT_ADD_IF_ABSENT if there else EDIT_REPLACE_IF_PRESENT):
        return 0
    if there:
        head.drop_field(name, len(name))
    return head.add_field(name, len(name), value, len(value))


cdef int apply_edits(HeaderEdits wanted, MessageHead head, int side) except -1:
    cdef bytes name, value
    for name in wanted.removed:
        head.drop_field(name, len(name))
    for action, name, value in wanted.edits:
        if name[:1] != b":" and name != b"host":
            apply_edit(head, action, name, value)
        elif side == OF_REQUEST:
            edit_start(head, name, value)
        elif side == OF_RESPONSE and name == b":status":
            edit_status(head, value)
    return 0


cdef int edit_status(MessageHead head, bytes value) except -1:
    if len(value) == 3 and value.isdigit() and 200 <= int(value) <= 599:
        head.status = int(value)
    else:
        logger.debug("the service has set a status that is not valid")
    return 0


cdef int edit_start(MessageHead head, bytes name, bytes value) except -1:
    """Changes the start line: its method, path or authority. The field `host` is left alone."""
    cdef str text = value.decode("utf-8", "surrogateescape")
    method, target, authority = head.method, head.target, head.authority
    if name == b":method" and text and text != "CONNECT":
        method = text
    elif name == b":path" and text.startswith("/") and "#" not in text:
        target = text
    elif name == b":authority" and text and not set(text) & set("/?#@"):
        authority = text
    else:
        logger.debug("the service may not set this", extra={"field": name.decode("utf-8", "replace")})
        return 0
    try:
        head.set_request(method, target, authority)
    except ValueError:
        logger.debug("the service has set what is not valid", extra={"field": name.decode("utf-8", "replace")})
    return 0
