"""Targets, groups of them, and virtual models; see target.pxd."""

import json
import random
from urllib.parse import quote

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program
from headgate_engine.link.endpoints cimport EndpointState, EndpointSet, affinity_of, hash_of, weight_for
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.foreign cimport ForeignHistory
from headgate_engine.llm.pattern cimport ModelPattern
from headgate_engine.plan.plans cimport BackendPlan

from libc.stdint cimport int64_t, uint64_t

# Of a model name inside a path: everything else is escaped, `/` and `%` above all, so that it is one segment.
SAFE = "@"


cdef class FormatRoute:
    def __init__(self, str client, str upstream, *, path, translation=None, adapt=None, stream_error=None,
                 spell=None, ForeignHistory history=None):
        self.client = client
        self.upstream = upstream
        self.translation = translation
        self.adapt = adapt
        self.history = history
        self.spell = spell
        self.stream_error = stream_error
        self.head = None if path.head is None else path.head.encode()
        self.tail = None if path.tail is None else path.tail.encode()
        self.stream_tail = self.tail if path.stream_tail is None else path.stream_tail.encode()
        self.prefix = path.prefix.encode()
        self.strip = path.strip.encode()
        self.other = None if path.other is None else path.other.encode()
        self.keep_query = path.keep_query
        self.keep_path = path.keep_path
        self.query = path.query.encode()

    cdef bytes path_for(self, LlmCall call, bytes path, bytes query, str suffix):
        """The provider's target. path: the client's. query: with its `?`. suffix: what a translation says, or None."""
        cdef bytes found
        cdef bytes rest
        if self.keep_path:
            return path + query
        if suffix and suffix[0] == "/":
            found = self.prefix + suffix.encode()
        elif self.head is None:
            if self.other is not None and not path.startswith(self.strip + b"/"):
                return self.other + path + query
            rest = path[len(self.strip):] if self.strip and path.startswith(self.strip + b"/") else path
            found = self.prefix + rest
        elif suffix:
            found = self.head + self.segment(call) + suffix.encode()
        elif self.tail is not None:
            found = self.head + self.segment(call) + (self.stream_tail if call.streaming else self.tail)
        else:
            found = self.head
        if self.query:
            found += (b"&" if b"?" in found else b"?") + self.query
        if self.keep_query and len(query) > 1:
            found += b"&" + query[1:] if b"?" in found else query
        return found

    cdef bytes segment(self, LlmCall call):
        """The model as one segment of a path."""
        return quote(call.model if self.spell is None else self.spell(call.model), safe=SAFE).encode()


cdef class LlmEdits:
    def __init__(self, overrides=None, defaults=None, transformations=(), final=(), aliases=()):
        self.overrides = {name: json.dumps(value).encode() for name, value in (overrides or {}).items()}
        self.defaults = {name: json.dumps(value).encode() for name, value in (defaults or {}).items()}
        self.transformations = tuple(transformations)
        self.final = tuple(final)
        # Exact names first, then longer patterns before shorter ones.
        self.aliases = tuple(sorted(((ModelPattern(pattern), model) for pattern, model in dict(aliases).items()),
                                    key=lambda one: ("*" in one[0].text, -len(one[0].text))))


cdef class LlmTarget:
    def __init__(self, BackendPlan plan not None, str provider, dict families, *, family=None, pinned=None, edits=None,
                 short_limit=False):
        self.plan = plan
        self.provider = provider.encode()
        self.families = families
        self.family = family
        self.pinned = pinned
        self.edits = edits
        # Its health, where somebody looks at that.
        self.endpoint = None if plan.endpoints is None else <EndpointState>(<EndpointSet>plan.endpoints).endpoints[0]
        self.short_limit = short_limit
        self.max_answer = plan.max_body
        self.account = b""
        self.mixed = hash_of(plan.name.encode())

    cdef FormatRoute format_route_of(self, str format, str model):
        """None when the provider can be asked in no format that this one translates to."""
        format_routes = self.families.get("" if self.family is None else self.family(model))
        return None if format_routes is None else (<dict>format_routes).get(format)


