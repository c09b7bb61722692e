"""transformations: metadata, replace, add, set, remove, body, in that order.

An expression that fails, or has an invalid value, changes nothing; a log field has the error.
"""

from headgate_engine.context.headers cimport SPAN_DROPPED, MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program, field_text
from headgate_engine.plan.step cimport CONTINUE, Step
from headgate_engine.wire.scan cimport IS_TARGET, IS_TOKEN, all_of

from headgate_engine.context.field_names import REQUEST_FRAMING, encoded
from headgate_engine.expr.functions import json_text
from headgate_engine.expr.values import EvaluationError

# Expressions must not write these, as they could break framing.
FRAMING = encoded(REQUEST_FRAMING)
REQUEST_PSEUDO = (b":method", b":path", b":authority", b":scheme")
FAILED = "transformation.failed"
# Statuses without a body, and methods that affect the response body.
BODILESS = (204, 304)
UNCHANGED = (b"HEAD", b"CONNECT")


def _name(str name, bint response):
    raw = name.lower().encode("ascii")
    if raw == b"host" and not response:
        return b":authority"
    if raw in FRAMING:
        raise ValueError(f"{name!r} belongs to the connection and cannot be changed here")
    if raw.startswith(b":"):
        if raw not in ((b":status",) if response else REQUEST_PSEUDO):
            raise ValueError(f"there is no {name!r} here")
    elif not raw or not all_of(raw, len(raw), IS_TOKEN):
        raise ValueError(f"{name!r} is not a header name")
    return raw


def _removable(str name, bint response):
    raw = _name(name, response)
    if raw.startswith(b":"):
        raise ValueError(f"{name!r} cannot be removed: every message has it")
    return raw


cdef class TransformStep(Step):
    """The request or the response half of the policy.

    metadata, added, replaced: pairs of name and Program. replace, body: a Program. Raises ValueError for names that cannot
    be changed.
    """

    def __init__(self, bint response, *, metadata=(), replace=None, added=(), replaced=(), removed=(), body=None):
        self.name = "transformations"
        self.response = response
        self.metadata = tuple(metadata)
        self.replace = replace
        self.added = tuple((_name(name, response), program) for name, program in added)
        self.replaced = tuple((_name(name, response), program) for name, program in replaced)
        self.removed = tuple(_removable(name, response) for name in removed)
        self.body = body

    cdef int run(self, RequestContext ctx) except -1:
        if self.response:
            return self.apply(ctx, ctx.response)
        return self.apply(ctx, ctx.head)

    cdef int apply(self, RequestContext ctx, MessageHead head) except -1:
        if self.metadata:
            self._metadata(ctx)
        if self.replace is not None:
            self._replace(ctx, head)
        for name, program in self.added:
            self.put(ctx, head, <bytes>name, (<Program>program).header_value(ctx), True)
        for name, program in self.replaced:
            self.put(ctx, head, <bytes>name, (<Program>program).header_value(ctx), False)
        for name in self.removed:
            head.drop_field(<bytes>name, len(<bytes>name))
        if self.body is not None:
            self._body(ctx)
        return CONTINUE

    def _metadata(self, RequestContext ctx):
        for key, program in self.metadata:
            try:
                value = (<Program>program).evaluate(ctx)
            except EvaluationError:
                ctx.add_log_field(FAILED, key)
                continue
            if ctx.metadata is None:
                ctx.metadata = {}
            ctx.metadata[key] = value

    def _replace(self, RequestContext ctx, MessageHead head):
        """Replace all regular fields, except those that frame the message."""
        cdef int i
        try:
            wanted = (<Program>self.replace).evaluate(ctx)
        except EvaluationError:
            wanted = None
        if not isinstance(wanted, dict):
            ctx.add_log_field(FAILED, "replace")
            return
        fields = []
        for name, value in wanted.items():
            if not isinstance(name, str) or name.startswith(":"):
                continue
            raw = name.lower().encode("utf-8", "replace")
            if raw in FRAMING or not raw or not all_of(raw, len(raw), IS_TOKEN):
                continue
            for one in value if isinstance(value, (list, tuple)) else (value,):
                text = field_text(one)
                if text is not None:
                    fields.append((raw, text))
        for i in range(head.count):
            known = head.data[head.spans[i].name_off:head.spans[i].name_off + head.spans[i].name_len].lower()
            if known not in FRAMING:
                head.spans[i].flags |= SPAN_DROPPED
        for raw, text in fields:
            head.add_field(<bytes>raw, len(<bytes>raw), <bytes>text, len(<bytes>text))

    cdef int put(self, RequestContext ctx, MessageHead head, bytes name, bytes value, bint keep) except -1:
        if value is None or name.startswith(b":") and not self._pseudo(ctx, head, name, value):
            ctx.add_log_field(FAILED, name.decode())
        elif not name.startswith(b":"):
            if not keep:
                head.drop_field(name, len(name))
            head.add_field(name, len(name), value, len(value))
        return 0

    def _pseudo(self, RequestContext ctx, MessageHead head, bytes name, bytes value):
        """Set a part of the start line. Return False if the value is invalid there."""
        if name == b":status":
            if not value.isdigit() or not 200 <= int(value) <= 599:
                return False
            # A message that has begun without a body cannot get one. The reverse can: the body is dropped.
            if int(value) != head.status:
                if head.status < 200 or head.status in BODILESS and int(value) not in BODILESS:
                    return False
                head.status = int(value)
                head.reason_len = 0
            return True
        if not value or not all_of(value, len(value), IS_TARGET):
            return False
        if name == b":path":
            if not value.startswith(b"/") or b"#" in value:
                return False
            head.set_target(value, len(value))
        elif name == b":authority":
            if any(c in b"/?#@" for c in value):
                return False
            head.set_authority(value, len(value))
        elif name == b":method":
            # Responses to HEAD have no body, so HEAD cannot replace another method, nor another method HEAD.
            if not all_of(value, len(value), IS_TOKEN) or value in UNCHANGED or head.method.encode() in UNCHANGED:
                return value == head.method.encode()
            head.set_request(value.decode(), head.target, head.authority)
        else:
            return value in (b"http", b"https")       # the backend's own TLS setting decides
        return True

    def _body(self, RequestContext ctx):
        try:
            value = (<Program>self.body).evaluate(ctx)
            if isinstance(value, str):
                raw = value.encode("utf-8", "surrogateescape")
            elif type(value) is bytes:
                raw = value
            else:
                raw = json_text(value).encode()
        except EvaluationError:
            ctx.add_log_field(FAILED, "body")
            return
        if self.response:
            if ctx.response_body is not None and not ctx.response_cut:
                ctx.response_body = raw
        else:
            ctx.replace_body(raw)
