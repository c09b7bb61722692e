"""Static header modifiers, in the order add, set, remove."""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport CONTINUE, Step

# Fields the connection owns: a modifier that could write them could break framing (RFC 9112 section 6).
FRAMING = frozenset((b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"proxy-connection",
                     b"te", b"trailer", b"upgrade"))


def _field(name, value=""):
    """Name and value as bytes; ValueError for what may not stand in a field (RFC 9110 section 5)."""
    raw_name = name.lower().encode("ascii")
    raw_value = value.encode("utf-8")
    if not raw_name or not all(c in b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz" for c in raw_name):
        raise ValueError(f"{name!r} is not a header name")
    if raw_name in FRAMING:
        raise ValueError(f"header {name!r} belongs to the connection and cannot be modified")
    if any(c < 32 and c != 9 or c == 127 for c in raw_value):
        raise ValueError(f"header {name!r} has a control character in its value")
    return raw_name, raw_value.strip(b" \t")


cdef class HeaderEdit:
    def __init__(self, added, replaced, removed):
        """added, replaced: pairs of str; removed: names."""
        self.added = tuple(_field(name, value) for name, value in added)
        self.replaced = tuple(_field(name, value) for name, value in replaced)
        self.removed = tuple(_field(name)[0] for name in removed)

    cdef int apply(self, MessageHead head) except -1:
        cdef bytes name, value
        for name, value in self.added:
            head.add_field(name, len(name), value, len(value))
        for name, value in self.replaced:
            head.drop_field(name, len(name))
            head.add_field(name, len(name), value, len(value))
        for name in self.removed:
            head.drop_field(name, len(name))
        return 0


def _authority(pairs):
    """Splits a `host` or `:authority` entry off: it sets the authority instead of a field."""
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
