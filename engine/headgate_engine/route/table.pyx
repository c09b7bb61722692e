# cython: boundscheck=False
# Most indexes go into C arrays, whose bounds Cython cannot check; the few into lists are limited by their length.
"""Route choice (https://gateway-api.sigs.k8s.io/reference/spec/#httprouterule).

An exact path wins over the longest prefix, a prefix over patterns. Within a path, a rule with a method wins over one
without, then the one with more headers, with more query conditions, and the first in the configuration. Patterns are
ranked in the same way, whatever their length. If no rule of a specific host matches, the rules of less specific hosts
are tried.

Everything is compiled to C arrays and keyed hash tables when the table is built. A match hashes the host and the path
once per host name that covers it. It makes Python objects only if a pattern has to run.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, memcmp, memset

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.route.conditions cimport Condition, ConditionTable, Facts, ValuePredicate, forget
from headgate_engine.route.index cimport KeyIndex
from headgate_engine.wire.scan cimport lower

from headgate_engine.route.conditions import compile_pattern


MAX_HOST = 255
MAX_RULES = 1 << 20
# Rules that steps() compiles between two yields: a fraction of a millisecond.
cdef enum:
    STEP = 128
# Bytes of a pattern's literal beginning that are compared before the pattern runs.
BOUND_LENGTH = 64


cdef class RouteRule:
    def __init__(self, hostnames=(), *, str path_kind="prefix", str path="/", str method=None, headers=(), query=(),
                 target=None, int order=0):
        if path_kind not in ("exact", "prefix", "regex"):
            raise ValueError(f"{path_kind!r} is no kind of path match")
        self.hostnames = tuple(hostnames)
        self.host_keys = tuple(dict.fromkeys(map(_host_key, self.hostnames))) or (None,)
        self.path_kind = path_kind
        self.path = path
        self.method = method
        self.raw_method = None if method is None else method.encode()
        self.headers = tuple(ValuePredicate(name.lower(), kind, text) for name, kind, text in headers)
        self.query = tuple(ValuePredicate(name, kind, text) for name, kind, text in query)
        self.target = target
        self.order = order
        self.raw_path = path.encode()
        if path_kind == "regex":
            self.pattern = compile_pattern(path)
        elif not path.startswith("/"):
            raise ValueError(f"path {path!r} does not begin with a slash")
        elif path_kind == "prefix" and path.endswith("/"):
            self.raw_path = self.raw_path[:len(self.raw_path) - 1]
        self.ranked = (self.method is None, -len(self.headers), -len(self.query), self.order)

    def rank(self):
        return self.ranked

    cdef Py_ssize_t prefix_length(self) noexcept:
        return PyBytes_GET_SIZE(self.raw_path) if self.path_kind == "prefix" else 0

    cdef bint covers(self, MessageHead head) noexcept:
        cdef Py_ssize_t n = self.prefix_length()
        cdef const char* path = head.data + head.target_off
        if n == 0:
            return True
        return head.path_len >= n and memcmp(path, PyBytes_AS_STRING(self.raw_path), n) == 0 and (
            head.path_len == n or path[n] == b"/")


cdef tuple bounds_of(RouteRule rule):
    """Return the least and greatest path that the rule's pattern can match, None if the engine cannot tell."""
    import re2  # see conditions.compile_pattern

    try:
        # A valid pattern has the same meaning inside a group.
        anchored = re2.compile(b"\\A(?:" + rule.raw_path + b")\\z", options=rule.pattern.options)
        return anchored.possiblematchrange(BOUND_LENGTH)
    except re2.error:
        return None