cdef class LlmGroup:
    def __init__(self, targets):
        self.targets = tuple(<LlmTarget?>target for target in targets)


cdef class ModelEntry:
    def __init__(self, str name, groups, Program affinity=None):
        self.name = name
        self.affinity = affinity
        self.affinity_reads = affinity is not None and "llmRequest" in affinity.variables
        self.groups = tuple(<LlmGroup?>group for group in groups)
        self.size = sum(len(group.targets) for group in self.groups)
        self.guarded = any((<LlmTarget>target).rules is not None or (<LlmTarget>target).matches is not None
                           for group in self.groups for target in group.targets)
        if not self.size:
            raise ValueError(f"model {name!r} leads nowhere")

    cdef LlmTarget pick(self, list tried, RequestContext ctx):
        """The best target that was not tried: of the first group with one in use, else of the first with one at all."""
        cdef LlmTarget found
        cdef int64_t now_ns
        cdef uint64_t source
        if self.size == 1:
            return <LlmTarget>(<LlmGroup>self.groups[0]).targets[0]
        now_ns = monotonic_ns()
        source = 0 if self.affinity is None else affinity_of(self.affinity, ctx)
        for sick in (False, True):
            for group in self.groups:
                found = better(<LlmGroup>group, tried, now_ns, sick, source)
                if found is not None:
                    return found
        if not tried:
            raise LookupError("a model without targets")
        # Every one was tried: whoever still has retries begins anew.
        return self.pick([], ctx)

    def choose(self, tried=(), RequestContext ctx=None):
        """Python face of pick()."""
        return self.pick(list(tried), ctx)


cdef LlmTarget better(LlmGroup group, list tried, int64_t now_ns, bint sick, uint64_t source):
    """Among those of a group that may be taken, the one that `source` belongs to, or the better of two at random when
    that is 0; None without any.
    """
    cdef LlmTarget one, other
    cdef list usable = []
    for one in group.targets:
        if one in tried:
            continue
        if one.endpoint is not None and one.endpoint.slot.ejected_until_ns:
            (<EndpointSet>one.plan.endpoints).restored(one.endpoint, now_ns)
        if sick or one.endpoint is None or not one.endpoint.ejected(now_ns):
            usable.append(one)
    if not usable:
        return None
    if source:
        return max(usable, key=lambda target: weight_for(source, (<LlmTarget>target).mixed, 1))
    one = usable[random.randrange(len(usable))]
    if len(usable) == 1 or one.endpoint is None:
        return one
    other = usable[random.randrange(len(usable))]
    return other if other.endpoint.score() > one.endpoint.score() else one


cdef class VirtualEntry:
    def __init__(self, str name, entries, *, weights=None, conditions=None):
        cdef int total = 0
        sums = []
        self.name = name
        self.entries = tuple(entries)
        self.conditions = None if conditions is None else tuple(conditions)
        for weight in weights or ():
            total += weight
            sums.append(total)
        self.sums = tuple(sums)
        if not self.entries or (self.sums and not total):
            raise ValueError(f"virtual model {name!r} leads nowhere")

    cdef object resolve(self, RequestContext ctx):
        """The target for a request, None if no condition holds."""
        cdef Py_ssize_t index
        if self.conditions is not None:
            for index in range(len(self.entries)):
                if self.conditions[index] is None or (<Program>self.conditions[index]).test(ctx) == 1:
                    return self.entries[index]
            return None
        if len(self.sums) <= 1:
            return self.entries[0]
        ticket = random.randrange(self.sums[len(self.sums) - 1])
        for index in range(len(self.sums)):
            if ticket < self.sums[index]:
                return self.entries[index]
        raise AssertionError("unreachable")

    def choose(self, RequestContext ctx=None):
        """Python face of resolve()."""
        return self.resolve(ctx)
