# State of one request, from its head to its access-log line. Steps and backends read and write it; the connection
# classes own it. `listener`, `route` and `backend` are plans (plan/plans.pxd), typed as object so that this module does
# not depend on the module of plans.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.trace_context cimport TraceContext

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef class Reply:
    # A response of the gateway itself.
    cdef readonly int status
    cdef readonly bytes body
    cdef readonly tuple headers          # ((name, value), ...) as bytes, names in lower case
    cdef readonly str reason             # value of the `reason` label

cdef class TokenUsage:
    # Token counts of the provider, -1 if it did not report one. input_tokens: always with cache reads and writes,
    # whatever the provider's convention. provider_input_tokens: as reported.
    cdef public int64_t input_tokens, output_tokens, cached_tokens, reasoning_tokens
    cdef public int64_t cache_write_tokens, provider_input_tokens, provider_total_tokens
    # Parts of input and output by modality.
    cdef public int64_t input_text_tokens, input_image_tokens, input_audio_tokens
    cdef public int64_t output_text_tokens, output_image_tokens, output_audio_tokens
    # Adds the usage of another attempt.
    cdef int add(self, TokenUsage other) except -1

cdef enum BodyState:
    BODY_UNREAD = 0
    BODY_WHOLE = 1        # ctx.body is all of it
    BODY_PREFIX = 2       # ctx.body is the first body_limit bytes, more follow

# What is done where a field is there already, or is not (envoy.config.core.v3.HeaderValueOption.HeaderAppendAction).
cdef enum HeaderEdit:
    EDIT_APPEND = 0
    EDIT_ADD_IF_ABSENT = 1
    EDIT_REPLACE_OR_ADD = 2
    EDIT_REPLACE_IF_PRESENT = 3

cdef class RequestContext:
    # -- messages ----------------------------------------------------------------------------------------------------
    cdef MessageHead head                # request head; edited in place by steps
    cdef MessageHead response            # response head once there is one
    cdef bytes body                      # whole request body, only if a step needs it
    # -- client, plans and upstream ---------------------------------------------------------------------------------
    cdef object connection               # the downstream connection (peer and local address)
    cdef str peer_text                   # the client's address, for the log; None: not read yet
    cdef object listener, route, backend
    cdef bytes endpoint                  # host:port of the upstream connection used
    # Target and authority as the client sent them: offsets into head.data, for the log; steps may change both.
    cdef uint32_t target_off, target_len, host_off, host_len
    cdef object exchange                 # link.exchange.Exchange: resume() continues after a step that suspended
    cdef object waiting                  # asyncio.Task of a step that suspended; cancelled if the client disconnects
    cdef object rule                     # route.table.RouteRule that matched: prefix rewrites need its path
    cdef object delegation               # plan.plans.Delegation; None: the listener's own route has the request
    # How often the request was handed on within this process (link.inward) before it came here.
    cdef readonly int hops
    cdef public bint secure              # the client's connection is TLS
    # -- client identity: set by authentication steps, read by expressions, authorization and credentials --------------
    cdef public dict jwt                        # verified claims; None: no token was verified
    cdef public bytes jwt_token                 # the token with these claims
    cdef public dict api_key                    # metadata of the presented key; None: no key was verified
    cdef public bytes api_key_text              # the presented key
    cdef public tuple allowed_models            # patterns of models that this key may use; None: all
    cdef public str basic_user                  # user name of basic authentication
    # Cookies of the gateway's own as `name=value`, taken out of the head before any policy; None: there were none.
    cdef public list own_cookies
    # -- signing keys, if they depend on the request (AwsKeys); None: those of the plan --------------------------------
    cdef public object signing_keys
    # Of a request that another worker relays: what expressions see there of the client and its way, by dotted name.
    cdef public dict origin
    # -- results of policies for expressions: `metadata`, `extauthz`, `extproc` ... by name; None: no result yet -------
    cdef public dict metadata
    cdef public dict dynamic
    # -- body for a step that waits for it (WAIT_BODY) -----------------------------------------------------------------
    cdef public int64_t body_limit              # most bytes that a step waits for; 0: no step waits
    cdef readonly int body_state                  # BodyState
    cdef public bytes response_body             # whole response body, only if a step needs it
    cdef public bint response_cut               # response_body is its beginning: it is longer than what is held
    # -- outcome -----------------------------------------------------------------------------------------------------
    cdef Reply reply                     # set by a step that returns RESPOND
    cdef str reason                      # `reason` label; None: the upstream answered
    cdef str error                       # detail for the log
    cdef int status                      # status sent to the client, 0 before
    cdef int attempts                    # upstream attempts
    # -- time (CLOCK_MONOTONIC ns) and size (bytes of bodies) -------------------------------------------------------
    cdef int64_t started_ns, upstream_started_ns, head_received_ns, finished_ns
    cdef uint64_t request_bytes, response_bytes
    # -- headers that steps set on the final response: list of (name, value) bytes, replacing others -------------------
    cdef list response_headers
    # What services want done to fields of the response, (HeaderEdit, name, value); None: nothing.
    cdef list response_edits
    # -- LLM ---------------------------------------------------------------------------------------------------------
    cdef str protocol                    # log value: http, llm, mcp; None means http
    cdef bytes requested_model, provider
    cdef TokenUsage usage
    cdef public object llm               # llm.attempt.LlmCall, as soon as the model is known
    cdef tuple token_buckets             # limit.bucket.TokenBucket to charge with the usage
    cdef public tuple remote_limits      # limits on tokens that a service counts (steps.remote_limit); None: there are none
    cdef bint remote_limits_asked
    cdef public object key_use           # limit.account.KeyUse of a virtual key; None: the request has none
    # -- rare log fields: list of (key, value) --------------------------------------------------------------------------
    cdef list log_fields
    # -- what tells the request from others, in logs, in traces and to clients and backends ----------------------------
    cdef bytes request_id                # value of x-request-id; None: ids are off
    cdef TraceContext trace_context      # its place in a trace; None: no tracing
    # -- trace recorder (/debug/trace); None: not traced ---------------------------------------------------------------
    cdef readonly object trace           # the recorder
    # -- suspended step runner -----------------------------------------------------------------------------------------
    cdef int next_step

    # Replaces the client's request body.
    cdef int replace_body(self, bytes body) except -1
    cdef int set_response_header(self, bytes name, bytes value) except -1

# A context belongs to a single request: an object that still holds it never sees a later request.
cdef RequestContext new_context()
# Breaks the reference cycles at the end of the request, so that the context is freed without the garbage collector.
cdef int release_context(RequestContext ctx) except -1
