"""Edits of LLM bodies; see bodies.pxd."""

import json

from headgate_engine.context.headers cimport H_CONTENT_ENCODING, MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.expr.program cimport Program
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.content_capture cimport count_of
from headgate_engine.llm.edit cimport edit_object
from headgate_engine.llm.estimate cimport estimate_of, prompt_tokens
from headgate_engine.llm.foreign cimport ForeignHistory
from headgate_engine.llm.formats cimport azure_target
from headgate_engine.llm.pattern cimport ModelPattern
from headgate_engine.llm.replies cimport BAD_ENCODING, TOO_LONG, UNKNOWN_ENCODING
from headgate_engine.llm.target cimport FormatRoute, LlmEdits
from headgate_engine.llm.top_members cimport TopMembers, value_of
from headgate_engine.llm.translate.readers cimport loads
from headgate_engine.peek.json cimport ChatPeek
from headgate_engine.wire.coding cimport coding_of, decoded

from libc.stdint cimport int64_t

from headgate_engine.expr.functions import json_text
from headgate_engine.expr.values import EvaluationError
from headgate_engine.peek.json import PeekError
from headgate_engine.wire.coding import CodingError, DecodedTooLong


# What was made of a long body beside the loop: (body, JSON, tokens or -1) in `ctx.dynamic`, under a name that no
# expression can write.
DECODED = "decoded body"
# The same of a body in a content coding: (body, what it is without the coding, or the CodingError that it came to).
UNPACKED = "unpacked body"
# What routing reads of a long body, and where its members stand: (body, ChatPeek; None: no JSON, TopMembers or None).
PEEKED = "peeked body"
# (body, TopMembers or None), where that alone was read.
MEMBERS = "members of a body"
# (body, the same with the model that the path names)
NAMED = "named body"


cdef tuple decoded_of(RequestContext ctx, bytes body):
    """What was made of this very body, None for any other."""
    cdef object found = None if ctx.dynamic is None else ctx.dynamic.get(DECODED)
    return <tuple>found if found is not None and found[0] is body else None


cdef tuple peeked_of(RequestContext ctx, bytes body):
    """What was read of this very body beside the loop; None: nothing was."""
    cdef object found = None if ctx.dynamic is None else ctx.dynamic.get(PEEKED)
    return <tuple>found if found is not None and found[0] is body else None


cdef ChatPeek routing_peek(RequestContext ctx, ChatPeek own):
    cdef tuple found = peeked_of(ctx, ctx.body)
    if found is not None:
        return None if found[1] is None else <ChatPeek?>found[1]
    try:
        own.scan(ctx.body, len(ctx.body))
    except PeekError:
        return None
    return own


cdef bint too_many(RequestContext ctx, ChatPeek peek):
    cdef tuple found = peeked_of(ctx, ctx.body)
    return found is not None and found[2] is None and peek.is_object


cdef tuple members_read(RequestContext ctx, bytes body):
    """(places of the members or None: too many,) if that was read of this very body beside the loop; None if it was not."""
    cdef tuple found = peeked_of(ctx, body)
    cdef object alone
    if found is not None:
        return found[2:]
    alone = None if ctx.dynamic is None else ctx.dynamic.get(MEMBERS)
    return None if alone is None or alone[0] is not body else alone[1:]


cdef TopMembers members_known(RequestContext ctx, bytes body):
    cdef tuple found = members_read(ctx, body)
    return None if found is None or found[0] is None else <TopMembers?>found[0]


cdef bint edit_members(RequestContext ctx, bytes body, dict sets, dict defaults, object removes) except -1:
    cdef tuple found = members_read(ctx, body)
    if found is not None and found[0] is None:
        return False
    ctx.replace_body(edit_object(body, sets, defaults, removes, None if found is None else <TopMembers?>found[0]))
    return True


