"""Credential locations: header with prefix, query parameter, cookie, expression."""

from urllib.parse import quote_from_bytes, unquote_to_bytes

from headgate_engine.context.headers cimport H_COOKIE, SPAN_SENSITIVE, MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program
from headgate_engine.expr.values cimport Redacted
from headgate_engine.wire.scan cimport lower

from headgate_engine.context.redact import HiddenParameter
from headgate_engine.expr.values import EvaluationError

KINDS = {"header": IN_HEADER, "query": IN_QUERY, "cookie": IN_COOKIE, "expression": IN_EXPRESSION}


cdef class CredentialLocation:
    """A place of a credential in requests.

    kind: header, query, cookie or expression. prefix: of a header's value, in any case. program: the expression.
    """

    def __init__(self, str kind, str name="", str prefix="", Program program=None):
        self.kind = KINDS[kind]
        self.name = (name.lower() if kind == "header" else name).encode()
        self.prefix = prefix.lower().encode()
        self.shown = prefix.encode()
        self.program = program
        self.hidden = HiddenParameter(name) if self.kind == IN_QUERY else None
        if self.kind == IN_EXPRESSION and program is None:
            raise ValueError("an expression is missing")

    cdef bytes find(self, RequestContext ctx):
        self.conflict = False
        if self.kind == IN_HEADER:
            return self.in_header(ctx.head)
        if self.kind == IN_QUERY:
            return self.in_query(ctx.head)
        if self.kind == IN_COOKIE:
            return self.in_cookies(ctx.head)
        return self.in_expression(ctx)

    cdef bytes in_header(self, MessageHead head):
        cdef int i = head.find(self.name, len(self.name), 0)
        cdef const char* value
        cdef Py_ssize_t n, j, cut = len(self.prefix)
        cdef const char* prefix = self.prefix
        if i < 0:
            return None
        if head.find(self.name, len(self.name), i + 1) >= 0:
            self.conflict = True
            return None
        value = head.data + head.spans[i].value_off
        n = head.spans[i].value_len
        if n < cut:
            return None
        for j in range(cut):
            if lower(value[j]) != prefix[j]:
                return None
        while cut and cut < n and value[cut] == 32:
            cut += 1
        return value[cut:n] if n > cut else None

    cdef bytes in_query(self, MessageHead head):
        cdef bytes query
        if head.path_len + 1 >= head.target_len:
            return None
        query = head.data[head.target_off + head.path_len + 1:head.target_off + head.target_len]
        if self.name not in query and b"%" not in query:
            return None
        found = None
        for part in query.split(b"&"):
            key, _, value = part.partition(b"=")
            if unquote_to_bytes(key.replace(b"+", b" ")) == self.name:
                if found is not None:
                    self.conflict = True
                    return None
                found = unquote_to_bytes(value.replace(b"+", b" "))
        return found or None

    cdef bytes in_cookies(self, MessageHead head):
        cdef int i = head.find_id(H_COOKIE, 0)
        found = None
        while i >= 0:
            line = head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len]
            for part in line.split(b";"):
                key, equals, value = part.strip(b" \t").partition(b"=")
                if equals and key == self.name:
                    if found is not None and found != value:
                        self.conflict = True
                        return None
                    found = value
            i = head.find_id(H_COOKIE, i + 1)
        return found or None

    cdef bytes in_expression(self, RequestContext ctx):
        try:
            value = (<Program>self.program).evaluate(ctx)
        except EvaluationError:
            return None
        if type(value) is Redacted:
            return (<Redacted>value).text
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape") or None
        return value if type(value) is bytes and value else None

    cdef int drop(self, RequestContext ctx) except -1:
        if self.kind == IN_HEADER:
            ctx.head.drop_field(self.name, len(self.name))
        elif self.kind == IN_QUERY:
            self.rewrite_query(ctx.head, None)
        elif self.kind == IN_COOKIE:
            self.rewrite_cookies(ctx.head, None)
        return 0

    cdef int put(self, RequestContext ctx, bytes value) except -1:
        cdef MessageHead head = ctx.head
        cdef bytes whole
        if self.kind == IN_HEADER:
            whole = self.shown + value
            head.drop_field(self.name, len(self.name))
            head.add_field(self.name, len(self.name), whole, len(whole))
            head.spans[head.count - 1].flags |= SPAN_SENSITIVE
        elif self.kind == IN_QUERY:
            self.rewrite_query(head, value)
        elif self.kind == IN_COOKIE:
            self.rewrite_cookies(head, value)
        else:
            raise ValueError("a credential cannot be put where an expression reads it")
        return 0

    cdef int rewrite_query(self, MessageHead head, bytes value) except -1:
        """Remove the parameter. With a value, append it at the end."""
        cdef bytes path = head.data[head.target_off:head.target_off + head.path_len]
        cdef bytes query = head.data[head.target_off + head.path_len + 1:head.target_off + head.target_len] \
            if head.target_len > head.path_len else b""
        cdef bytes target
        parts = [part for part in query.split(b"&")
                 if part and unquote_to_bytes(part.partition(b"=")[0].replace(b"+", b" ")) != self.name]
        if value is not None:
            parts.append(quote_from_bytes(self.name, safe="").encode() + b"=" + quote_from_bytes(value, safe="").encode())
        target = path + (b"?" + b"&".join(parts) if parts else b"")
        return head.set_target(target, len(target))

    cdef int rewrite_cookies(self, MessageHead head, bytes value) except -1:
        cdef int i = head.find_id(H_COOKIE, 0)
        cdef bytes line
        parts = []
        while i >= 0:
            line = head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len]
            for part in line.split(b";"):
                part = part.strip(b" \t")
                if part and part.partition(b"=")[0] != self.name:
                    parts.append(part)
            i = head.find_id(H_COOKIE, i + 1)
        head.drop_id(H_COOKIE)
        if value is not None:
            parts.append(self.name + b"=" + value)
        if parts:
            line = b"; ".join(parts)
            head.add_field(b"cookie", 6, line, len(line))
            head.spans[head.count - 1].flags |= SPAN_SENSITIVE
        return 0

    # -- Python face -------------------------------------------------------------------------------------------------
    def take(self, RequestContext ctx):
        """Remove the credential from the request and return it, None if there is none or more than one."""
        found = self.find(ctx)
        if found is not None:
            self.drop(ctx)
        return found

    def set(self, RequestContext ctx, bytes value):
        """Set the credential, replacing the client's."""
        self.put(ctx, value)
