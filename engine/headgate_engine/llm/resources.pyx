"""What clients keep at a provider; see resources.pxd."""

import json
import re
from urllib.parse import parse_qsl

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.media cimport media_type_is
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.llm.attempt cimport MODEL_ASIDE, MODEL_IN_QUERY, MODEL_IN_SESSION, LlmCall
from headgate_engine.llm.top_members cimport members_in
from headgate_engine.llm.public cimport PublicModel
from headgate_engine.llm.replies cimport refusal
from headgate_engine.llm.target cimport LlmGroup, LlmTarget, ModelEntry

from libc.string cimport memchr

cdef extern from "string.h" nogil:
    void* memmem(const void* text, size_t n, const void* sought, size_t size)   # of GNU and BSD

# Header fields in which requests name a model or a provider that their bodies do not.
cdef bytes model_field = b"x-gw-model"
cdef bytes provider_field = b"x-gw-provider"
# Stands in every sealed id, behind the vendor's prefix. Names of Google have no underscore.
MARK = b"gw1_"
NAME_MARK = b"gw1"
# What a request with a sealed id has in it; has_stem() looks for these letters.
STEM = b"gw1"
# Paths whose JSON has a model in `session`, and the longest body that is looked through for it
# (https://platform.openai.com/docs/api-reference/realtime).
SESSIONS = (b"/realtime/client_secrets", b"/realtime/calls", b"/realtime/transcription_sessions")
MAX_SESSION = 131072
SESSION_PART = re.compile(rb'name="?session"?[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n(\{.*?\})\r\n--', re.S)
# Paths that end so have uploads: too long to be kept, and without a model in them.
UPLOADS = (b"/files", b"/parts")
# A field of the head of Google's uploads, whose pieces have no media type.
cdef bytes upload_command = b"x-goog-upload-command"
# Formats that no suffix of a path names.
LOOSE = frozenset(("detect", "passthrough", "realtime"))
# Last segments of paths that list what an account has.
LISTS = frozenset((b"files", b"batches", b"vector_stores", b"jobs", b"uploads", b"containers", b"conversations", b"assistants",
                   b"evals", b"skills", b"videos", b"cachedContents", b"responses", b"completions", b"input_items"))
# What these list belongs to one thing, whose id is in the path.
WITHIN = frozenset((b"input_items",))
# Last segments of paths whose answers are what a client has stored, not objects with ids.
CONTENTS = frozenset((b"content", b"results"))

cdef Reply NO_MODEL = refusal(
    400, "missing_model",
    "the request names no model; `x-gw-model` can name one, and `llm.resources` a provider for requests without one")
cdef Reply BAD_MODEL = refusal(400, "invalid_model", "the model must be a non-empty string")
cdef Reply NO_PROVIDER = refusal(404, "provider_not_found", "`llm.resources.providers` has no provider of that name")
cdef Reply DENIED = refusal(403, "model_authorization_denied", "no rule lets this request use the provider")
cdef Reply NOT_BOUND = refusal(
    404, "id_not_served", "no model that the request may use leads to the provider that made the id")
cdef Reply NO_LISTS = refusal(
    403, "list_not_allowed",
    "a list of the provider has what others made; `llm.resources.lists: shared` allows it")