cdef class PathIndex:
    """The compiled rules of several host names. buckets: one list of rules per host name."""

    def __init__(self, buckets, str scheme="http"):
        for _ in self.steps(buckets, scheme):
            pass

    def __dealloc__(self):
        free(self.buckets)
        free(self.entries)
        free(self.candidates)
        free(self.conditions)
        free(self.lengths)

    def steps(self, buckets, str scheme):
        """Build an index that `__new__` made, some hundred rules between two yields."""
        cdef list grouped = []
        cdef list rules = []
        cdef dict headers = {}, query = {}
        cdef Py_ssize_t predicates = 0
        cdef RouteRule rule
        cdef ValuePredicate item
        if self.alive is not None:
            raise TypeError("an index is built once")
        self.alive = rules
        for bucket in buckets:
            group = yield from _group(bucket)
            grouped.append(group)
            for _, found in group:
                for rule in found:
                    rules.append(rule)
                    for item in rule.headers:
                        headers[item.name] = None
                    for item in rule.query:
                        query[item.name] = None
                    predicates += len(rule.headers) + len(rule.query)
                    if len(rules) % STEP == 0:
                        yield
        self.names = ConditionTable(headers, query, scheme)
        self.paths = KeyIndex.__new__(KeyIndex)
        yield from self.paths.steps(_keys(grouped))
        self._allocate(len(grouped), len(rules), predicates)
        yield from self._enter(grouped)
        # As in _group().
        for group in grouped:
            while group:
                del group[-STEP:]
                yield

    cdef int _allocate(self, Py_ssize_t buckets, Py_ssize_t rules, Py_ssize_t predicates) except -1:
        self.buckets = <Bucket*>calloc(buckets + 1, sizeof(Bucket))
        self.entries = <PathEntry*>calloc(rules + 1, sizeof(PathEntry))
        self.candidates = <Candidate*>calloc(rules + 1, sizeof(Candidate))
        self.conditions = <Condition*>calloc(predicates + 1, sizeof(Condition))
        self.lengths = <uint32_t*>calloc(rules + 1, sizeof(uint32_t))
        if not (self.buckets and self.entries and self.candidates and self.conditions and self.lengths):
            raise MemoryError()
        return 0

    def _enter(self, list buckets):
        """Write the grouped rules into the arrays."""
        cdef uint32_t bucket = 0, entry = 0, candidate = 0, condition = 0, length = 0
        cdef PathEntry* place
        cdef Bucket* home
        cdef RouteRule rule
        cdef bytearray bounds = bytearray()
        for group in buckets:
            home = &self.buckets[bucket]
            home.root = -1
            home.lengths = length
            sizes = set()
            for seen, ((kind, path), _) in enumerate(group):
                if kind == "prefix" and path:
                    sizes.add(len(path))
                if seen % STEP == 0:
                    yield
            for size in sorted(sizes):
                self.lengths[length] = size
                length += 1
            home.length_count = length - home.lengths
            for (kind, path), found in group:
                if kind == "regex":
                    home.regex = candidate
                    home.regex_count = <uint32_t>len(found)
                else:
                    place = &self.entries[entry]
                    place.first = candidate
                    place.count = <uint32_t>len(found)
                    place.parent = -1
                    if kind == "exact":
                        home.exact += 1
                    elif not path:
                        home.root = <int32_t>entry
                    else:
                        place.parent = self._parent(bucket, path)
                    entry += 1
                for rule in found:
                    self._place(candidate, rule, condition, bounds)
                    condition += <uint32_t>(len(rule.headers) + len(rule.query))
                    candidate += 1
                    if candidate % STEP == 0:
                        yield
            bucket += 1
        self.bounds = bytes(bounds)

    def _parent(self, uint32_t bucket, bytes path):
        """Return the entry of the longest shorter prefix that covers the path, except that of `/`."""
        cdef Py_ssize_t at = path.rfind(b"/")
        while at > 0:
            entry = self.paths.get(2 * bucket + 1, path[:at])
            if entry >= 0:
                return entry
            at = path.rfind(b"/", 0, at)
        return -1

    cdef int _place(self, Py_ssize_t at, RouteRule rule, uint32_t conditions, bytearray bounds) except -1:
        cdef Candidate* candidate = &self.candidates[at]
        cdef ValuePredicate predicate
        candidate.rule = <PyObject*>rule
        candidate.conditions = conditions
        candidate.headers = <uint32_t>len(rule.headers)
        candidate.queries = <uint32_t>len(rule.query)
        if rule.raw_method is not None:
            candidate.method = PyBytes_AS_STRING(rule.raw_method)
            candidate.method_len = <uint32_t>len(rule.raw_method)
        for predicate in rule.headers:
            self.conditions[conditions] = self.names.compiled(predicate, False)
            conditions += 1
        for predicate in rule.query:
            self.conditions[conditions] = self.names.compiled(predicate, True)
            conditions += 1
        if rule.pattern is not None:
            found = bounds_of(rule)
            if found is not None:
                candidate.bounded = 1
                candidate.low_off, candidate.low_len = _kept(bounds, found[0])
                candidate.high_off, candidate.high_len = _kept(bounds, found[1])
        return 0

    cdef PyObject* match(self, int32_t bucket, Facts* facts, MessageHead head) except? NULL:
        cdef Bucket* home = &self.buckets[bucket]
        cdef const char* path = head.data + head.target_off
        cdef Py_ssize_t n = head.path_len
        cdef PyObject* rule
        cdef int32_t entry
        if home.exact:
            entry = self.paths.find(2 * bucket, path, n)
            if entry >= 0:
                rule = self._first(self.entries[entry].first, self.entries[entry].count, facts, head)
                if rule != NULL:
                    return rule
        entry = self.paths.find_prefix(2 * bucket + 1, path, n, self.lengths + home.lengths, home.length_count)
        while entry >= 0:
            rule = self._first(self.entries[entry].first, self.entries[entry].count, facts, head)
            if rule != NULL:
                return rule
            entry = self.entries[entry].parent
        if home.root >= 0:
            rule = self._first(self.entries[home.root].first, self.entries[home.root].count, facts, head)
            if rule != NULL:
                return rule
        return self._patterns(home, facts, head) if home.regex_count else NULL

    cdef PyObject* _first(self, uint32_t first, uint32_t count, Facts* facts, MessageHead head) except? NULL:
        cdef uint32_t i
        for i in range(first, first + count):
            if self._accepts(&self.candidates[i], facts, head):
                return self.candidates[i].rule
        return NULL

    cdef PyObject* _patterns(self, Bucket* bucket, Facts* facts, MessageHead head) except? NULL:
        cdef const char* path = head.data + head.target_off
        cdef Py_ssize_t n = head.path_len
        cdef const char* bounds = PyBytes_AS_STRING(self.bounds)
        cdef Candidate* candidate
        cdef bytes text = None
        cdef uint32_t i
        for i in range(bucket.regex, bucket.regex + bucket.regex_count):
            candidate = &self.candidates[i]
            if candidate.bounded and (
                    _compared(path, n, bounds + candidate.low_off, candidate.low_len) < 0
                    or _compared(path, n, bounds + candidate.high_off, candidate.high_len) > 0):
                continue
            # Check the conditions first: they cost less than a pattern.
            if not self._accepts(candidate, facts, head):
                continue
            if text is None:
                text = PyBytes_FromStringAndSize(path, n)
            if (<RouteRule>candidate.rule).pattern.fullmatch(text) is not None:
                return candidate.rule
        return NULL

    cdef bint _accepts(self, const Candidate* candidate, Facts* facts, MessageHead head) except -1:
        cdef const Condition* condition = self.conditions + candidate.conditions
        cdef uint32_t i
        if candidate.method != NULL and not (
                head.method_len == candidate.method_len
                and memcmp(head.data + head.method_off, candidate.method, candidate.method_len) == 0):
            return False
        for i in range(candidate.headers):
            if not self.names.header_holds(condition + i, facts, head):
                return False
        condition += candidate.headers
        for i in range(candidate.queries):
            if not self.names.query_holds(condition + i, facts, head):
                return False
        return True


