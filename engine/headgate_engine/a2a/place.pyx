"""URLs of agents, as their clients reach them through the gateway; see place.pxd."""

from libc.stdint cimport uint8_t

from headgate_engine.steps.a2a cimport card_suffix

cdef dict PORTS = {"http": ":80", "https": ":443"}
# Characters of a path, or of an authority, that go into a URL as they are (RFC 3986 section 2; what is escaped stays so).
cdef bytes PLAIN = b"!$&'()*+,-./:;=@_~%[]"


cdef str _clean(bytes text):
    """Return a part of a URL with everything else escaped."""
    cdef uint8_t c
    for c in text:
        if not (48 <= c <= 57 or 65 <= c <= 90 or 97 <= c <= 122 or c in PLAIN):
            return "".join([chr(b) if chr(b).isascii() and (chr(b).isalnum() or b in PLAIN) else f"%{b:02X}" for b in text])
    return text.decode("ascii")


cdef str _base(bytes path):
    cdef Py_ssize_t n = len(path)
    return _clean(path[:n - card_suffix(path, n)].rstrip(b"/"))


cdef bint _below(str path, str base):
    """Whether a path is a base or below it, by whole segments."""
    return path.startswith(base) and (len(path) == len(base) or path[len(base)] == "/")


cdef class AgentPlace:
    """client_path, agent_path: path of the agent card, as the client asked for it and as the agent gets it. rewrite: the
    path prefix that the route has matched, and what it has put there.
    """

    def __init__(self, str scheme not None, bytes authority not None, bytes client_path not None, bytes agent_path not None,
                 tuple rewrite=None):
        if scheme not in PORTS:
            raise ValueError("the scheme is neither http nor https")
        self.scheme = scheme
        self.authority = _clean(authority)
        self.client_base = _base(client_path)
        self.agent_base = _base(agent_path)
        if rewrite is not None:
            matched, replaced = rewrite
            self.matched = _clean(<bytes?>matched).rstrip("/")
            self.replaced = _clean(<bytes?>replaced).rstrip("/")

    cpdef str url_for(self, str url, bint base=False):
        cdef str scheme, path, query, mark, authority
        if url is None:
            raise TypeError("a URL is wanted")
        scheme, mark, path = url.partition("://")
        if mark:
            scheme = scheme.lower()
            if scheme != "http" and scheme != "https":
                return self._endpoint()
            if self._is_own(scheme, path):
                return url
            authority, mark, path = path.partition("/")
            path = mark + path
            if "?" in authority or "#" in authority:
                path = authority[min([authority.find(c) for c in "?#" if c in authority]):]
        elif url.startswith("/"):
            path = url
        else:
            return self._endpoint()
        path = path.partition("#")[0]
        path, mark, query = path.partition("?")
        path = self._path_for(path)
        if base and not mark and path == self.client_base + "/":
            path = self.client_base
        return f"{self.scheme}://{self.authority}{path}{mark}{query}"

    cdef str _path_for(self, str path):
        if _below(path, self.agent_base):
            return self.client_base + path[len(self.agent_base):]
        if self.replaced is not None and _below(path, self.replaced):
            return self.matched + path[len(self.replaced):]
        # A path that is not one of the backend's, as an agent says that knows itself at a root: below the agent's own.
        return self.client_base + path

    cdef bint _is_own(self, str scheme, str rest):
        """Whether a URL leads to the agent through the gateway already: the agent knows its public URL."""
        cdef str authority, path
        authority, _, path = rest.partition("?")[0].partition("/")
        return (self.client_base != "" and scheme == self.scheme and _below("/" + path, self.client_base)
                and authority.lower().removesuffix(PORTS[scheme]) == self.authority.lower().removesuffix(PORTS[scheme]))

    cdef str _endpoint(self):
        """Return host and port: gRPC knows neither scheme nor path, and its default port is not that of HTTP."""
        if self.authority.rpartition("]")[2].rpartition(":")[1]:
            return self.authority
        return self.authority + PORTS[self.scheme]