cdef bytes unpacked_of(RequestContext ctx, str coding, Py_ssize_t most):
    """The body without its content coding. Raises CodingError, or DecodedTooLong beyond `most` bytes."""
    cdef object found = None if ctx.dynamic is None else ctx.dynamic.get(UNPACKED)
    if found is None or found[0] is not ctx.body:
        return decoded(coding, ctx.body, most)
    if isinstance(found[1], Exception):
        raise found[1]
    return found[1]


cdef Reply uncoded(RequestContext ctx, LlmCall call, Py_ssize_t most):
    given = ctx.head.get("content-encoding")
    coding = coding_of(given)
    if coding is None:
        return None
    if not coding:
        return UNKNOWN_ENCODING
    try:
        body = unpacked_of(ctx, coding, most)
    except CodingError as error:
        return TOO_LONG if isinstance(error, DecodedTooLong) else BAD_ENCODING
    call.coded, call.coding = ctx.body, given.encode("latin-1")
    ctx.body = body
    ctx.head.drop_id(H_CONTENT_ENCODING)
    return None


cdef object document_of(RequestContext ctx):
    """The JSON of the body. What lies below its top must not be changed."""
    cdef tuple found = decoded_of(ctx, ctx.body)
    if found is None or type(found[1]) is not dict:
        return loads(ctx.body)
    return dict(<dict>found[1])


cdef dict tell_request(RequestContext ctx, LlmCall call):
    """Sets `llmRequest`, for expressions: the body as it is now, with the model wherever it was named."""
    if ctx.dynamic is None:
        ctx.dynamic = {}
    told = document_of(ctx) if call.object_end >= 0 else {}
    if call.requested is not None:
        told.setdefault("model", call.requested.decode("utf-8", "replace"))
    ctx.dynamic["llmRequest"] = told
    return told


cdef tuple edited(RequestContext ctx, LlmCall call, LlmEdits edits, model):
    """(members to set as raw JSON, names to remove, model) by the edits of a target."""
    sets = dict(edits.overrides)
    removes = set()
    if edits.transformations:
        told = tell_request(ctx, call)
        if model is not None:
            told["model"] = model
        for name, program in edits.transformations:
            value = evaluated(ctx, program)
            if value is None:
                sets.pop(name, None)
                removes.add(name)
            else:
                sets[name] = value
                removes.discard(name)
    if "model" in sets:
        value = json.loads(sets["model"])
        model = value if isinstance(value, str) and value else None
    elif model is None and "model" in edits.defaults:
        model = json.loads(edits.defaults["model"])
    if model is not None:
        raw = model.encode()
        for pattern, other in edits.aliases:
            if (<ModelPattern>pattern).fits(raw):
                model = other
                break
    removes.discard("model")
    return sets, removes, model


cdef bytes evaluated(RequestContext ctx, program):
    """The value as raw JSON; None when there is none."""
    try:
        value = (<Program>program).evaluate(ctx)
        return None if value is None else json_text(value).encode()
    except EvaluationError:
        return None


cdef bint finally_edited(RequestContext ctx, LlmCall call, LlmEdits edits) except -1:
    if ctx.dynamic is None:
        ctx.dynamic = {}
    if call.final_document is not None and call.final_document[0] is ctx.body:
        ctx.dynamic["llmRequest"] = call.final_document[1]
        call.final_document = None
    else:
        ctx.dynamic["llmRequest"] = loads(ctx.body)
    sets, removes = {}, set()
    for name, program in edits.final:
        value = evaluated(ctx, program)
        if value is None:
            removes.add(name)
        else:
            sets[name] = value
    return edit_members(ctx, ctx.body, sets, {}, removes)


cdef int make_fit(RequestContext ctx, LlmCall call, ForeignHistory history) except -1:
    if not history.seen(ctx.body):
        return 0
    if call.translated is not None and call.translated[0] is ctx.body:
        made = call.translated[1]
        call.translated = None
    else:
        made = history.clean(ctx.body)
    if made is not ctx.body:
        ctx.replace_body(made)
    return 0