def _rank(RouteRule rule not None):
    return rule.rank()


def _group(rules):
    """Group the rules of one host by (kind, path), each group in rank order. Patterns come last, in one group.

    A generator: see steps().
    """
    cdef dict exact = {}, prefixes = {}, kinds
    cdef list patterns = [], found
    cdef RouteRule rule
    cdef Py_ssize_t seen = 0
    for entry in rules:
        rule = <RouteRule?>entry
        if rule.path_kind == "regex":
            patterns.append(rule)
        else:
            kinds = exact if rule.path_kind == "exact" else prefixes
            found = kinds.get(rule.raw_path)
            if found is None:
                found = kinds[rule.raw_path] = []
            found.append(rule)
        seen += 1
        if seen % STEP == 0:
            yield
    groups = []
    for kind, kinds in (("exact", exact), ("prefix", prefixes)):
        for path, found in kinds.items():
            if len(found) > 1:
                found.sort(key=_rank)
            groups.append(((kind, path), found))
            if len(groups) % STEP == 0:
                yield
    if patterns:
        patterns.sort(key=_rank)
        groups.append((("regex", b""), patterns))
    # The dicts go bit by bit: thousands of values that are freed at once hold the loop as well.
    for kinds in (exact, prefixes):
        while kinds:
            kinds.popitem()
            if len(kinds) % STEP == 0:
                yield
    return groups


