"""Route choice. Exact path, then the longest prefix, then patterns; within a path: a method before none, more headers,
more query conditions, then configuration order. A more specific host whose rules do not match falls through to a less
specific one.

Look-ups hash whole names and paths with Python's keyed hash, so that no choice of paths makes them slow, and prefixes
only at segment borders where a prefix of that length exists.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.string cimport memchr, memcmp

from headgate_engine.context.headers cimport MessageHead, new_head, recycle_head
from headgate_engine.wire.scan cimport lower

import urllib.parse

import re2

# Memory a user's pattern may compile to.
PATTERN_MEMORY = 1 << 20
MAX_HOST = 255
PSEUDO = (":method", ":path", ":authority", ":scheme")


def compile_pattern(str text):
    """A pattern that must match a whole value; ValueError when the linear-time engine cannot run it."""
    options = re2.Options()
    options.max_mem = PATTERN_MEMORY
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    try:
        return re2.compile(text.encode("utf-8"), options=options)
    except re2.error as error:
        raise ValueError(f"pattern {text!r}: {error}") from None


cdef class ValuePredicate:
    def __init__(self, str name, str kind, str text):
        if kind not in ("exact", "regex"):
            raise ValueError(f"{kind!r} is no kind of match")
        self.name = name
        self.kind = kind
        self.text = text
        self.raw_name = name.lower().encode()
        if kind == "exact":
            self.exact = text.encode()
        else:
            self.pattern = compile_pattern(text)

    cdef bint holds(self, const char* value, Py_ssize_t n) except -1:
        if self.pattern is None:
            return n == len(self.exact) and memcmp(value, <char*>self.exact, n) == 0
        return self.pattern.fullmatch(value[:n]) is not None


cdef class RouteRule:
    """One match entry. hostnames: exact or `*.suffix`, empty for any; path_kind: exact, prefix or regex; headers and
    query: (name, 'exact' | 'regex', text); target: what match gives back; order: lower wins among equals."""

    def __init__(self, *, hostnames=(), str path_kind="prefix", str path="/", str method=None, headers=(), query=(),
                 target=None, int order=0):
        if path_kind not in ("exact", "prefix", "regex"):
            raise ValueError(f"{path_kind!r} is no kind of path match")
        self.hostnames = tuple(hostnames)
        self.path_kind = path_kind
        self.path = path
        self.method = method
        self.raw_method = None if method is None else method.encode()
        self.headers = tuple(ValuePredicate(name.lower(), kind, text) for name, kind, text in headers)
        self.query = tuple(_query_predicate(name, kind, text) for name, kind, text in query)
        self.target = target
        self.order = order
        self.raw_path = path.encode()
        if path_kind == "regex":
            self.pattern = compile_pattern(path)
        elif path_kind == "prefix":
            self.raw_path = self.raw_path.rstrip(b"/")

    def rank(self):
        """Sort key among the rules of one path."""
        return (self.method is None, -len(self.headers), -len(self.query), self.order)

    cdef bint accepts(self, MessageHead head) except -1:
        cdef ValuePredicate predicate
        if self.raw_method is not None and not (
                head.method_len == len(self.raw_method)
                and memcmp(head.data + head.method_off, <char*>self.raw_method, head.method_len) == 0):
            return False
        for predicate in self.headers:
            if not self._header_holds(predicate, head):
                return False
        if self.query:
            values = query_values(head)
            for predicate in self.query:
                value = values.get(predicate.name)
                if value is None or not predicate.holds(<bytes>value, len(<bytes>value)):
                    return False
        return True

    cdef bint _header_holds(self, ValuePredicate predicate, MessageHead head) except -1:
        cdef int at
        cdef bytes name = predicate.raw_name
        if name.startswith(b":"):
            if name == b":method":
                return predicate.holds(head.data + head.method_off, head.method_len)
            if name == b":path":
                return predicate.holds(head.data + head.target_off, head.target_len)
            if name == b":authority":
                return predicate.holds(head.data + head.authority_off, head.authority_len)
            return False
        at = head.find(name, len(name), 0)
        while at >= 0:
            if predicate.holds(head.data + head.spans[at].value_off, head.spans[at].value_len):
                return True
            at = head.find(name, len(name), at + 1)
        return False


def _query_predicate(name, kind, text):
    # Parameter names are case-sensitive, unlike header names.
    predicate = ValuePredicate(name, kind, text)
    return predicate


cdef dict query_values(MessageHead head):
    """Percent-decoded parameters; of several with one name the last counts."""
    cdef bytes raw
    if head.path_len >= head.target_len:
        return {}
    raw = head.data[head.target_off + head.path_len + 1:head.target_off + head.target_len]
    found = {}
    for pair in raw.split(b"&"):
        name, _, value = pair.partition(b"=")
        key = urllib.parse.unquote_to_bytes(name.replace(b"+", b" ")).decode("utf-8", "replace")
        found[key] = urllib.parse.unquote_to_bytes(value.replace(b"+", b" "))
    return found


cdef class HostBucket:
    def __init__(self, rules):
        exact = {}
        prefix = {}
        self.regex = []
        lengths = bytearray(1)
        for rule in sorted(rules, key=RouteRule.rank):
            raw = (<RouteRule>rule).raw_path
            if rule.path_kind == "exact":
                exact.setdefault(raw, []).append(rule)
            elif rule.path_kind == "prefix":
                prefix.setdefault(raw, []).append(rule)
                if len(raw) >= len(lengths):
                    lengths.extend(bytes(len(raw) + 1 - len(lengths)))
                lengths[len(raw)] = 1
            else:
                self.regex.append(rule)
        self.regex.sort(key=lambda rule: (-len(rule.path), *rule.rank()))
        self.exact = exact
        self.prefix = prefix
        self.prefix_lengths = bytes(lengths)

    cdef RouteRule match(self, MessageHead head):
        cdef const char* path = head.data + head.target_off
        cdef Py_ssize_t n = head.path_len
        cdef Py_ssize_t longest
        cdef const char* lengths = PyBytes_AS_STRING(self.prefix_lengths)
        cdef PyObject* found
        cdef RouteRule rule
        cdef bytes key
        if self.exact:
            key = PyBytes_FromStringAndSize(path, n)
            found = PyDict_GetItem(self.exact, key)
            if found != NULL:
                for rule in <list>found:
                    if rule.accepts(head):
                        return rule
        if self.prefix:
            longest = len(self.prefix_lengths) - 1
            if n < longest:
                longest = n
            while longest >= 0:
                # A prefix ends at the end of the path or before a slash: segments match whole.
                if lengths[longest] and (longest == n or path[longest] == b"/"):
                    key = PyBytes_FromStringAndSize(path, longest)
                    found = PyDict_GetItem(self.prefix, key)
                    if found != NULL:
                        for rule in <list>found:
                            if rule.accepts(head):
                                return rule
                longest -= 1
        if self.regex:
            key = PyBytes_FromStringAndSize(path, n)
            for rule in self.regex:
                if rule.pattern.fullmatch(key) is not None and rule.accepts(head):
                    return rule
        return None


cdef bytes host_name(const char* host, Py_ssize_t n):
    cdef char text[256]
    cdef Py_ssize_t i
    cdef const char* end
    if n and host[0] == b"[":
        end = <const char*>memchr(host, 93, n)
        if end != NULL:
            n = end - host + 1
    else:
        end = <const char*>memchr(host, 58, n)
        if end != NULL:
            n = end - host
    if n and host[n - 1] == b".":
        n -= 1
    if n > 255:
        return b""
    for i in range(n):
        text[i] = lower(host[i])
    return PyBytes_FromStringAndSize(text, n)


def _host_key(str hostname):
    """(is wildcard, key) of a configured host name."""
    text = hostname.lower().rstrip(".")
    if text.startswith("*."):
        return True, text[1:].encode()
    return False, text.encode()


cdef class RouteTable:
    """Immutable after construction; ValueError for a pattern that does not compile."""

    def __init__(self, rules):
        exact = {}
        wildcard = {}
        anywhere = []
        self.size = 0
        for rule in rules:
            self.size += 1
            if not rule.hostnames:
                anywhere.append(rule)
            for hostname in rule.hostnames:
                is_wildcard, key = _host_key(hostname)
                (wildcard if is_wildcard else exact).setdefault(key, []).append(rule)
        self.exact = {key: HostBucket(found) for key, found in exact.items()}
        self.wildcard = {key: HostBucket(found) for key, found in wildcard.items()}
        self.any_host = HostBucket(anywhere) if anywhere else None

    cdef RouteRule match_rule(self, const char* host, Py_ssize_t host_len, MessageHead head):
        cdef RouteRule rule
        cdef bytes name
        cdef PyObject* found
        cdef Py_ssize_t at, n
        if self.exact or self.wildcard:
            name = host_name(host, host_len)
            found = PyDict_GetItem(self.exact, name)
            if found != NULL:
                rule = (<HostBucket>found).match(head)
                if rule is not None:
                    return rule
            if self.wildcard:
                n = len(name)
                # The suffix begins behind the first label: `*.` stands for at least one.
                for at in range(1, n):
                    if PyBytes_AS_STRING(name)[at] != b".":
                        continue
                    found = PyDict_GetItem(self.wildcard, name[at:n])
                    if found != NULL:
                        rule = (<HostBucket>found).match(head)
                        if rule is not None:
                            return rule
        if self.any_host is not None:
            return self.any_host.match(head)
        return None

    def match(self, str host, str method, str target, headers=()):
        """The rule of a request given in parts, or None; the same code as the request path."""
        cdef MessageHead head = new_head()
        cdef bytes raw = host.encode()
        head.set_request(method, target, host)
        for name, value in headers:
            head.add(name, value)
        try:
            return self.match_rule(raw, len(raw), head)
        finally:
            recycle_head(head)


cdef class HostTable:
    """entries: pairs of host name (exact, `*.suffix`, or `*` for any) and target."""

    def __init__(self, entries):
        self.exact = {}
        self.wildcard = {}
        for hostname, target in entries:
            if hostname == "*":
                self.any_host = target
                continue
            is_wildcard, key = _host_key(hostname)
            (self.wildcard if is_wildcard else self.exact)[key] = target

    cdef object find(self, const char* host, Py_ssize_t n):
        cdef bytes name
        cdef PyObject* found
        cdef Py_ssize_t at
        if not self.exact and not self.wildcard:
            return self.any_host
        name = host_name(host, n)
        found = PyDict_GetItem(self.exact, name)
        if found != NULL:
            return <object>found
        if self.wildcard:
            for at in range(1, len(name)):
                if PyBytes_AS_STRING(name)[at] == b".":
                    found = PyDict_GetItem(self.wildcard, name[at:])
                    if found != NULL:
                        return <object>found
        return self.any_host

    def get(self, str host):
        """Python face of find()."""
        raw = host.encode()
        return self.find(raw, len(raw))
