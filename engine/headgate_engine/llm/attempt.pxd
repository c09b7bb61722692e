# What is known of one LLM request over all of its attempts, and how each attempt came out.

from headgate_engine.context.request cimport RequestContext, Usage

from libc.stdint cimport int64_t

cdef enum ModelPlace:
    MODEL_NOWHERE = 0
    MODEL_IN_BODY = 1
    MODEL_IN_PATH = 2
    MODEL_IN_QUERY = 3
    MODEL_IN_FORM = 4

cdef class LlmAttempt:
    # One try at one provider. `usage` is what the provider counted, None when it said nothing.
    cdef readonly str provider, client_format, upstream_format, model, outcome
    cdef readonly bint streaming
    cdef readonly int status             # of the provider's answer, 0 without one
    cdef readonly Usage usage
    cdef readonly int64_t started_ns, first_event_ns, ended_ns

cdef class LlmCall:
    # -- the request ---------------------------------------------------------------------------------------------------
    cdef readonly str format             # what the client speaks
    cdef public bint streaming
    cdef readonly bytes requested        # model as the client named it, None: it named none
    cdef int place                       # ModelPlace
    cdef Py_ssize_t model_start, model_stop    # raw model in the body (quotes included), path or target
    cdef bytes body                      # as the client sent it, decoded
    cdef bint decoded
    cdef Py_ssize_t object_end           # of the body, -1: it is no JSON object
    cdef bint has_stream_options
    cdef bint open_path                  # no suffix named the format: the model says what becomes of such paths
    cdef bint opaque                     # nothing of request and answer is read or edited
    cdef object entry                    # llm.target.ModelEntry
    cdef list tried                      # llm.target.LlmTarget, in order
    # -- the attempt under way -----------------------------------------------------------------------------------------
    cdef object target, lane             # LlmTarget, LlmLane
    cdef bytes response_model            # as the provider told it, None: not told
    cdef public str model                # as the provider is asked for it
    cdef public object guards           # headgate.backend.llm.guards: what guards the answer, None: nothing
    cdef public object asked             # what the translation remembers of the request, None: it was not translated
    cdef LlmAttempt attempt
    cdef public object verdicts          # headgate.backend.llm.guards.contract.Verdicts: of guards, over all attempts
    cdef readonly list attempts          # those that have ended

    cdef int begin(self, RequestContext ctx) except -1
    cdef int note(self, str outcome) except -1

# The one place where an attempt ends: with its provider, model, formats, usage and outcome.
cdef int end_attempt(RequestContext ctx) except -1
