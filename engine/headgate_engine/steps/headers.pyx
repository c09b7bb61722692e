"""Static header modifiers, in the order add, set, remove."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from headgate_engine.context.headers cimport (
    H_OTHER, SPAN_ADDED, SPAN_CHECKED, SPAN_DROPPED, HeaderSpan, MessageHead, header_id_of, sensitivity)
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport CONTINUE, Step
from headgate_engine.wire.scan cimport same_lower

from headgate_engine.context.field_names import MESSAGE_FRAMING, encoded

cdef enum:
    MAX_NAME = 65535                     # HeaderSpan.name_len
    FEW = 16                             # most names that are compared one by one

# Modifiers must not write these, as they could break framing (RFC 9112 section 6).
FRAMING = encoded(MESSAGE_FRAMING)


def _field(name, value=""):
    """Return name and value as bytes. Raises ValueError for an invalid field (RFC 9110 section 5)."""
    raw_name = name.lower().encode("ascii")
    raw_value = value.encode("utf-8")
    if not raw_name or not all(c in b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz" for c in raw_name):
        raise ValueError(f"{name!r} is not a header name")
    if raw_name in FRAMING:
        raise ValueError(f"header {name!r} belongs to the connection and cannot be modified")
    if any(c < 32 and c != 9 or c == 127 for c in raw_value):
        raise ValueError(f"header {name!r} has a control character in its value")
    return raw_name, raw_value.strip(b" \t")


cdef inline uint64_t hash_bit(const char* name, Py_ssize_t n) noexcept nogil:
    """Return a bit that depends on a name's length, first and last byte, but not on its case."""
    cdef unsigned int ends = (<unsigned char>name[0] | 32) * 5 + (<unsigned char>name[n - 1] | 32)
    return <uint64_t>1 << ((ends * 7 + <unsigned int>n) & 63)


cdef class HeaderEdit:
    """Fields to add, to set and to remove, in this order, validated and rendered once.

    Applying an edit takes one pass over the fields of the message, whatever the number of changes.
    """

    def __init__(self, added=(), replaced=(), removed=()):
        """added, replaced: pairs of str. removed: names."""
        final = [_field(name, value) for name, value in added]
        gone = set()
        for name, value in replaced:
            pair = _field(name, value)
            gone.add(pair[0])
            final = [one for one in final if one[0] != pair[0]] + [pair]
        for name in removed:
            taken = _field(name)[0]
            gone.add(taken)
            final = [one for one in final if one[0] != taken]
        self._look_for(gone)
        self._lay_out(final)

    def __dealloc__(self):
        PyMem_Free(self.fields)

    def _look_for(self, gone):
        cdef bytes name
        cdef int header_id
        others = []
        self.known = 0
        self.filter = 0
        for name in gone:
            header_id = header_id_of(name, len(name))
            if header_id == H_OTHER:
                others.append(name)
                self.filter |= hash_bit(name, len(name))
            else:
                self.known |= <uint32_t>1 << header_id
        self.names = frozenset(others)
        self.few = tuple(others) if len(others) <= FEW else None

    def _lay_out(self, final):
        cdef bytes name, value
        cdef HeaderSpan* field
        cdef uint32_t at = 0
        PyMem_Free(self.fields)
        self.fields = NULL
        self.count = 0
        self.fields = <HeaderSpan*>PyMem_Calloc(len(final) or 1, sizeof(HeaderSpan))
        if self.fields == NULL:
            raise MemoryError()
        for name, value in final:
            if len(name) > MAX_NAME:
                raise ValueError(f"the header name {name[:20]!r}... is too long")
            field = &self.fields[self.count]
            field.name_off = at
            field.name_len = <uint16_t>len(name)
            field.value_off = at + <uint32_t>len(name)
            field.value_len = <uint32_t>len(value)
            field.id = <uint8_t>header_id_of(name, len(name))
            at += <uint32_t>(len(name) + len(value))
            self.count += 1
        self.text = b"".join(name + value for name, value in final)

    cdef int apply(self, MessageHead head) except -1:
        cdef HeaderSpan field
        cdef uint32_t at
        cdef int i
        if self.known or self.filter:
            for i in range(head.count):
                if self.takes(head, &head.spans[i]):
                    head.spans[i].flags |= SPAN_DROPPED
        if self.count == 0:
            return 0
        at = head._put(self.text, len(self.text))
        for i in range(self.count):
            field = self.fields[i]
            field.name_off += at
            field.value_off += at
            # Fields may become sensitive after this object was made.
            field.flags = SPAN_ADDED | SPAN_CHECKED | sensitivity(field.id, head.data + field.name_off, field.name_len)
            head.push_span(field)
        return 0

    cdef bint takes(self, MessageHead head, HeaderSpan* span) except -1:
        cdef const char* name = head.data + span.name_off
        if span.id != H_OTHER:
            return self.known >> span.id & 1
        if span.name_len == 0 or not self.filter & hash_bit(name, span.name_len):
            return False
        if self.few is None:
            return name[:span.name_len].lower() in self.names
        for other in self.few:
            if len(<bytes>other) == span.name_len and same_lower(name, <bytes>other, span.name_len):
                return True
        return False


def _authority(pairs):
    """Split off a `host` or `:authority` entry: it sets the authority instead of a field."""
    authority = None
    rest = []
    for name, value in pairs:
        if name.lower() in ("host", ":authority"):
            authority = value
        else:
            rest.append((name, value))
    return authority, rest


cdef class RequestHeaderStep(Step):
    def __init__(self, added=(), replaced=(), removed=()):
        self.name = "requestHeaderModifier"
        first, added = _authority(added)
        last, replaced = _authority(replaced)
        authority = last or first
        if authority is not None:
            if not authority or any(c <= " " or c in "/?#@\x7f" for c in authority):
                raise ValueError(f"{authority!r} is not an authority")
            self.authority = authority.encode("ascii")
        self.edit = HeaderEdit(added, replaced, removed)

    cdef int run(self, RequestContext ctx) except -1:
        if self.authority is not None:
            ctx.head.set_authority(self.authority, len(self.authority))
        self.edit.apply(ctx.head)
        return CONTINUE


cdef class ResponseHeaderStep(Step):
    def __init__(self, added=(), replaced=(), removed=()):
        self.name = "responseHeaderModifier"
        self.edit = HeaderEdit(added, replaced, removed)

    cdef int run(self, RequestContext ctx) except -1:
        self.edit.apply(ctx.response)
        return CONTINUE
