"""urlRewrite and requestRedirect."""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.plan.plans cimport Delegation
from headgate_engine.plan.step cimport CONTINUE, RESPOND, Step
from headgate_engine.route.table cimport RouteRule
from headgate_engine.wire.scan cimport IS_TARGET, all_of

DEFAULT_PORTS = {b"http": b"80", b"https": b"443"}
PREFIX = "prefix"


cdef bytes checked(str text, str what):
    raw = text.encode("ascii")
    if not raw or not all_of(raw, len(raw), IS_TARGET):
        raise ValueError(f"{text!r} is not {what}")
    return raw


cdef tuple split_port(bytes authority):
    """Split an authority into host and port (without the colon, empty if there is none)."""
    host, colon, port = authority.rpartition(b":")
    if not colon or b"]" in port:
        return authority, b""
    return host, port


cdef class AuthorityChange:
    """A new authority: one of full, host, port (0: none). Raises ValueError if it is invalid."""

    def __init__(self, str full=None, str host=None, int port=0):
        self.full = None if full is None else checked(full, "an authority")
        self.host = None if host is None else checked(host, "a host")
        self.port = port
        if any(c in b"/?#@" for c in self.full or self.host or b""):
            raise ValueError("an authority is host or host:port")

    cdef bytes apply(self, bytes authority, bint keep_port):
        """Return the changed authority. keep_port: whether a new host keeps the port of the old one."""
        if self.full is not None:
            return self.full
        host, port = split_port(authority)
        if self.host is not None:
            return self.host + (b":" + port if port and keep_port else b"")
        return host + b":%d" % self.port if self.port else authority


cdef class PathChange:
    """A new path. full: the whole path. prefix: replaces the prefix that the route matched. The query stays.

    level: which of the routes that have delegated the request; below 0: the one that has it.
    """

    def __init__(self, str full=None, str prefix=None, int level=-1):
        if (full is None) == (prefix is None):
            raise ValueError("either full or prefix")
        self.full = None if full is None else self._path(full)
        self.prefix = None if prefix is None else self._path(prefix)
        # What goes before the rest of a path, which begins with a slash.
        self.stem = None if prefix is None else self.prefix.rstrip(b"/")
        self.level = level

    def _path(self, str text):
        raw = checked(text if text.startswith("/") else f"/{text}", "a path")
        if any(c in b"?#" for c in raw):
            # What is behind it may be a credential.
            bare = text.partition("?")[0].partition("#")[0]
            raise ValueError(f"{bare!r} is not all: a path has no query or fragment")
        return raw

    cdef RouteRule rule_of(self, RequestContext ctx):
        cdef Delegation delegation = <Delegation?>ctx.delegation if self.level >= 0 and ctx.delegation is not None else None
        if delegation is None or self.level >= len(delegation.rules):
            return <RouteRule>ctx.rule
        return <RouteRule?>delegation.rules[self.level]

    cdef bytes apply(self, RequestContext ctx):
        cdef MessageHead head = ctx.head
        cdef bytes path = head.data[head.target_off:head.target_off + head.path_len]
        cdef bytes query = head.data[head.target_off + head.path_len:head.target_off + head.target_len]
        cdef RouteRule rule
        if self.full is not None:
            return self.full + query
        rule = self.rule_of(ctx)
        if rule is None or rule.path_kind != PREFIX:
            return None
        # The matched prefix ends with a segment, so the rest is empty or begins with a slash.
        rest = path[rule.prefix_length():]
        return (self.stem + rest if rest else self.prefix) + query


cdef class RewriteStep(Step):
    """urlRewrite. failed: the reply if there is no prefix to replace."""

    def __init__(self, AuthorityChange authority, PathChange path, Reply failed):
        self.name = "urlRewrite"
        self.authority = authority
        self.path = path
        self.failed = failed

    cdef int run(self, RequestContext ctx) except -1:
        cdef MessageHead head = ctx.head
        cdef bytes found
        if self.path is not None:
            found = self.path.apply(ctx)
            if found is None:
                ctx.reply = self.failed
                return RESPOND
            head.set_target(found, len(found))
        if self.authority is not None:
            # The port of the client's URL belongs to the gateway, not to the new host.
            found = self.authority.apply(head.data[head.authority_off:head.authority_off + head.authority_len], False)
            head.set_authority(found, len(found))
        return CONTINUE


cdef class RedirectStep(Step):
    """requestRedirect: an absolute Location. scheme None keeps the request's. failed: as for RewriteStep."""

    def __init__(self, str scheme, AuthorityChange authority, PathChange path, int status, Reply failed):
        self.name = "requestRedirect"
        self.scheme = None if scheme is None else checked(scheme.lower(), "a scheme")
        self.authority = authority
        self.path = path
        if not 300 <= status <= 399:
            raise ValueError(f"status {status} is not a redirect status")
        self.status = status
        self.failed = failed

    cdef int run(self, RequestContext ctx) except -1:
        cdef MessageHead head = ctx.head
        cdef bytes own = b"https" if ctx.secure else b"http"
        cdef bytes scheme = self.scheme if self.scheme is not None else own
        cdef bytes authority = head.data[head.authority_off:head.authority_off + head.authority_len]
        cdef bytes target = head.data[head.target_off:head.target_off + head.target_len]
        if self.path is not None:
            target = self.path.apply(ctx)
            if target is None:
                ctx.reply = self.failed
                return RESPOND
        if self.authority is not None:
            # A configured scheme brings its own port.
            authority = self.authority.apply(authority, self.scheme is None)
        elif self.scheme is not None and self.scheme != own:
            authority = split_port(authority)[0]
        host, port = split_port(authority)
        if port and port == DEFAULT_PORTS.get(scheme):
            authority = host
        ctx.reply = Reply(self.status, b"", ((b"location", scheme + b"://" + authority + target),), "DirectResponse")
        return RESPOND
