"""Which of the configured models serves a request; see selection.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.llm.attempt cimport MODEL_IN_PATH, LlmCall
from headgate_engine.llm.bodies cimport document_of, tell_request
from headgate_engine.llm.estimate cimport document_tokens, estimate_of
from headgate_engine.llm.pattern cimport ModelPattern
from headgate_engine.llm.public cimport PublicModel, allowed, permitted
from headgate_engine.llm.replies cimport refusal
from headgate_engine.llm.resources cimport NOT_BOUND, Resources, bound_entry
from headgate_engine.llm.target cimport LlmTarget, ModelEntry, VirtualEntry

cdef Reply DENIED = refusal(403, "model_authorization_denied", "no rule lets this request use the model")

cdef bytes BEDROCK = b"aws.bedrock"
# Verbs in Bedrock's paths whose bodies are of the model's vendor.
cdef bytes COUNTS = b"/count-tokens"
cdef tuple INVOKES = (b"/invoke", b"/invoke-with-response-stream", COUNTS)
# Letters of the name of a model in a message.
cdef enum:
    MAX_NAME = 256
# Formats of requests for new answers.
READ = frozenset(("completions", "responses", "messages", "gemini", "converse"))


cdef Reply not_found(str model):
    return refusal(404, "model_not_found", f"model {model!r} is not served here")


cdef Reply not_allowed(RequestContext ctx, bytes model):
    """The refusal of a model that the request's key may not use. The log gets both their names."""
    name = None if ctx.api_key is None else ctx.api_key.get("name")
    if type(name) is str:
        ctx.add_log_field("api_key.name", name)
    if model is None:
        return refusal(403, "model_not_allowed", "the API key may not use all models, and the request names none")
    ctx.requested_model = model
    shown = model.decode("utf-8", "replace")
    return refusal(403, "model_not_allowed", f"the API key may not use the model {shown[:MAX_NAME]!r}")


def model_not_found(str model not None):
    """Python face of not_found()."""
    return not_found(model)


cdef bytes _path(RequestContext ctx):
    return ctx.head.data[ctx.head.target_off:ctx.head.target_off + ctx.head.path_len]


cdef bint invokes_elsewhere(RequestContext ctx, LlmCall call, LlmTarget target) except -1:
    """Whether a client of Bedrock's sends a model's own body to somebody who cannot read it."""
    if call.place != MODEL_IN_PATH or target.rest is not None or target.provider == BEDROCK:
        return False
    return _path(ctx).endswith(INVOKES)


