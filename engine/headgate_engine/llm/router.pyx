"""Model selection and the edits a request needs for its provider; see router.pxd."""

import json
import re
import time
from urllib.parse import parse_qsl, unquote

from headgate_engine.context.headers cimport H_CONTENT_ENCODING, HEAD_UPGRADE, MessageHead
from headgate_engine.context.media cimport media_type_is
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.llm.attempt cimport (
    MODEL_ASIDE, MODEL_IN_BODY, MODEL_IN_FORM, MODEL_IN_PATH, MODEL_IN_QUERY, MODEL_IN_SESSION, MODEL_NOWHERE, LlmCall)
from headgate_engine.llm.batches cimport BatchModels, batch_of, read_batch, takes_batches
from headgate_engine.llm.bodies cimport (
    asked_path, edit_members, edited, estimated, finally_edited, make_fit, name_deployment, route_of, routing_peek, short_limits,
    tell_request, too_many, uncoded, usage_wanted)
from headgate_engine.llm.formats cimport RouteMap, model_span, quoted, wants_events, with_model, without
from headgate_engine.llm.framed cimport bedrock_tap
from headgate_engine.llm.native cimport native_tap
from headgate_engine.llm.public cimport (
    allowed, is_model_list, list_format, listed_model, model_listing, models_for, permitted, shown_models, sources_due)
from headgate_engine.llm.content_capture cimport CaptureOptions
from headgate_engine.llm.replies cimport (
    BAD_MODEL, NOT_JSON, NOT_RESOLVED, NO_BATCHES, NO_LIST, NO_MODEL, NO_TARGET, NO_UPGRADE,
    SEVERAL_PROVIDERS, TOO_LONG, TOO_MANY, TWO_MODELS, UNKNOWN_PATH, refusal)
from headgate_engine.llm.resources cimport renamed
from headgate_engine.llm.selection cimport (
    DENIED, bound_anywhere, bound_model, first_model, invokes_elsewhere, not_allowed, not_found, unsupported)
from headgate_engine.llm.target cimport LlmEdits, FormatRoute, LlmTarget, ModelEntry, VirtualEntry
from headgate_engine.llm.translated cimport translated_tap
from headgate_engine.peek.json cimport ChatPeek
from headgate_engine.plan.retry cimport RetryPlan

from headgate_engine.llm.capture_tap import COUNTING
from headgate_engine.llm.formats import DEFAULT_ROUTES

# A compressed body may grow to this many bytes when it is read, unless the configuration says otherwise.
MAX_DECODED = 2 * 1024 * 1024
BEDROCK = b"aws.bedrock"
INJECTED = b',"stream_options":{"include_usage":true}'
# Formats whose bodies tell whether a stream is wanted; for the others the path does.
STREAM_IN_BODY = frozenset(("completions", "messages", "responses", "text", "detect", "passthrough"))
# Formats that may have no model, or another body than JSON.
LOOSE = frozenset(("detect", "passthrough", "realtime"))
FORM_MODEL = re.compile(rb'name="?model"?[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]*)\r\n')
# Formats whose bodies name the model, whatever stands in their paths; of messages that depends on the path.
BY_BODY = frozenset(("completions", "responses", "text", "embeddings", "rerank", "count_tokens"))
RAW_PREDICT = frozenset((b":rawPredict", b":streamRawPredict"))
# Formats whose paths name the model and say whether a stream is wanted.
BY_PATH = frozenset(("gemini", "gemini_count_tokens"))


cdef tuple JSON_HEAD = ((b"content-type", b"application/json"),)

BODY_TOO_LONG = TOO_LONG


cdef class LlmChoice:
    pass


