"""Model selection and the edits a request needs for its provider; see router.pxd."""

import json
import time
import zlib

from headgate_engine.context.headers cimport H_CONTENT_ENCODING, MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.llm.pattern cimport ModelPattern
from headgate_engine.llm.usage cimport UsageTap
from headgate_engine.peek.json cimport ChatPeek
from headgate_engine.plan.plans cimport BackendPlan

from headgate_engine.peek.json import PeekError

# Suffixes of client paths by format; longest first.
COMPLETIONS = "/chat/completions"
MODEL_LIST_PATHS = ("/v1/models", "/models")
# A compressed body may grow to this many bytes when it is read.
MAX_DECODED = 8 * 1024 * 1024
INJECTED = b',"stream_options":{"include_usage":true}'


REASONS = {403: "Authorization", 404: "NotFound"}


def refusal(int status, str code, str message):
    """The error object of LLM routes."""
    body = json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}},
                      separators=(",", ":")).encode()
    return Reply(status, body, ((b"content-type", b"application/json"),),
                 REASONS.get(status, "InvalidRequest"))


cdef Reply NOT_JSON = refusal(400, "invalid_request_body", "the request body is not a JSON object")
cdef Reply NO_MODEL = refusal(400, "missing_model", "the request names no model")
cdef Reply BAD_MODEL = refusal(400, "invalid_model", "the model must be a non-empty string")
cdef Reply BAD_ENCODING = refusal(400, "request_body_decode_failed", "the request body cannot be decoded")
cdef Reply NOT_ALLOWED = refusal(403, "model_not_allowed", "the API key may not use this model")
cdef Reply TWO_MODELS = refusal(400, "invalid_request_body", "the request names the model twice")


def not_found(str model):
    return refusal(404, "model_not_found", f"model {model!r} is not served here")


cdef class LlmTarget:
    """One entry of `llm.models`.

    pattern: a name, or with one `*` at its start or end, or `*`. plan: BackendPlan of kind LLM with its pool. paths: client
    path suffix -> whole provider path; path_override wins over it, path_prefix + rest is used without either.
    """

    def __init__(self, str pattern, BackendPlan plan, str provider, *, str path_prefix="", str path_override=None,
                 paths=(), str pinned=None):
        self.pattern = pattern
        self.names = ModelPattern(pattern)
        self.plan = plan
        self.provider = provider.encode()
        self.path_prefix = path_prefix.encode()
        self.path_override = None if path_override is None else path_override.encode()
        self.paths = {suffix.encode(): path.encode() for suffix, path in dict(paths).items()}
        self.pinned = None if pinned is None else json.dumps(pinned).encode()


cdef class LlmChoice:
    pass