cdef Reply _counted(RequestContext ctx, LlmCall call, LlmTarget target):
    """The estimate for a request of Converse that is to be counted; None for a model's own body."""
    cdef int64_t tokens
    try:
        told = document_of(ctx)["input"]["converse"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    tokens = document_tokens("converse", told) + target.added
    call.counted = tokens
    return estimate_of("converse", tokens)


cdef Reply unsupported(RequestContext ctx, LlmCall call, LlmTarget target):
    if call.format_route is not None and _path(ctx).endswith(COUNTS):
        counted = _counted(ctx, call, target)
        if counted is not None:
            return <Reply>counted
    given = sorted({name for format_routes in target.families.values() for name in format_routes})
    asked = call.format
    if call.format_route is not None:
        asked = "InvokeModel, whose bodies are those of one model; Converse is translated,"
    message = (f"failed to process LLM request: unsupported conversion: from {asked} to provider "
               f"{target.provider.decode()} (supported: {', '.join(given)})")
    return refusal(400, "unsupported_conversion", message)


cdef Reply first_model(RequestContext ctx, LlmCall call, tuple models, bint named):
    """The first model whose pattern, fields and rules all hold. named: their names decide, too."""
    cdef PublicModel model
    cdef bint denied = False
    cdef bint told = False
    for model in models:
        if named and not (<ModelPattern>model.names).fits(call.requested):
            continue
        if model.matches is not None and not model.matches.fits(ctx):
            continue
        if model.rules is not None:
            if model.reads_body and not told:
                told = True
                tell_request(ctx, call)
            if not model.rules.permits(ctx):
                denied = True
                continue
        call.entry = model.entry
        call.known = call.known or "*" not in model.pattern
        return None
    return DENIED if denied else not_found("" if call.requested is None else call.requested.decode("utf-8", "replace"))


cdef Reply bound_model(RequestContext ctx, LlmCall call, tuple models, dict virtual):
    """The first entry of the model that leads to the account which the ids of the request belong to."""
    cdef VirtualEntry one = virtual.get(call.requested)
    cdef bint denied = False
    # A new request has guards of its own; what is kept is had only where they would look on.
    cdef int guarded = 1 if call.guarded_id and call.format not in READ else -1
    cdef bint refused = False
    cdef ModelEntry entry
    for found in (models,) if one is None else one.entries:
        if isinstance(found, ModelEntry):
            if (<ModelEntry>found).guarded:
                tell_request(ctx, call)
                found = permitted(<ModelEntry>found, ctx, &refused)
                denied = denied or refused
            entry = None if found is None else bound_entry(<ModelEntry>found, call.bound, guarded)
            if entry is not None:
                call.entry = entry
                call.known = True
                return None
            continue
        for model in <tuple>found:
            if bound_entry((<PublicModel>model).entry, call.bound, guarded) is None:
                continue
            reply = first_model(ctx, call, (model,), one is None)
            if reply is None:
                call.entry = bound_entry(<ModelEntry>call.entry, call.bound, guarded)
                return None
            denied = denied or reply is DENIED
    return DENIED if denied else NOT_BOUND


cdef Reply bound_anywhere(RequestContext ctx, LlmCall call, tuple models, dict virtual, Resources resources):
    cdef bint denied = False
    # What guards have looked at is not to be had past them; anything else rather where none stand in the way.
    for guarded in [1] if call.guarded_id else [0, 1]:
        if not guarded and usable(ctx, None):
            for model in resources.providers.values():
                if bound(ctx, call, (<PublicModel>model).entry, <PublicModel>model, guarded, &denied):
                    return None
        for model in models:
            if usable(ctx, (<PublicModel>model).names) and (
                    bound(ctx, call, (<PublicModel>model).entry, <PublicModel>model, guarded, &denied)):
                return None
        for name, one in virtual.items():
            if ctx.allowed_models is not None and not allowed(ctx.allowed_models, <bytes>name):
                continue
            for found in (<VirtualEntry>one).entries:
                if isinstance(found, ModelEntry):
                    if bound(ctx, call, <ModelEntry>found, None, guarded, &denied):
                        return None
                    continue
                for model in <tuple>found:
                    if bound(ctx, call, (<PublicModel>model).entry, <PublicModel>model, guarded, &denied):
                        return None
    return DENIED if denied else NOT_BOUND


cdef bint usable(RequestContext ctx, ModelPattern names) except -1:
    """Whether the key of the request may use a model of these names; None: whatever names no model."""
    if ctx.allowed_models is None:
        return True
    if names is None:
        return allowed(ctx.allowed_models, b"")
    for pattern in ctx.allowed_models:
        if names.meet(<ModelPattern>pattern) is not None:
            return True
    return False


cdef bint bound(RequestContext ctx, LlmCall call, ModelEntry entry, PublicModel model, int guarded, bint* denied) except -1:
    """Sets call.entry to what of the entry the request may use for its ids; False for nothing."""
    cdef bint refused = False
    entry = bound_entry(entry, call.bound, guarded)
    if entry is None:
        return False
    if model is not None:
        reply = first_model(ctx, call, (model,), False)
        if reply is not None:
            denied[0] = denied[0] or reply is DENIED
            return False
    elif entry.guarded:
        tell_request(ctx, call)
        entry = permitted(entry, ctx, &refused)
        if entry is None:
            denied[0] = denied[0] or refused
            return False
    call.entry = entry
    return True
