# What is known of one request, from its head to its access-log line. Steps and backends read and write it; the
# connection classes own it. `listener`, `route` and `backend` are engine plan objects (plan/plans.pxd), kept as
# objects here so that plans may know requests and not the other way round.

from headgate_engine.context.headers cimport MessageHead

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef class Reply:
    # An answer made by the gateway itself.
    cdef readonly int status
    cdef readonly bytes body
    cdef readonly tuple headers          # ((name, value), ...) as bytes, names in lower case
    cdef readonly str reason             # value of the `reason` label

cdef class Usage:
    # Tokens as the provider counted them; -1 where it said nothing.
    # input_tokens: cache reads and writes included, whatever the provider's convention; provider_input_tokens: as told.
    cdef public int64_t input_tokens, output_tokens, cached_tokens, reasoning_tokens
    cdef public int64_t cache_write_tokens, provider_input_tokens, provider_total_tokens
    # Parts of input and output by what they are.
    cdef public int64_t input_text_tokens, input_image_tokens, input_audio_tokens
    cdef public int64_t output_text_tokens, output_image_tokens, output_audio_tokens
    # Adds what another attempt used.
    cdef int add(self, Usage other) except -1

cdef enum BodyState:
    BODY_UNREAD = 0
    BODY_WHOLE = 1        # ctx.body is all of it
    BODY_PREFIX = 2       # ctx.body is what fits into body_limit, more follows

cdef class RequestContext:
    # -- messages ----------------------------------------------------------------------------------------------------
    cdef MessageHead head                # request head; edited in place by steps
    cdef MessageHead response            # response head once there is one
    cdef bytes body                      # whole request body, only where the plan asked for it
    # -- where it came from and where it goes -----------------------------------------------------------------------
    cdef object connection               # the downstream connection (peer and local address)
    cdef str peer_text                   # its peer's address, for the log; None: it was not asked for yet
    cdef object listener, route, backend
    cdef bytes endpoint                  # host:port of the upstream connection used
    # Target and authority as the client sent them: offsets into head.data, for the log; steps may change both.
    cdef uint32_t target_off, target_len, host_off, host_len
    cdef object exchange                 # link.exchange.Exchange: resume() goes on after a step that suspended
    cdef object waiting                  # asyncio.Task of a step that suspended; cancelled when the client goes
    cdef object rule                     # route.table.RouteRule that matched: prefix rewrites need its path
    cdef public bint secure              # the client's connection is TLS
    # -- who asks: set by authentication steps, read by expressions, authorization and credentials -------------------------
    cdef public dict jwt                        # verified claims; None: no token was verified
    cdef public bytes jwt_token                 # the token those claims came in
    cdef public dict api_key                    # metadata of the key that was found; None: none was
    cdef public bytes api_key_text              # that key, as presented
    cdef public tuple allowed_models            # patterns of models that it may use; None: all
    cdef public str basic_user                  # user name of basic authentication
    # -- what signs the request at its end, where that depends on the request (AwsKeys); None: the plan knows it -----------
    cdef public object signing_keys
    # -- what policies hand on to expressions: `metadata`, `extauthz`, `extproc` ... by name; None: nothing yet ------------
    cdef public dict metadata
    cdef public dict dynamic
    # -- body in front of a step that waits for it (WAIT_BODY) ---------------------------------------------------------------
    cdef public int64_t body_limit              # bytes a step waits for at most; 0: nobody waits
    cdef readonly int body_state                  # BodyState
    cdef public bytes response_body             # whole response body, only where the plan asked for it
    # -- outcome -----------------------------------------------------------------------------------------------------
    cdef Reply reply                     # set by a step that answers
    cdef str reason                      # `reason` label; None: the upstream answered
    cdef str error                       # detail for the log
    cdef int status                      # status sent to the client, 0 before
    cdef int attempts                    # upstream attempts
    # -- time (CLOCK_MONOTONIC ns) and size (bytes of bodies) -------------------------------------------------------
    cdef int64_t started_ns, upstream_started_ns, head_received_ns, finished_ns
    cdef uint64_t request_bytes, response_bytes
    # -- headers that steps want on the final response: list of (name, value) bytes, overwriting -----------------------
    cdef list response_headers
    # -- LLM ---------------------------------------------------------------------------------------------------------
    cdef str protocol                    # log value: http, llm, mcp; None means http
    cdef bytes requested_model, provider
    cdef Usage usage
    cdef public object llm               # llm.attempt.LlmCall, once the model is known
    cdef tuple token_buckets             # limit.bucket.TokenBucket that the usage is charged to
    # -- rare log fields: list of (key, value) --------------------------------------------------------------------------
    cdef list log_fields
    # -- who watches (/debug/trace); None: nobody ---------------------------------------------------------------------------
    cdef readonly object trace           # its recorder
    # -- suspended step runner -----------------------------------------------------------------------------------------
    cdef int next_step

    # Puts another request body in the place of the client's.
    cdef int replace_body(self, bytes body) except -1
    cdef int set_response_header(self, bytes name, bytes value) except -1

# A context belongs to one request for ever: who keeps it reads that request, never a later one.
cdef RequestContext new_context()
# Breaks the rings at the end of the request, so that the context goes with its last holder, without the collector.
cdef int release_context(RequestContext ctx) except -1
