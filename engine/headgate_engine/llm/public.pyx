"""Models that clients may name; see public.pxd."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memset

import json

from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program
from headgate_engine.llm.pattern cimport ModelPattern
from headgate_engine.llm.target cimport LlmGroup, LlmTarget, ModelEntry
from headgate_engine.route.conditions cimport Condition, ConditionTable, Facts, ValuePredicate, forget
from headgate_engine.steps.authorization cimport AuthorizationStep

MODEL_LIST_PATHS = ("/v1/models", "/models")
cdef tuple model_list_paths = tuple(path.encode() for path in MODEL_LIST_PATHS)


cdef class HeaderMatches:
    """entries: lists of (name, 'exact' | 'regex', text); one entry must hold, and it holds when all in it do.

    A name may be one of the pseudo-headers of routes. ValueError for what cannot be compiled.
    """

    def __cinit__(self):
        self.conditions = NULL

    def __init__(self, entries):
        cdef Py_ssize_t at = 0
        self.entries = tuple(tuple(ValuePredicate(name.lower(), kind, text) for name, kind, text in entry)
                             for entry in entries)
        names = [one.name for entry in self.entries for one in entry]
        self.plain = ConditionTable(names, (), "http")
        self.secure = ConditionTable(names, (), "https")
        self.conditions = <Condition*>malloc(max(len(names), 1) * sizeof(Condition))
        if self.conditions == NULL:
            raise MemoryError()
        for entry in self.entries:
            for one in entry:
                # Both tables number the names alike.
                self.conditions[at] = self.plain.compiled(<ValuePredicate>one, False)
                at += 1

    def __dealloc__(self):
        free(self.conditions)

    cdef bint fits(self, RequestContext ctx) except -1:
        cdef ConditionTable table = self.secure if ctx.secure else self.plain
        cdef Facts facts
        cdef Py_ssize_t at = 0, count, i
        cdef bint holds = False
        memset(&facts, 0, sizeof(facts))
        try:
            for entry in self.entries:
                count = len(<tuple>entry)
                holds = True
                for i in range(count):
                    if not table.header_holds(&self.conditions[at + i], &facts, ctx.head):
                        holds = False
                        break
                if holds:
                    return True
                at += count
            return False
        finally:
            forget(&facts)


cdef class PublicModel:
    """pattern: a name, or with one `*` at its start or end, or `*`. matches, rules: None asks nothing."""

    def __init__(self, str pattern, ModelEntry entry not None, *, HeaderMatches matches=None,
                 AuthorizationStep rules=None):
        self.pattern = pattern
        self.names = ModelPattern(pattern)
        self.entry = entry
        self.matches = matches
        self.rules = rules
        self.reads_body = rules is not None and reads_request(rules)


cdef bint reads_request(AuthorizationStep rules) except -1:
    for program in (*rules.deny, *rules.require, *rules.allow):
        for name in (<Program>program).variables:
            if (<str>name).split(".")[0] == "llmRequest":
                return True
    return False


cdef ModelEntry permitted(ModelEntry entry, RequestContext ctx, bint* denied):
    cdef LlmTarget target
    cdef list groups = []
    cdef set taken = set()
    denied[0] = False
    for group in entry.groups:
        kept = []
        for one in (<LlmGroup>group).targets:
            target = <LlmTarget>one
            if target.slot in taken:
                continue
            if target.matches is not None and not (<HeaderMatches>target.matches).fits(ctx):
                continue
            if target.rules is not None and not target.rules.permits(ctx):
                denied[0] = True
                continue
            kept.append(target)
            if target.slot:
                taken.add(target.slot)
        if kept:
            groups.append(LlmGroup(kept))
    return ModelEntry(entry.name, groups, entry.affinity) if groups else None


cdef bint allowed(patterns, bytes model) except -1:
    for pattern in patterns:
        if (<ModelPattern>pattern).fits(model):
            return True
    return False


cdef bytes model_listing(tuple models, names, int64_t created, RequestContext ctx):
    """Public models that the request may use, then virtual models.

    Patterns stand as such. With a key that may use some models alone, a pattern is narrowed to what the key's patterns
    leave of it, and names that the key gives are listed one by one.
    """
    cdef PublicModel model
    cdef list found = []
    cdef str left
    patterns = None if ctx is None else ctx.allowed_models
    for model in models:
        if model.rules is not None and ctx is not None and not model.rules.permits(ctx):
            continue
        if patterns is None:
            found.append(model.pattern)
            continue
        for pattern in patterns:
            left = (<ModelPattern>model.names).meet(<ModelPattern>pattern)
            if left is not None:
                found.append(left)
    found += [name.decode() for name in names if patterns is None or allowed(patterns, name)]
    listed = [{"id": name, "object": "model", "created": created, "owned_by": "openai"}
              for name in dict.fromkeys(found)]
    return json.dumps({"data": listed, "object": "list"}, separators=(",", ":")).encode()


cdef bint is_model_list(bytes path) except -1:
    cdef bytes prefix
    cdef Py_ssize_t n
    for prefix in model_list_paths:
        n = len(prefix)
        if len(path) >= n and memcmp(<const char*>path, <const char*>prefix, n) == 0 and (
                len(path) == n or path[n] == 47):
            return True
    return False