cdef class ModelRouter:
    """targets: LlmTarget in the order they are tried. created: Unix time for the model list."""

    def __init__(self, targets, created=None):
        self.targets = tuple(targets)
        self.peek = ChatPeek()
        self.created = int(created or time.time())
        self.model_list = self.listing(self.targets)

    def listing(self, targets):
        """The model list of these targets."""
        listed = [{"id": target.pattern, "object": "model", "created": self.created, "owned_by": "openai"}
                  for target in targets]
        return json.dumps({"data": listed, "object": "list"}, separators=(",", ":")).encode()

    def listed_for(self, tuple patterns):
        """The model list that the key with these patterns may see."""
        return self.listing([target for target in self.targets if allowed(patterns, target.pattern.encode())])

    cdef LlmChoice choose(self, RequestContext ctx):
        cdef LlmChoice choice = LlmChoice.__new__(LlmChoice)
        cdef LlmTarget target
        cdef MessageHead head = ctx.head
        cdef bytes path = head.data[head.target_off:head.target_off + head.path_len]
        text = path.decode("latin-1")
        if is_model_list(text):
            shown = self.model_list if ctx.allowed_models is None else self.listed_for(ctx.allowed_models)
            choice.reply = Reply(200, shown, ((b"content-type", b"application/json"),), "DirectResponse")
            return choice
        if head.find_id(H_CONTENT_ENCODING, 0) >= 0:
            choice.reply = self._decode(ctx)
            if choice.reply is not None:
                return choice
        try:
            self.peek.scan(ctx.body, len(ctx.body))
        except PeekError:
            choice.reply = NOT_JSON
            return choice
        choice.reply = self._check_model()
        if choice.reply is not None:
            return choice
        ctx.requested_model = self.peek.model_bytes()
        if ctx.allowed_models is not None and not allowed(ctx.allowed_models, ctx.requested_model):
            choice.reply = NOT_ALLOWED
            return choice
        for target in self.targets:
            if target.names.fits(ctx.requested_model):
                break
        else:
            choice.reply = not_found(ctx.requested_model.decode("utf-8", "replace"))
            return choice
        choice.plan = target.plan
        ctx.provider = target.provider
        self._edit(ctx, target, text.endswith(COMPLETIONS), choice)
        self._point(ctx, target)
        return choice

    def _check_model(self):
        if not self.peek.is_object:
            return NOT_JSON
        if not self.peek.has_model:
            return NO_MODEL
        if not self.peek.model_is_string or not self.peek.model_bytes():
            return BAD_MODEL
        if self.peek.duplicate_model:
            # The provider might read the other one: what is authorized must be what is served.
            return TWO_MODELS
        return None

    def _decode(self, RequestContext ctx):
        encoding = ctx.head.get("content-encoding").strip().lower()
        if encoding in ("", "identity"):
            return None
        if encoding not in ("gzip", "deflate"):
            return BAD_ENCODING
        decoder = zlib.decompressobj(wbits=31 if encoding == "gzip" else 15)
        try:
            body = decoder.decompress(ctx.body, MAX_DECODED)
        except zlib.error:
            return BAD_ENCODING
        if decoder.unconsumed_tail or not decoder.eof:
            return BAD_ENCODING
        ctx.body = body
        ctx.head.drop_id(H_CONTENT_ENCODING)
        return None

    cdef int _edit(self, RequestContext ctx, LlmTarget target, bint completions, LlmChoice choice) except -1:
        cdef ChatPeek peek = self.peek
        cdef bytes body = ctx.body
        cdef bint inject = completions and peek.stream and not peek.has_stream_options
        cdef UsageTap tap = UsageTap.__new__(UsageTap)
        tap.strip = inject
        choice.tap = tap
        if inject:
            # The object is not empty (it has a model), so a comma is right.
            body = body[:peek.object_end] + INJECTED + body[peek.object_end:]
        if target.pinned is not None:
            body = body[:peek.model_start] + target.pinned + body[peek.model_stop:]
        ctx.body = body
        return 0

    cdef int _point(self, RequestContext ctx, LlmTarget target) except -1:
        cdef MessageHead head = ctx.head
        cdef bytes whole = head.data[head.target_off:head.target_off + head.target_len]
        cdef bytes path = whole[:head.path_len]
        cdef bytes query = whole[head.path_len:]
        cdef bytes new
        if target.path_override is not None:
            new = target.path_override
        else:
            new = None
            for suffix, provider_path in target.paths.items():
                if path.endswith(suffix):
                    new = provider_path
                    break
            if new is None:
                new = target.path_prefix + (path[3:] if path.startswith(b"/v1/") else path)
            new += query
        head.set_target(new, len(new))
        # Usage is read from the answer: a coding that the client alone asked for would hide it.
        head.drop_field(b"accept-encoding", 15)
        if target.plan.authority is not None:
            head.set_authority(target.plan.authority, len(target.plan.authority))
        return 0


cdef bint allowed(tuple patterns, bytes model) except -1:
    for pattern in patterns:
        if (<ModelPattern>pattern).fits(model):
            return True
    return False


cdef bint is_model_list(str path) except -1:
    for prefix in MODEL_LIST_PATHS:
        if path == prefix or path.startswith(prefix + "/"):
            return True
    return False