def _keys(grouped):
    """Yield the entries of the path index, numbered in the order of PathIndex's arrays."""
    entry = 0
    for bucket, group in enumerate(grouped):
        for (kind, path), _ in group:
            if kind != "regex":
                yield 2 * bucket + (kind == "prefix"), path, entry
                entry += 1


def _kept(bounds, text):
    """Append a text to the joined bounds. Return its offset and length."""
    at = len(bounds)
    bounds += text
    return at, len(text)


cdef inline int _compared(const char* p, Py_ssize_t n, const char* bound, Py_ssize_t bound_len) noexcept nogil:
    """Return the order of two byte strings: negative, 0 or positive."""
    cdef int order = memcmp(p, bound, n if n < bound_len else bound_len)
    if order == 0:
        return (n > bound_len) - (n < bound_len)
    return order


def _host_key(str hostname):
    """Return (is suffix, key) of a configured host name, None for any host. Raises ValueError for a misplaced star."""
    text = hostname.lower()
    if text == "*":
        return None
    if text.endswith("."):
        text = text[:len(text) - 1]
    is_suffix = text.startswith("*.")
    key = text[1:] if is_suffix else text
    if "*" in key or len(key.encode()) > MAX_HOST or len(key) <= is_suffix:
        raise ValueError(f"{hostname!r} is no host name: a name, or *. and a name, of at most {MAX_HOST} bytes")
    return is_suffix, key.encode()


cdef class HostIndex:
    """Numbers of host names. keys: ((is suffix, lower-case name or suffix with its leading dot), number)."""

    def __init__(self, keys):
        for _ in self.steps(keys):
            pass

    def steps(self, keys):
        """Build an index that `__new__` made, some hundred names between two yields."""
        if self.names is not None:
            raise TypeError("an index is built once")
        memset(self.suffix_lengths, 0, sizeof(self.suffix_lengths))
        entries = []
        for (is_suffix, key), value in keys:
            entries.append((int(is_suffix), key, value))
            if is_suffix:
                self.suffix_lengths[len(<bytes>key)] = 1
            if len(entries) % STEP == 0:
                yield
        self.names = KeyIndex.__new__(KeyIndex)
        yield from self.names.steps(entries)

    cdef void begin(self, HostWalk* walk, const char* host, Py_ssize_t n) noexcept nogil:
        cdef const char* end
        cdef Py_ssize_t i
        walk.at = 0
        walk.length = 0
        if n and host[0] == 91:
            end = <const char*>memchr(host, 93, n)
            if end != NULL:
                n = end - host + 1
        elif n:
            end = <const char*>memchr(host, 58, n)
            if end != NULL:
                n = end - host
        if n and host[n - 1] == 46:
            n -= 1
        if n > 255:
            return
        for i in range(n):
            walk.text[i] = lower(host[i])
        walk.length = n

    cdef int32_t step(self, HostWalk* walk) noexcept nogil:
        cdef Py_ssize_t at = walk.at
        cdef int32_t found
        if at == 0 and walk.length:
            walk.at = at = 1
            found = self.names.find(0, walk.text, walk.length)
            if found >= 0:
                return found
        # A suffix begins after the first label: `*.` stands for at least one label.
        while 0 < at < walk.length:
            if walk.text[at] == 46 and self.suffix_lengths[walk.length - at]:
                found = self.names.find(1, walk.text + at, walk.length - at)
                if found >= 0:
                    walk.at = at + 1
                    return found
            at += 1
        walk.at = walk.length
        return -1