cdef class Resources:
    """ids: seals and opens. providers: name -> PublicModel. default_provider: one of these names, or None."""

    def __init__(self, ids not None, providers=None, str default_provider=None, *, bint shared_lists=False):
        self.ids = ids
        self.providers = {name.encode(): <PublicModel?>model for name, model in dict(providers or {}).items()}
        self.default_provider = None if default_provider is None else default_provider.encode()
        if self.default_provider is not None and self.default_provider not in self.providers:
            raise ValueError(f"no provider is named {default_provider!r}")
        self.shared_lists = shared_lists

    cdef Reply open_target(self, RequestContext ctx, LlmCall call):
        cdef MessageHead head = ctx.head
        cdef bytes target = head.data[head.target_off:head.target_off + head.target_len]
        if head.find(model_field, len(model_field), 0) >= 0:
            call.asked_model = head.get(model_field.decode()).encode()
        if head.find(provider_field, len(provider_field), 0) >= 0:
            call.asked_provider = head.get(provider_field.decode()).encode()
        self.clear(ctx)
        if not has_stem(target):
            return None
        found = self.ids.opened(target, ctx, False, call.bound)
        if isinstance(found, Reply):
            return <Reply>found
        target, call.guarded_id, call.bound = found
        if call.bound is not None:
            call.target_line = target
            head.set_target(target, len(target))
        return None

    cdef Reply open_body(self, RequestContext ctx, LlmCall call):
        if not has_stem(ctx.body):
            return None
        found = self.ids.opened(ctx.body, ctx, True, call.bound)
        if isinstance(found, Reply):
            return <Reply>found
        body, guarded, bound = found
        if bound is None or body == ctx.body:
            return None
        call.bound = bound
        call.guarded_id = call.guarded_id or guarded
        call.coded = None
        ctx.replace_body(body)
        return None

    cdef int clear(self, RequestContext ctx) except -1:
        ctx.head.drop_field(model_field, len(model_field))
        ctx.head.drop_field(provider_field, len(provider_field))
        return 0

    cdef Reply aside(self, RequestContext ctx, LlmCall call, bytes path):
        cdef bytes model = None
        cdef int place = MODEL_ASIDE
        if ctx.body and len(ctx.body) <= MAX_SESSION and path.endswith(SESSIONS):
            model, place = session_model(ctx.body), MODEL_IN_SESSION
        if model is None:
            found = [value for name, value in parse_qsl(ctx.head.query.lstrip("?"), keep_blank_values=True) if name == "model"]
            if found:
                model, place = found[0].encode(), MODEL_IN_QUERY
                if len(found) > 1 or not model:
                    return BAD_MODEL
        if model is None:
            model, place = call.asked_model, MODEL_ASIDE
        call.object_end = -1                 # nothing of such a body is edited
        if model is not None:
            if not model:
                return BAD_MODEL
            call.requested, call.place = model, place
            return None
        call.place = MODEL_ASIDE
        call.provider_name = call.asked_provider
        if call.provider_name is None and call.bound is None:
            call.provider_name = self.default_provider
            return NO_MODEL if call.provider_name is None else None
        return None

    cdef Reply select(self, RequestContext ctx, LlmCall call):
        cdef PublicModel model = self.providers.get(call.provider_name)
        if model is None:
            return NO_PROVIDER
        if model.rules is not None and not model.rules.permits(ctx):
            return DENIED
        call.entry = model.entry if call.bound is None else bound_entry(model.entry, call.bound, call.guarded_id)
        return NOT_BOUND if call.entry is None else None

    cdef Reply listed(self, RequestContext ctx, bytes path):
        if self.shared_lists or ctx.head.method not in ("GET", "HEAD"):
            return None
        last = path.rstrip(b"/").rpartition(b"/")[2]
        if last not in LISTS or last in WITHIN or not self.ids.owner_of(ctx):
            return None
        return NO_LISTS

    cdef bint passes_unread(self, RequestContext ctx, bytes path, Py_ssize_t most) except -1:
        cdef MessageHead head = ctx.head
        if 0 <= head.content_length <= most or not path.endswith(UPLOADS) or head.method not in ("POST", "PUT"):
            return False
        if not (media_type_is(head, b"multipart/form-data", 19) or media_type_is(head, b"application/octet-stream", 24)
                or head.find(upload_command, len(upload_command), 0) >= 0):
            return False
        return (self.default_provider is not None or STEM in path or STEM in head.query.encode()
                or head.find(model_field, len(model_field), 0) >= 0 or head.find(provider_field, len(provider_field), 0) >= 0)

    cdef bytes place_of(self, RequestContext ctx, LlmCall call, LlmTarget target):
        cdef MessageHead head = ctx.head
        if call.format == "completions":
            if not stores(ctx.body):
                return None
        elif call.format != "responses" and call.format not in LOOSE:
            return None
        cdef bytes path = head.data[head.target_off:head.target_off + head.path_len]
        if path.rstrip(b"/").rpartition(b"/")[2] in CONTENTS:
            return None
        return self.ids.place(ctx, target.account, target.guarded)


cdef bint has_stem(bytes text) except -1:
    """Whether STEM is in a text. Every body is looked through: by its first letter, 32 bytes at a time; memmem() and `in` take
    five instructions for each byte."""
    cdef const char* p = text
    cdef Py_ssize_t left = len(text) - 2
    cdef const char* found
    while left > 0:
        found = <const char*>memchr(p, 103, left)
        if found == NULL:
            return False
        if found[1] == 119 and found[2] == 49:
            return True
        left -= found + 1 - p
        p = found + 1
    return False


cdef bint stores(bytes body) except -1:
    """Whether a chat completion is to be kept by the provider."""
    if memmem(<const char*>body, len(body), b'"store"', 7) == NULL:
        return False
    for _, _, start, stop, _, _ in members_in(body, ("store",)).places.get("store", ()):
        if body[start:stop] == b"true":
            return True
    return False


cdef ModelEntry bound_entry(ModelEntry entry, bytes account, int guarded):
    groups = []
    for group in entry.groups:
        kept = [target for target in (<LlmGroup>group).targets
                if (<LlmTarget>target).account == account and (guarded < 0 or (<LlmTarget>target).guarded == guarded)]
        if kept:
            groups.append(LlmGroup(kept))
    return ModelEntry(entry.name, groups, entry.affinity) if groups else None


cdef tuple session_of(bytes body):
    """(start, stop, document) of the JSON that has a session, or is one."""
    start, stop = 0, len(body)
    if not body.lstrip().startswith(b"{"):
        found = SESSION_PART.search(body)
        if found is None:
            return 0, 0, None
        start, stop = found.span(1)
    try:
        told = json.loads(body[start:stop])
    except (ValueError, RecursionError):
        return 0, 0, None
    return start, stop, told if isinstance(told, dict) else None


cdef dict holder_of(dict told):
    """The object with the model of a session: the session, its transcription, or the whole."""
    session = told.get("session")
    if not isinstance(session, dict):
        session = told
    return session if isinstance(session.get("model"), str) else None


cdef bytes session_model(bytes body):
    told = session_of(body)[2]
    found = None if told is None else holder_of(told)
    return None if found is None else (<str>found["model"]).encode()


cdef bytes renamed(bytes body, str model):
    start, stop, told = session_of(body)
    found = None if told is None else holder_of(told)
    if found is None:
        return body
    found["model"] = model
    return body[:start] + json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + body[stop:]