cdef tuple short_limits(LlmCall call, sets, removes, dict defaults):
    """`max_tokens` under the name that these models know; an explicit `max_completion_tokens` wins."""
    sets = {} if sets is None else sets
    if not there("max_tokens", call.max_tokens is not None, sets, removes, defaults):
        return sets, removes
    if not there("max_completion_tokens", call.has_completion_limit, sets, removes, defaults):
        # What the configuration sets stands over what the client sent, that over what is set where nothing is.
        sets["max_completion_tokens"] = sets.get("max_tokens") or call.max_tokens or defaults["max_tokens"]
        removes = {*removes} - {"max_completion_tokens"}
    sets.pop("max_tokens", None)
    return sets, {*removes, "max_tokens"}


cdef bint there(str name, bint sent, dict sets, removes, dict defaults):
    """Whether the edited body has the member."""
    return name not in removes and (sent or name in sets or name in defaults)


cdef object usage_wanted(RequestContext ctx, LlmCall call, bytes body, dict sets, removes, dict defaults):
    options = None
    if "stream_options" in sets:
        options = json.loads(sets["stream_options"])
    elif "stream_options" in removes:
        removes = {*removes} - {"stream_options"}
    elif call.has_stream_options:
        start, stop = value_of(body, "stream_options", members_known(ctx, body))
        options = json.loads(body[start:stop])
    elif "stream_options" in defaults:
        options = json.loads(defaults["stream_options"])
    if options is None:
        options = {}
    if isinstance(options, dict) and "include_usage" not in options:
        sets["stream_options"] = json.dumps({**options, "include_usage": True}, separators=(",", ":")).encode()
    return removes


cdef bytes asked_path(MessageHead head, LlmCall call):
    """The path that a new request asks for. One of Azure's kind becomes what other clients would ask for."""
    cdef bytes path = head.data[head.target_off:head.target_off + head.path_len]
    found = azure_target(path, head.data[head.target_off + head.path_len:head.target_off + head.target_len])
    if found is None:
        return path
    call.deployment, call.target_line = found
    head.set_target(call.target_line, len(call.target_line))
    return call.target_line.partition(b"?")[0]


def deployment_of(RequestContext ctx not None):
    cdef MessageHead head = ctx.head
    found = azure_target(head.data[head.target_off:head.target_off + head.path_len],
                         head.data[head.target_off + head.path_len:head.target_off + head.target_len])
    return None if found is None or found[0] is None else found[0].decode()


cdef bint name_deployment(RequestContext ctx, LlmCall call) except -1:
    """Writes the model of the path into the body; returns whether that is an object."""
    cdef tuple known = decoded_of(ctx, ctx.body)
    cdef str model = call.deployment.decode()
    cdef object named = None if ctx.dynamic is None else ctx.dynamic.get(NAMED)
    try:
        ctx.body = (<bytes?>named[1] if named is not None and named[0] is ctx.body
                    else edit_object(ctx.body, {"model": json.dumps(model).encode()}, {}, ()))
    except ValueError:
        return False
    if known is not None and type(known[1]) is dict:
        # What was read beside the loop is of the new body as well, but for its model.
        ctx.dynamic[DECODED] = (ctx.body, {**<dict>known[1], "model": model}, known[2])
    call.coded = None
    return True


cdef FormatRoute route_of(RequestContext ctx, LlmCall call):
    cdef FormatRoute route = <FormatRoute>call.format_route
    cdef bytes wanted = None
    if route.several is None or call.object_end < 0 or call.opaque or b'"n"' not in ctx.body:
        return route
    found = value_of(ctx.body, "n", members_known(ctx, ctx.body))
    if found is not None:
        wanted = ctx.body[found[0]:found[1]]
    if wanted is not None and wanted != b"1" and wanted != b"null":
        call.format_route = route = route.several
    return route


cdef Reply estimated(RequestContext ctx, LlmCall call, bytes body, int64_t added):
    cdef tuple found = decoded_of(ctx, body)
    cdef int64_t tokens = -1 if found is None else <int64_t>found[2]
    cdef Reply reply = estimate_of(call.format, (prompt_tokens(call.format, body) if tokens < 0 else tokens) + added)
    call.counted = count_of(reply.body)
    return reply