cdef class ModelRouter:
    """models: PublicModel in the order they are tried. sole_entry: takes every request whatever its model (`ai`).

    created: Unix time for the model list.
    """

    def __init__(self, models=(), virtual=(), *, routes=None, ModelEntry sole_entry=None, RetryPlan failover=None,
                 created=None):
        self.models = tuple(models)
        self.virtual = {one.name.encode(): one for one in virtual}
        self.routes = RouteMap(DEFAULT_ROUTES if routes is None else DEFAULT_ROUTES | routes)
        self.allows_unknown = routes is not None and "*" in routes
        self.sole_entry = sole_entry
        self.failover = failover
        self.peek = ChatPeek()
        self.max_body = MAX_DECODED
        self.created = int(created or time.time())
        entries = [model.entry for model in self.models]
        for one in self.virtual.values():
            for found in one.entries:
                entries += [found] if isinstance(found, ModelEntry) else [model.entry for model in found]
        self.open_paths = any(target.rest is not None for entry in entries for group in entry.groups
                              for target in group.targets)
        if not any(model.rules is not None or model.source is not None for model in self.models):
            self.model_list = model_listing("completions", models_for(self.models, self.virtual, None), self.created)

    cdef Reply _models(self, RequestContext ctx, bytes path):
        cdef str name = listed_model(path)
        cdef bytes shown
        if self.sole_entry is not None:
            return NO_LIST
        shown = shown_models(self.models, self.virtual, self.model_list, self.created, ctx, path)
        return not_found(name) if shown is None else Reply(200, shown, JSON_HEAD, "DirectResponse")

    cdef LlmChoice choose(self, RequestContext ctx):
        cdef LlmChoice choice = LlmChoice.__new__(LlmChoice)
        cdef LlmCall call = <LlmCall>ctx.llm
        cdef LlmTarget target
        cdef FormatRoute format_route
        cdef MessageHead head = ctx.head
        if call is None:
            call = LlmCall.__new__(LlmCall)
            path = asked_path(head, call)
            if self.resources is not None:
                choice.reply = self.resources.open_target(ctx, call)
                if choice.reply is not None:
                    return choice
                if call.bound is not None:
                    path = head.data[head.target_off:head.target_off + head.path_len]
            if self.sole_entry is None and is_model_list(path) and (model_span(path) is None or head.method == "GET"):
                choice.reply = self._models(ctx, path)
                choice.waits = sources_due(self.models)
                return choice
            call.format = self.routes.named(path, len(path))
            if call.format is None:
                call.format = self.routes.rest
                call.open_path = self.open_paths
                call.unknown_path = not self.allows_unknown and not is_model_list(path)
            if call.format == "models":
                choice.reply = self._models(ctx, path)
                return choice
            call.wanted = self.wanted
            if self.resources is not None and call.format in LOOSE:
                choice.reply = self.resources.listed(ctx, path)
                if choice.reply is not None:
                    return choice
            choice.reply = self._read(ctx, call, path)
            if choice.reply is None:
                ctx.llm = call                       # conditions and rules may ask what the request says
                choice.reply = self._select(ctx, call)
            if choice.reply is not None:
                return choice
            call.tried = []
            call.body = ctx.body
            call.prices = self.prices
            call.log_payload = self.log_payload
        else:
            if call.target_line is not None:
                head.set_target(call.target_line, len(call.target_line))
            if self.resources is not None:
                self.resources.clear(ctx)
            ctx.body = call.body                     # the next attempt begins with what the client sent
            if call.coded is not None:
                head.drop_id(H_CONTENT_ENCODING)
        if (<ModelEntry>call.entry).affinity_reads:
            tell_request(ctx, call)
        target = (<ModelEntry>call.entry).pick(call.tried, ctx)
        call.target = target
        call.known = call.known or target.pinned is not None
        call.tried.append(target)
        ctx.provider = target.provider
        if call.format == "text" and target.guarded:
            # Guards do not read it: it is a path like those that no suffix names.
            call.open_path, call.unknown_path, call.format = self.open_paths, not self.allows_unknown, self.routes.rest
        if call.open_path:
            call.format = self.routes.rest if target.rest is None else target.rest
            call.opaque = call.format == "opaque"
            if call.opaque:
                call.format = "passthrough"
        if target.guarded and call.unknown_path and target.rest is None:
            choice.reply = UNKNOWN_PATH
            return choice
        choice.reply = self._edit(ctx, call, target, call.body)
        if choice.reply is not None:
            return choice
        if call.model:
            ctx.requested_model = call.model.encode()        # what logs and prices go by
        format_route = route_of(ctx, call)
        if format_route.translation is not None:
            choice.tap = translated_tap(call, format_route)
        elif target.provider == BEDROCK and not call.opaque:
            choice.tap = bedrock_tap(call, format_route)
        elif not call.opaque:
            choice.tap = native_tap(call, format_route)
        if self.resources is not None and format_route.translation is None and not call.opaque:
            call.id_place = self.resources.place_of(ctx, call, target)
        self._point(ctx, call, target)
        if target.guarded and call.format in LOOSE and not self._stays_loose(ctx):
            choice.reply = UNKNOWN_PATH
            return choice
        call.begin(ctx)
        choice.plan = target.plan
        choice.pool = target.plan.pool if format_route.pool is None else format_route.pool
        choice.endpoint = target.endpoint
        choice.spare = (<ModelEntry>call.entry).size - 1
        return choice

    cdef bint passes_unread(self, RequestContext ctx, Py_ssize_t most) except -1:
        cdef MessageHead head = ctx.head
        cdef bytes path
        if self.resources is None or 0 <= head.content_length <= most or self.open_paths or self.allows_unknown:
            return False
        path = head.data[head.target_off:head.target_off + head.path_len]
        return self.routes.named(path, len(path)) is None and self.resources.passes_unread(ctx, path, most)

    cdef str format_of(self, RequestContext ctx):
        cdef MessageHead head = ctx.head
        cdef bytes path = head.data[ctx.target_off:ctx.target_off + ctx.target_len].partition(b"?")[0]
        cdef str named = self.routes.named(path, len(path))
        if named is not None and named not in LOOSE and named != "models":
            return named
        return list_format(head, path)

    cdef bint _stays_loose(self, RequestContext ctx) except -1:
        """Whether the path that the provider gets names no format that guards read: a base URL adds to the client's."""
        cdef MessageHead head = ctx.head
        cdef bytes path = head.data[head.target_off:head.target_off + head.path_len]
        cdef str named = self.routes.named(path, len(path))
        return named is None or named == "text" or named in LOOSE

    # -- what the request says -----------------------------------------------------------------------------------------
    cdef Reply _read(self, RequestContext ctx, LlmCall call, bytes path):
        """Finds the model and whether a stream is wanted."""
        cdef MessageHead head = ctx.head
        cdef ChatPeek peek
        cdef bint loose = call.format in LOOSE or self.sole_entry is not None
        call.object_end = -1
        if call.format == "realtime" or head.flags & HEAD_UPGRADE and not ctx.body:
            if call.format not in LOOSE:
                return NO_UPGRADE                # what is said there would be neither guarded nor counted
            # Frames that are compressed could not be read for usage.
            head.drop_field(b"sec-websocket-extensions", 24)
            return self._read_query(ctx, call, path)
        span = None if call.format in BY_BODY else model_span(path)
        if span is not None and (call.format != "messages" or path[span[1]:] in RAW_PREDICT):
            call.place = MODEL_IN_PATH
            call.model_start, call.model_stop = span
            call.requested = unquote(path[span[0]:span[1]].decode("latin-1")).encode()
            if b".." in call.requested.split(b"/") or call.requested.startswith(b"/"):
                return BAD_MODEL
            verb = path[span[1]:]
            call.streaming = b"stream" in verb or b"-stream" in verb
            call.arrays = call.format == "gemini" and call.streaming and not wants_events(head)
        if head.find_id(H_CONTENT_ENCODING, 0) >= 0:
            reply = uncoded(ctx, call, self.max_body)
            if reply is not None:
                return reply
        if call.deployment is not None and ctx.body and not name_deployment(ctx, call):
            return NOT_JSON
        reply = self.resources.open_body(ctx, call) if self.resources is not None and ctx.body else None
        if reply is not None:
            return reply
        # What says it is a form and is JSON is read as what it is: some providers do.
        if not ctx.body and call.format in LOOSE:
            pass                             # without one, or it goes on unread
        elif media_type_is(head, b"multipart/form-data", 19) and not ctx.body.lstrip().startswith(b"{"):
            found = set(FORM_MODEL.findall(ctx.body)) if call.place == MODEL_NOWHERE else ()
            if len(found) > 1:
                return TWO_MODELS
            if found:
                call.place = MODEL_IN_FORM
                call.requested = found.pop()
        elif ctx.body:
            peek = routing_peek(ctx, self.peek)
            if peek is not None:
                if call.format not in LOOSE and too_many(ctx, peek):
                    return TOO_MANY
                reply = self._peeked(call, loose, peek)
                if reply is not None:
                    return reply
            elif not loose or call.format not in LOOSE:
                return NOT_JSON
        elif not loose and call.place == MODEL_NOWHERE:
            return NOT_JSON
        return self._aside(ctx, call, path)

    cdef Reply _aside(self, RequestContext ctx, LlmCall call, bytes path):
        """Looks elsewhere for a model that neither path nor body names."""
        cdef Reply reply
        if call.place != MODEL_NOWHERE or self.sole_entry is not None:
            return None
        if self.resources is None or call.format not in LOOSE:
            return NO_MODEL
        reply = read_batch(ctx, call, path)
        return reply if reply is not None or call.place != MODEL_NOWHERE else self.resources.aside(ctx, call, path)

    def _peeked(self, LlmCall call, bint loose, ChatPeek peek not None):
        if not peek.is_object:
            return NOT_JSON if not loose or call.format not in LOOSE else None
        call.object_end = peek.object_end
        call.params = peek.params()
        call.has_stream_options = peek.has_stream_options
        call.has_include_usage = peek.has_include_usage
        call.max_tokens = peek.max_tokens()
        call.has_completion_limit = peek.has_completion_limit
        if call.place == MODEL_IN_PATH:
            return None
        if call.format in STREAM_IN_BODY:
            call.streaming = peek.stream
        if not peek.has_model:
            return None
        if not peek.model_is_string or not peek.model_bytes():
            return BAD_MODEL
        if peek.duplicate_model:
            # The provider might read the other one: what is authorized must be what is served.
            return TWO_MODELS
        call.place = MODEL_IN_BODY
        call.model_start, call.model_stop = peek.model_start, peek.model_stop
        call.requested = peek.model_bytes()
        if loose and call.requested.startswith(b"models/"):      # as Google has it, of a cache
            call.requested = call.requested[7:]
            call.place, call.object_end = MODEL_ASIDE, -1
        return None

    def _read_query(self, RequestContext ctx, LlmCall call, bytes path):
        for name, value in parse_qsl(ctx.head.query.lstrip("?"), keep_blank_values=True):
            if name == "model":
                if call.place == MODEL_IN_QUERY:
                    return TWO_MODELS
                if not value:
                    return BAD_MODEL
                call.place = MODEL_IN_QUERY
                call.requested = value.encode()
        return self._aside(ctx, call, path)

    cdef Reply _select(self, RequestContext ctx, LlmCall call):
        """Finds the entry that serves the model, or all models of a batch."""
        cdef BatchModels batch = batch_of(ctx)
        cdef Reply reply
        if batch is None or self.sole_entry is not None:
            return self._select_one(ctx, call)
        if call.asked_model is not None or call.asked_provider is not None:
            # They go elsewhere by the head, as the names of the provider's that they are.
            for name in batch.names if ctx.allowed_models is not None else ():
                if not allowed(ctx.allowed_models, name):
                    return not_allowed(ctx, name)
            return self._select_one(ctx, call)
        for name in batch.names:
            call.requested = name
            reply = self._select_one(ctx, call)
            if reply is not None:
                return reply
            batch.entries[name] = call.entry
        ctx.requested_model = call.requested = batch.names[0]
        call.entry = batch.common()
        return SEVERAL_PROVIDERS if call.entry is None else None

    cdef Reply _select_one(self, RequestContext ctx, LlmCall call):
        cdef VirtualEntry virtual
        cdef bint denied = False
        ctx.requested_model = call.requested
        if call.bound is not None and call.requested is None and call.provider_name is None:
            return bound_anywhere(ctx, call, self.models, self.virtual, self.resources)
        if ctx.allowed_models is not None and not allowed(ctx.allowed_models, call.requested or b""):
            return not_allowed(ctx, call.requested)
        if self.sole_entry is not None:
            call.entry = self.sole_entry
            return None
        if call.provider_name is not None:
            return self.resources.select(ctx, call)
        if call.bound is not None:
            return bound_model(ctx, call, self.models, self.virtual)
        virtual = self.virtual.get(call.requested)
        if virtual is not None:
            if virtual.conditions is not None:
                tell_request(ctx, call)
            call.known = True
            found = virtual.resolve(ctx)
            if found is None:
                return NO_TARGET
            if isinstance(found, tuple):
                return first_model(ctx, call, <tuple>found, False)
            call.entry = found
            if (<ModelEntry>found).guarded:
                tell_request(ctx, call)
                call.entry = permitted(<ModelEntry>found, ctx, &denied)
            return None if call.entry is not None else DENIED if denied else NOT_RESOLVED
        return first_model(ctx, call, self.models, True)

    # -- what the provider gets ----------------------------------------------------------------------------------------
    cdef Reply _edit(self, RequestContext ctx, LlmCall call, LlmTarget target, bytes body):
        """Model and fields of the body, in place; sets call.model and call.format_route."""
        cdef bytes pinned = None
        cdef BatchModels batch
        cdef bint inject
        cdef dict sets = None
        requested = None if call.requested is None else call.requested.decode("utf-8", "replace")
        model = target.pinned if target.pinned is not None else requested
        removes = ()
        if target.edits is not None and call.object_end >= 0 and not call.opaque:
            sets, removes, model = edited(ctx, call, target.edits, model)
            if model is None and requested is None and call.format not in LOOSE:
                return refusal(400, "missing_model", "model not specified")
        call.model = model or ""
        call.format_route = target.format_route_of(call.format, call.model)
        if call.format_route is None or call.unknown_path and invokes_elsewhere(ctx, call, target):
            return estimated(ctx, call, body, target.added) if call.format in COUNTING else unsupported(ctx, call, target)
        if call.place == MODEL_IN_SESSION and model != requested:
            ctx.body = renamed(body, call.model)
        batch = batch_of(ctx) if call.place == MODEL_ASIDE else None
        if batch is not None and batch.entries:
            if not takes_batches(target, call.model):
                return NO_BATCHES
            ctx.body = batch.renamed(ctx, call, target)
        if call.object_end < 0 or call.opaque:
            return None
        inject = (call.streaming and not call.has_include_usage and (<FormatRoute>call.format_route).upstream == "completions"
                  and (<FormatRoute>call.format_route).translation is None)
        defaults = {} if target.edits is None else target.edits.defaults
        if (target.short_limit and (call.max_tokens is not None or sets is not None) and call.format == "completions"
                and call.model.startswith("gpt-")):
            sets, removes = short_limits(call, sets, removes, defaults)
        if inject and call.has_stream_options and sets is None:
            sets = {}
        if call.place == MODEL_IN_PATH and call.format in LOOSE and (<FormatRoute>call.format_route).head is not None:
            # The provider gets another path than the one that named the model.
            sets = {} if sets is None else sets
            sets["model"] = json.dumps(call.model).encode()
        if sets is not None:
            if call.place == MODEL_IN_BODY or call.place == MODEL_NOWHERE:
                if model is not None and model != requested:
                    sets["model"] = json.dumps(model).encode()
                else:
                    sets.pop("model", None)
            if inject:
                removes = usage_wanted(ctx, call, body, sets, removes, defaults)
            if (sets or defaults or removes) and not edit_members(ctx, body, sets, defaults, removes):
                return TOO_MANY
            return None
        if inject:
            # The object is not empty (it has a model), so a comma is right.
            body = body[:call.object_end] + INJECTED + body[call.object_end:]
        if model is not None and model != requested:
            pinned = json.dumps(model).encode()
            if call.place == MODEL_IN_BODY:
                body = body[:call.model_start] + pinned + body[call.model_stop:]
            elif call.place == MODEL_NOWHERE:
                return None if edit_members(ctx, body, {"model": pinned}, {}, ()) else TOO_MANY
        ctx.body = body
        return None

    cdef int _point(self, RequestContext ctx, LlmCall call, LlmTarget target) except -1:
        cdef FormatRoute format_route = <FormatRoute>call.format_route
        cdef MessageHead head = ctx.head
        cdef bytes whole = head.data[head.target_off:head.target_off + head.target_len]
        cdef bytes path = whole[:head.path_len]
        cdef bytes query = whole[head.path_len:]
        cdef bytes new
        if call.place == MODEL_IN_PATH and (<FormatRoute>call.format_route).head is None:
            path = path[:call.model_start] + quoted(call.model) + path[call.model_stop:]
        elif call.place == MODEL_IN_QUERY:
            query = with_model(query, call.model)
        if query and target.own_key:
            query = without(query, b"key")
        if query and call.format in BY_PATH and not call.streaming or call.arrays:
            query = without(query, b"alt")           # answers that are not streams are read as JSON
            query = (query + b"&alt=sse" if query else b"?alt=sse") if call.arrays else query
        new = format_route.path_for(call, path, query, None)
        head.set_target(new, len(new))
        # Usage is read from the answer: a coding that the client alone asked for would hide it.
        head.drop_field(b"accept-encoding", 15)
        head.add_field(b"accept-encoding", 15, b"identity", 8)
        authority = target.plan.authority if format_route.pool is None else format_route.authority
        if authority is not None:
            head.set_authority(<bytes>authority, len(<bytes>authority))
        return 0