cdef class RouteTable:
    def __init__(self, rules, *, str scheme="http"):
        for _ in self.steps(rules, scheme):
            pass

    def steps(self, rules, str scheme="http"):
        """Build a table that `__new__` made, some hundred rules between two yields.

        Until the end it matches nothing. Raises the same errors as `__init__`.
        """
        cdef dict numbers = {}
        cdef list buckets = [[]]
        cdef RouteRule rule
        if self.hosts is not None:
            raise TypeError("a table is built once")
        hosts = HostIndex.__new__(HostIndex)
        paths = PathIndex.__new__(PathIndex)
        self.hosts = hosts
        self.size = 0
        for entry in rules:
            rule = <RouteRule?>entry
            self.size += 1
            if self.size > MAX_RULES:
                raise ValueError(f"more than {MAX_RULES} rules")
            for key in rule.host_keys:
                if key is None:
                    buckets[0].append(rule)
                    continue
                if key not in numbers:
                    numbers[key] = len(buckets)
                    buckets.append([])
                buckets[numbers[key]].append(rule)
            if self.size % STEP == 0:
                yield
        yield from hosts.steps(numbers.items())
        yield from paths.steps(buckets, scheme)
        self.paths = paths
        self.any_host = bool(buckets[0])

    cdef RouteRule match_rule(self, const char* host, Py_ssize_t host_len, MessageHead head):
        cdef HostWalk walk
        cdef Facts facts
        cdef PyObject* rule = NULL
        cdef int32_t bucket
        memset(&facts, 0, sizeof(facts))
        try:
            if self.hosts.names.size:
                self.hosts.begin(&walk, host, host_len)
                bucket = self.hosts.step(&walk)
                while bucket >= 0:
                    rule = self.paths.match(bucket, &facts, head)
                    if rule != NULL:
                        return <RouteRule>rule
                    bucket = self.hosts.step(&walk)
            if self.any_host is True:
                rule = self.paths.match(0, &facts, head)
        finally:
            forget(&facts)
        return None if rule == NULL else <RouteRule>rule

    def targets(self):
        """Return the targets of all rules, in no particular order."""
        return [] if self.paths is None else [(<RouteRule>rule).target for rule in self.paths.alive]


cdef class HostTable:
    def __init__(self, entries):
        numbers = {}
        targets = []
        for hostname, target in entries:
            key = _host_key(hostname)
            if key is None:
                if self.any_host is None:
                    self.any_host = target
            elif key not in numbers:
                numbers[key] = len(targets)
                targets.append(target)
        self.hosts = HostIndex(numbers.items())
        self.targets = tuple(targets)

    cdef object find(self, const char* host, Py_ssize_t n):
        cdef HostWalk walk
        cdef int32_t found
        if self.hosts.names.size:
            self.hosts.begin(&walk, host, n)
            found = self.hosts.step(&walk)
            if found >= 0:
                return self.targets[found]
        return self.any_host

    def listed(self):
        """Return all targets."""
        return self.targets if self.any_host is None else (*self.targets, self.any_host)

    def get(self, str host):
        """Return the target for a host, which may have a port. None if no entry covers it."""
        raw = host.encode()
        return self.find(raw, len(raw))
