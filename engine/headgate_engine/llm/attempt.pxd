# What is known of one LLM request over all of its attempts, and how each attempt came out.

from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.llm.prices cimport Cost, PriceList

from libc.stdint cimport int64_t

cdef enum ModelPlace:
    MODEL_NOWHERE = 0
    MODEL_IN_BODY = 1
    MODEL_IN_PATH = 2
    MODEL_IN_QUERY = 3
    MODEL_IN_FORM = 4
    MODEL_ASIDE = 5              # in a field of the head, or in an id: the body does not say it
    MODEL_IN_SESSION = 6         # in the session of a realtime request

cdef class LlmAttempt:
    # One try at one provider. `usage` is what the provider counted, or what was estimated before it was asked; None when
    # neither is known.
    cdef readonly str provider, client_format, upstream_format, model, outcome
    cdef readonly str response_model     # None: not told
    cdef readonly str usage_source       # SOURCES
    cdef readonly str price_version      # of the catalogs; None: none is configured, or there was nothing to price
    cdef readonly Cost cost              # None: no price
    cdef readonly bint streaming
    cdef readonly int status             # of the provider's answer, 0 without one
    cdef readonly TokenUsage usage
    cdef readonly int64_t started_ns, first_event_ns, ended_ns
    cdef readonly tuple dropped          # labels of parameters that the provider's format cannot say; None: none

cdef class LlmCall:
    # -- the request ---------------------------------------------------------------------------------------------------
    cdef readonly str format             # what the client speaks
    cdef public bint streaming
    cdef readonly bytes requested        # model as the client named it, None: it named none
    cdef int place                       # ModelPlace
    cdef Py_ssize_t model_start, model_stop    # raw model in the body (quotes included), path or target
    cdef bytes body                      # as the client sent it, without its content coding
    cdef bytes coded                     # the same as it came, in a content coding; None: it had none
    cdef bytes coding                    # its content-encoding
    cdef Py_ssize_t object_end           # of the body, -1: it is no JSON object
    cdef bint has_stream_options
    cdef readonly bint has_include_usage  # the client says itself whether it wants the usage of a stream
    cdef bytes max_tokens                # its raw value in the body, None: not there
    cdef bint has_completion_limit       # `max_completion_tokens` is there
    cdef bint open_path                  # no suffix named the format: the model says what becomes of such paths
    cdef bint unknown_path               # no suffix named the format, and no configured route allows that
    cdef bytes deployment                # model in a path of Azure's, and the target that says the same; None: it is no such
    cdef bytes target_line
    cdef readonly bint arrays            # a stream of generateContent is wanted as a JSON array, not as events
    cdef bytes asked_model, asked_provider     # fields of the head that name them; None: there are none
    cdef bytes bound                     # the account that ids in the request belong to; None: it has none
    cdef bint guarded_id                 # one of them was made where guards looked on
    cdef bytes provider_name             # the provider that the request goes to whatever its model; None: models decide
    cdef bytes id_place                  # what ids in the answer are sealed with; None: they stay
    cdef bint opaque                     # nothing of request and answer is read or edited
    cdef object entry                    # llm.target.ModelEntry
    cdef list tried                      # llm.target.LlmTarget, in order
    # -- the attempt under way -----------------------------------------------------------------------------------------
    cdef object target, format_route     # LlmTarget, FormatRoute
    cdef list usage_parts                # TokenUsage of each of several calls that make one answer; None: there is one
    cdef bytes response_model            # as the provider told it, None: not told
    cdef bytes service_tier
    cdef public str model                # as the provider is asked for it
    cdef public object guards           # headgate.backend.llm.guards: what guards the answer, None: nothing
    cdef public object translation_state             # what the translation remembers of the request, None: it was not translated
    # (body, what its translation came to), made beside the loop; None: render() translates
    cdef public tuple translated
    # (body, its JSON), read beside the loop for edits of what goes to the provider; None: the engine reads it itself
    cdef public tuple final_document
    # (body, what the provider's dialect made of it), made beside the loop; None: render() does it
    cdef public tuple adapted
    cdef bint kept_back                  # what the answer begins with waits for words: another provider can be asked
    # Of the attempt under way: names of parameters that the provider's format cannot say, for metrics, and the same as
    # the value of a response header. None: everything is said, or nobody asks.
    cdef public tuple dropped
    cdef public bytes unsupported
    cdef LlmAttempt attempt
    cdef public object verdicts          # headgate.backend.llm.guards.contract.Verdicts: of guards, over all attempts
    cdef object realtime_tap                    # llm.realtime.FrameTap of a tunnel, None: nothing is read
    cdef bytes sent                      # the request as its guards left it, in the client's format; None: nobody asks
    # -- for expressions (llm.content_capture); all of it None where no expression asks ------------------------------------------
    cdef object wanted                   # llm.content_capture.Wanted
    cdef bytes prompt_body               # what `prompt` was read from
    cdef list prompt
    cdef object answer                   # llm.content_capture.Answer of the attempt under way, or of the last one
    cdef int64_t counted                 # tokens that a counting request was told, -1: none
    cdef readonly list attempts          # those that have ended
    # -- what it comes to ----------------------------------------------------------------------------------------------
    cdef PriceList prices                # None: no catalog is configured
    cdef bint known                      # the model's name is one of the configuration's own, not of a pattern's
    cdef dict params                     # settings of the request for the log; None: none
    cdef readonly int64_t estimated      # prompt tokens, -1: nobody asked
    cdef public int64_t prompt_estimate  # the same, counted beside the loop before somebody asks; -1: it was not
    cdef public int64_t taken            # of these, what token limits were charged in advance
    cdef TokenUsage total_usage                     # by the providers' own counts, over all attempts; None: nothing was counted
    cdef Cost cost                       # the same; None: nothing had a price
    cdef bint charged                    # an attempt came to a 2xx answer
    # -- for the request log -------------------------------------------------------------------------------------------
    cdef bint log_payload                      # prompts and answers are to be kept
    cdef bytes response_payload                      # the answer as the client got it; None: nothing of it is known

    cdef int begin(self, RequestContext ctx) except -1
    cdef int note(self, str outcome) except -1
    cdef int answered(self, int status) except -1

# The one place where an attempt ends: with its provider, model, formats, usage, cost and outcome.
cdef int end_attempt(RequestContext ctx) except -1
# The request is over: ctx.usage becomes that of all attempts, and the log line learns what they came to.
cdef int end_call(RequestContext ctx) except -1
# Time of one token of a stream behind the first one, in ns; -1: nothing is known of that.
cdef int64_t per_token_ns(LlmAttempt attempt) noexcept
# What the attempt under way costs by what is counted until now, or what all of them did; None without a price.
cdef Cost cost_until_now(RequestContext ctx)
