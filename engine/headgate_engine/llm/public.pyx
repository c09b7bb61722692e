"""Models that clients may name; see public.pxd."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memset

import json
import time
from urllib.parse import unquote

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program
from headgate_engine.llm.formats import BEDROCK_VERBS, GOOGLE_VERBS
from headgate_engine.llm.pattern cimport ModelPattern
from headgate_engine.llm.target cimport LlmGroup, LlmTarget, ModelEntry, VirtualEntry
from headgate_engine.route.conditions cimport Condition, ConditionTable, Facts, ValuePredicate, forget
from headgate_engine.steps.authorization cimport AuthorizationStep

MODEL_LIST_PATHS = ("/v1/models", "/models", "/v1beta/models")
# Owner of models that several providers serve.
GATEWAY = "headgate"
# Formats of Google's, and what it calls a method that takes one.
METHODS = ("generateContent", "countTokens")


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
                 AuthorizationStep rules=None, source=None):
        self.source = source
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


cdef str owner_of(ModelEntry entry):
    """The provider of a model, as logs and metrics call it; of several the gateway is the one who chooses."""
    cdef set found = {(<LlmTarget>target).provider for group in entry.groups for target in (<LlmGroup>group).targets}
    return found.pop().decode() if len(found) == 1 else GATEWAY


cdef list methods_of(ModelEntry entry):
    """What clients of Gemini's format may ask of a model."""
    cdef LlmTarget target = <LlmTarget>(<LlmGroup>entry.groups[0]).targets[0]
    cdef set formats = {name for family in target.families.values() for name in family}
    # Tokens are estimated where the provider does not count them.
    return list(METHODS) if "gemini" in formats else []


cdef ModelEntry entry_of(VirtualEntry virtual):
    """What stands for a virtual model: of several targets one without an owner."""
    cdef list found = []
    for one in virtual.entries:
        found += [one] if isinstance(one, ModelEntry) else [(<PublicModel>model).entry for model in one]
    return <ModelEntry>found[0] if len(found) == 1 else ModelEntry(
        virtual.name, [group for entry in found for group in (<ModelEntry>entry).groups])


cdef list known_ids(PublicModel model):
    """The ids of its provider that match a pattern, as far as the provider has listed them."""
    return [] if model.source is None else [
        name for name in model.source.ids if (<ModelPattern>model.names).fits(name.encode())]


cdef dict models_for(tuple models, dict virtual, RequestContext ctx):
    """name -> ModelEntry of public models that the request may use, then of virtual models. ctx None: whoever asks.

    Patterns stand as what their provider has of them, or as such. With a key that may use some models alone, a pattern is
    narrowed to what the key's patterns leave of it, and names that the key gives are listed one by one.
    """
    cdef PublicModel model
    cdef dict found = {}
    cdef list ids
    cdef str left
    patterns = None if ctx is None else ctx.allowed_models
    for model in models:
        if model.rules is not None and ctx is not None and not model.rules.permits(ctx):
            continue
        ids = known_ids(model)
        if patterns is None:
            for name in ids or (model.pattern,):
                found.setdefault(name, model.entry)
            continue
        for name in ids:
            if allowed(patterns, name.encode()):
                found.setdefault(name, model.entry)
        for pattern in patterns:
            left = (<ModelPattern>model.names).meet(<ModelPattern>pattern)
            if left is not None and not (ids and "*" in left):
                found.setdefault(left, model.entry)
    for name, one in virtual.items():
        if patterns is None or allowed(patterns, name):
            found[name.decode()] = entry_of(<VirtualEntry>one)
    return found


cdef dict model_object(str shape, str name, ModelEntry entry, int64_t created):
    if shape == "messages":
        return {"type": "model", "id": name, "display_name": name,
                "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(created))}
    if shape == "gemini":
        return {"name": f"models/{name}", "version": "", "displayName": name,
                "supportedGenerationMethods": methods_of(entry)}
    return {"id": name, "object": "model", "created": created, "owned_by": owner_of(entry)}


cdef bytes compact(object value):
    return json.dumps(value, separators=(",", ":")).encode()


cdef bytes model_listing(str shape, dict found, int64_t created):
    cdef list listed = [model_object(shape, name, <ModelEntry>entry, created) for name, entry in found.items()]
    if shape == "messages":
        names = list(found)
        return compact({"data": listed, "has_more": False, "first_id": names[0] if names else None,
                        "last_id": names[-1] if names else None})
    return compact({"models": listed} if shape == "gemini" else {"data": listed, "object": "list"})


cdef bytes model_shown(str shape, tuple models, dict found, str name, int64_t created, RequestContext ctx):
    """The document of one model; None if the request may not use it, or its provider does not have it."""
    cdef PublicModel model
    cdef ModelEntry entry = found.get(name)
    cdef bytes raw = name.encode()
    if entry is None and "*" not in name and (ctx.allowed_models is None or allowed(ctx.allowed_models, raw)):
        for model in models:
            if "*" in model.pattern and (<ModelPattern>model.names).fits(raw) and not known_ids(model) and (
                    model.rules is None or model.rules.permits(ctx)):
                entry = model.entry
                break
    return None if entry is None else compact(model_object(shape, name, entry, created))


cdef list sources_due(tuple models):
    cdef list found = [(<PublicModel>model).source for model in models
                       if (<PublicModel>model).source is not None and (<PublicModel>model).source.due]
    return found if found else None


cdef bytes shown_models(tuple models, dict virtual, bytes ready, int64_t created, RequestContext ctx, bytes path):
    cdef str shape = list_format(ctx.head, path)
    cdef str name = listed_model(path)
    cdef dict found
    if not name and shape == "completions" and ready is not None and ctx.allowed_models is None:
        return ready
    found = models_for(models, virtual, ctx)
    return model_shown(shape, models, found, name, created, ctx) if name else model_listing(shape, found, created)


cdef str listed_model(bytes path):
    cdef Py_ssize_t at = path.find(b"/models/")
    return unquote(path[at + 8:].decode("latin-1")) if at >= 0 else ""


cdef str list_format(MessageHead head, bytes path):
    if path.endswith(BEDROCK_VERBS) and b"/model/" in path:
        return "converse"
    if path.startswith((b"/v1beta", b"/v1alpha")) or path.endswith(GOOGLE_VERBS) or head.get("x-goog-api-key") is not None:
        return "gemini"
    return "completions" if head.get("anthropic-version") is None else "messages"


cdef bint is_model_list(bytes path) except -1:
    cdef const char* p = path
    cdef Py_ssize_t n = len(path)
    cdef Py_ssize_t length
    if n < 7 or p[0] != 47:
        return False
    if p[1] == 109:
        length = 7 if memcmp(p, b"/models", 7) == 0 else 0
    elif p[1] == 118:
        length = 10 if n >= 10 and memcmp(p, b"/v1/models", 10) == 0 else (
            14 if n >= 14 and memcmp(p, b"/v1beta/models", 14) == 0 else 0)
    else:
        return False
    return length > 0 and (n == length or p[length] == 47)