cdef Reply render(RequestContext ctx):
    cdef LlmCall call = <LlmCall>ctx.llm
    cdef FormatRoute format_route = <FormatRoute>call.format_route
    cdef LlmEdits edits = (<LlmTarget>call.target).edits
    if call.log_payload or call.wanted is not None and (<CaptureOptions>call.wanted).prompt:
        call.sent = ctx.body
    if format_route.translation is not None:
        if call.translated is not None and call.translated[0] is ctx.body:
            made = call.translated[1]
            call.translated = None
        else:
            made = format_route.translation.request(ctx.body, call, ctx.head)
        if isinstance(made, Reply):
            return made
        ctx.replace_body(made[0])
        ctx.head.drop_field(b"content-type", 12)
        ctx.head.add_field(b"content-type", 12, b"application/json", 16)
        if made[1]:
            new = format_route.path_for(call, b"", b"", made[1])
            ctx.head.set_target(new, len(new))
    elif format_route.history is not None and call.object_end >= 0 and not call.opaque:
        make_fit(ctx, call, format_route.history)
    if format_route.adapt is not None and (format_route.translation is not None or call.object_end >= 0):
        ctx.replace_body(call.adapted[1] if call.adapted is not None and call.adapted[0] is ctx.body
                         else format_route.adapt(ctx.body, call.streaming))
    if edits is not None and edits.final and call.object_end >= 0 and not call.opaque and not finally_edited(ctx, call, edits):
        return TOO_MANY
    if call.coded is not None and ctx.body is call.body:
        # Nobody has edited it: it goes on as it came.
        ctx.replace_body(call.coded)
        ctx.head.add_field(b"content-encoding", 16, <bytes>call.coding, len(call.coding))
    return None
