"""The models of a batch (https://docs.anthropic.com/en/api/creating-message-batches); see batches.pxd.

They are read by offsets: a batch may have 100,000 requests.
"""

import json

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.guard.spans cimport K_ARRAY, K_OBJECT, K_STRING, string_end, unquoted, value_end
from headgate_engine.llm.attempt cimport MODEL_ASIDE, LlmCall
from headgate_engine.llm.bodies cimport edited
from headgate_engine.llm.replies cimport refusal
from headgate_engine.llm.target cimport FormatRoute, LlmGroup, LlmTarget, ModelEntry
from headgate_engine.peek.json cimport ObjectPeek

from headgate_engine.peek.json import PeekError

from libc.stdint cimport uint8_t
from libc.string cimport memchr, memcmp

# Under this name in `ctx.dynamic`, which no expression can write: BatchModels, or the text of what is wrong, and the body.
BATCH = "models of a batch"
cdef bytes BATCHES = b"/messages/batches"
# Of different names.
MOST_MODELS = 64


cdef inline Py_ssize_t blanks(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    while at < n and (p[at] == c" " or p[at] == c"\n" or p[at] == c"\t" or p[at] == c"\r"):
        at += 1
    return at


cdef int member(bytes body, Py_ssize_t at, bytes name, Py_ssize_t* start, Py_ssize_t* stop) except -1:
    """Find a member of the object at `at`: the last one of that name. Returns how many there are. The JSON is checked."""
    cdef const uint8_t* p = <const uint8_t*><const char*>body
    cdef Py_ssize_t n = len(body), size = len(name), first, last
    cdef int found = 0
    at = blanks(p, at + 1, n)
    while at < n and p[at] == K_STRING:
        first, last = at, string_end(p, at, n)
        at = blanks(p, blanks(p, last, n) + 1, n)
        if (last - first - 2 == size and memcmp(p + first + 1, <const char*>name, size) == 0
                or memchr(p + first, c"\\", last - first) != NULL and unquoted(body, first, last) == name):
            found += 1
            start[0], stop[0] = at, value_end(p, at, n)
        at = blanks(p, value_end(p, at, n), n)
        if at < n and p[at] == c",":
            at = blanks(p, at + 1, n)
    return found


cdef class BatchModels:
    def __cinit__(self):
        self.spans, self.names, self.entries = [], [], {}

    cdef ModelEntry common(self):
        cdef ModelEntry entry, other
        cdef list found, kept
        cdef set shared = None
        cdef list accounts
        for entry in self.entries.values():
            accounts = accounts_of(entry)
            shared = set(accounts) if shared is None else shared & set(accounts)
        if not shared:
            return None
        entry = self.entries[self.names[0]]
        account = [one for one in accounts_of(entry) if one in shared][0]
        for other in self.entries.values():
            # What is guarded at one model is not to be had through another.
            if any((<LlmTarget>target).guarded for target in of_account(other, account)):
                entry = other
                break
        found = []
        for group in entry.groups:
            kept = [target for target in (<LlmGroup>group).targets if (<LlmTarget>target).account == account]
            if kept:
                found.append(LlmGroup(kept))
        return ModelEntry(entry.name, found, entry.affinity)

    cdef bytes renamed(self, RequestContext ctx, LlmCall call, LlmTarget target):
        cdef dict spelled = {}
        cdef list out = []
        cdef Py_ssize_t at = 0
        for name in self.names:
            spelled[name] = self._spelled(ctx, call, target, name)
        for start, stop, name in self.spans:
            new = spelled[name]
            if new is not None:
                out += (self.body[at:start], new)
                at = stop
        return self.body if not out else b"".join([*out, self.body[at:]])

    def _spelled(self, RequestContext ctx, LlmCall call, LlmTarget target, bytes name):
        """The provider's name of a model as JSON, None if it is the client's."""
        cdef LlmTarget own
        own = next(iter(of_account(self.entries[name], target.account)), None)
        model = given = name.decode("utf-8", "replace")
        if own is not None and own.pinned is not None:
            model = own.pinned
        if own is not None and own.edits is not None:
            model = edited(ctx, call, own.edits, model)[2] or model
        return None if model == given else json.dumps(model).encode()


cdef list accounts_of(ModelEntry entry):
    return [(<LlmTarget>target).account for group in entry.groups for target in (<LlmGroup>group).targets]


cdef list of_account(ModelEntry entry, bytes account):
    return [target for group in entry.groups for target in (<LlmGroup>group).targets
            if (<LlmTarget>target).account == account]


def models_of(bytes body not None):
    cdef BatchModels found = BatchModels.__new__(BatchModels)
    cdef ObjectPeek peek = ObjectPeek()
    cdef const uint8_t* p = <const uint8_t*><const char*>body
    cdef Py_ssize_t n = len(body), at, start = 0, stop = 0, index = 0
    cdef dict known = {}
    try:
        peek.scan(body, n)
    except PeekError:
        return None
    at = blanks(p, 0, n)
    if not peek.is_object or member(body, at, b"requests", &start, &stop) == 0 or p[start] != K_ARRAY:
        return None
    found.body = body
    at = blanks(p, start + 1, n)
    while p[at] != c"]":
        _add_request(found, known, at, index)
        index += 1
        at = blanks(p, value_end(p, at, n), n)
        if p[at] == c",":
            at = blanks(p, at + 1, n)
    if len(known) > MOST_MODELS:
        raise ValueError(f"the batch names more than {MOST_MODELS} models")
    found.names = list(known)
    return found


cdef int _add_request(BatchModels found, dict known, Py_ssize_t at, Py_ssize_t index) except -1:
    """Note the model of the request at `at`."""
    cdef bytes body = found.body
    cdef const uint8_t* p = <const uint8_t*><const char*>body
    cdef Py_ssize_t start = 0, stop = 0
    cdef int count = 0
    if p[at] == K_OBJECT and member(body, at, b"params", &start, &stop) == 1 and p[start] == K_OBJECT:
        at = start
        count = member(body, at, b"model", &start, &stop)
    if count > 1:
        # The provider might read the other one: what is authorized must be what is served.
        raise ValueError(f"requests[{index}].params names the model twice")
    if count == 0 or p[start] != K_STRING or stop - start == 2:
        raise ValueError(f"requests[{index}].params.model must be a non-empty string")
    name = unquoted(body, start, stop)
    found.spans.append((start, stop, known.setdefault(name, name)))
    return 0


def is_batch(str method not None, bytes path not None):
    return method == "POST" and path.rstrip(b"/").endswith(BATCHES)


cdef Reply read_batch(RequestContext ctx, LlmCall call, bytes path):
    cdef MessageHead head = ctx.head
    cdef BatchModels batch
    if not ctx.body or not path.rstrip(b"/").endswith(BATCHES) or head.method != "POST":
        return None
    found = None if ctx.dynamic is None else ctx.dynamic.get(BATCH)
    if found is None or found[1] is not ctx.body:
        found = looked_at(ctx.body)
        ctx.dynamic = {**(ctx.dynamic or {}), BATCH: found}
    if isinstance(found[0], str):
        return refusal(400, "invalid_model", found[0])
    batch = found[0]
    if batch is None or not batch.names:
        return None
    if call.asked_model is None and call.asked_provider is None:
        call.requested, call.place, call.object_end = batch.names[0], MODEL_ASIDE, -1
    return None


def looked_at(bytes body not None):
    """(BatchModels, None for another body, or what is wrong; the body)."""
    try:
        return models_of(body), body
    except ValueError as error:
        return str(error), body


cdef BatchModels batch_of(RequestContext ctx):
    found = None if ctx.dynamic is None else ctx.dynamic.get(BATCH)
    return <BatchModels>found[0] if found is not None and isinstance(found[0], BatchModels) else None


cdef bint takes_batches(LlmTarget target, str model) except -1:
    cdef FormatRoute route = target.format_route_of("messages", model)
    return route is not None and route.translation is None
