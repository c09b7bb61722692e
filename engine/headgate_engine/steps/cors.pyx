"""CORS: https://fetch.spec.whatwg.org/#http-cors-protocol."""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.plan.step cimport CONTINUE, RESPOND, Step

from libc.string cimport memcmp

DEFAULT_PORTS = {b"http": b":80", b"https": b":443"}
MAX_KNOWN = 1024
# The response depends on the origin of the request: https://fetch.spec.whatwg.org/#cors-protocol-and-http-caches
VARY = (b"vary", b"Origin")


def normalised(bytes origin):
    """Return an origin in lower case without its scheme's default port."""
    origin = origin.lower()
    scheme, mark, host = origin.partition(b"://")
    port = DEFAULT_PORTS.get(scheme)
    return scheme + mark + (host.removesuffix(port) if port is not None else host)


cdef class OriginRule:
    """`*`, or scheme://host[:port] with wildcards `*` in the host. Raises ValueError for anything else.

    A wildcard matches characters of host names only: letters, digits, hyphens, underscores and dots.
    """

    def __init__(self, str text):
        if not text.isascii():
            raise ValueError(f"{text!r} is not ASCII: write names of hosts as punycode (xn--...)")
        raw = text.encode("ascii")
        self.any_origin = raw == b"*"
        if self.any_origin:
            return
        scheme, mark, host = raw.partition(b"://")
        if not mark or scheme.lower() not in DEFAULT_PORTS or not host or any(c in b"/?#@ " for c in host):
            raise ValueError(f"{text!r} is not an origin such as https://a.example:8443")
        raw = normalised(raw)
        if b"*" in host:
            self.parts = tuple(raw.split(b"*"))
        else:
            self.exact = raw

    cdef bint matches(self, bytes origin) except -1:
        if self.any_origin:
            return True
        if self.exact is not None:
            return origin == self.exact
        # With as many colons as the rule, no wildcard matches the colon of a port.
        return (covers(self.parts, origin) and is_plain(origin)
                and origin.count(b":") == sum(part.count(b":") for part in self.parts))

    def admits(self, bytes origin):
        """Return whether the rule matches an origin as a browser sends it."""
        return bool(self.matches(normalised(origin)))


cdef bint is_plain(bytes origin) except -1:
    """Return whether an origin is a scheme, a host name of non-empty labels and at most one numeric port.

    A browser sends nothing else for a host name (https://fetch.spec.whatwg.org/#origin-header). Other clients may put
    a delimiter of URLs before the end that a wildcard expects.
    """
    _, _, rest = origin.partition(b"://")
    host, colon, port = rest.partition(b":")
    if colon and not port.isdigit():
        return False
    return all(label.translate(None, b"-_").isalnum() for label in host.split(b"."))


cdef bint covers(tuple parts, bytes text) except -1:
    """Return whether a pattern matches.

    A star matches any characters, also none; `parts` are the texts between stars.
    """
    cdef Py_ssize_t at
    first, last = parts[0], parts[len(parts) - 1]
    if not text.startswith(first) or len(text) < len(first) + len(last):
        return False
    at = len(first)
    for part in parts[1:len(parts) - 1]:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return text.endswith(last) and at <= len(text) - len(last)


cdef class CorsStep(Step):
    """origins: as for OriginRule. methods, headers, exposed: names; `*` allows the requested ones. max_age: seconds."""

    def __init__(self, origins, methods=(), headers=(), exposed=(), bint credentials=False, max_age=None):
        self.name = "cors"
        self.origins = tuple(OriginRule(text) for text in origins)
        self.any_method, self.any_header = "*" in methods, "*" in headers
        self.method_list = ",".join(methods).encode("ascii")
        self.header_list = ",".join(headers).encode("ascii")
        self.exposed_list = ",".join(exposed).encode("ascii")
        self.credentials = credentials
        self.max_age = None if max_age is None else b"%d" % max_age
        self.known = {}

    cdef bint allows(self, bytes origin) except -1:
        found = self.known.get(origin)
        if found is None:
            plain = normalised(origin)
            found = any((<OriginRule>rule).matches(plain) for rule in self.origins)
            if len(self.known) >= MAX_KNOWN:
                self.known.clear()
            self.known[origin] = found
        return found

    cdef int run(self, RequestContext ctx) except -1:
        cdef MessageHead head = ctx.head
        cdef int i = head.find(b"origin", 6, 0)
        cdef int asked
        cdef bytes origin
        cdef bint allowed
        if i < 0:
            ctx.set_response_header(b"vary", b"Origin")
            return CONTINUE
        origin = head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len]
        allowed = self.allows(origin)
        asked = -1
        if head.method_len == 7 and memcmp(head.data + head.method_off, b"OPTIONS", 7) == 0:
            asked = head.find(b"access-control-request-method", 29, 0)
        if asked >= 0 and head.spans[asked].value_len:
            ctx.reply = Reply(200, b"", self._preflight(head, origin, asked) if allowed else (VARY,),
                              "DirectResponse")
            return RESPOND
        ctx.set_response_header(b"vary", b"Origin")
        if allowed:
            ctx.set_response_header(b"access-control-allow-origin", origin)
            if self.credentials:
                ctx.set_response_header(b"access-control-allow-credentials", b"true")
            if self.exposed_list:
                ctx.set_response_header(b"access-control-expose-headers", self.exposed_list)
        return CONTINUE

    cdef tuple _preflight(self, MessageHead head, bytes origin, int asked):
        fields = [(b"access-control-allow-origin", origin), VARY]
        method = head.data[head.spans[asked].value_off:head.spans[asked].value_off + head.spans[asked].value_len]
        wanted = head.get("access-control-request-headers")
        if self.any_method:
            fields.append((b"access-control-allow-methods", method))
        elif self.method_list:
            fields.append((b"access-control-allow-methods", self.method_list))
        if self.any_header and wanted:
            names = ", ".join(part.strip() for part in wanted.split(","))
            fields.append((b"access-control-allow-headers", names.encode("utf-8", "surrogateescape")))
        elif self.any_header and not self.credentials:
            fields.append((b"access-control-allow-headers", b"*"))
        elif self.header_list and not self.any_header:
            fields.append((b"access-control-allow-headers", self.header_list))
        if self.max_age is not None:
            fields.append((b"access-control-max-age", self.max_age))
        if self.credentials:
            fields.append((b"access-control-allow-credentials", b"true"))
        if self.exposed_list:
            fields.append((b"access-control-expose-headers", self.exposed_list))
        return tuple(fields)
