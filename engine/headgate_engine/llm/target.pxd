# Model entries as the router sees them: where each leads, in which format, with which edits.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program
from headgate_engine.link.endpoints cimport EndpointState
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.foreign cimport ForeignHistory
from headgate_engine.plan.plans cimport BackendPlan
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.steps.authorization cimport AuthorizationStep

from libc.stdint cimport int64_t, uint64_t

cdef class FormatRoute:
    # One client format at one provider.
    cdef readonly str client, upstream
    cdef readonly object translation     # None: the provider speaks the client's format
    cdef readonly object adapt           # adapt(body, streaming) -> body: a provider's dialect of a format
    cdef readonly ForeignHistory history      # of a provider that speaks the client's format; None: bodies go as they are
    cdef readonly object spell           # spell(model) -> model as the provider's paths have it; None: as it is
    cdef readonly object stream_error    # stream_error(message) -> bytes, in the client's format
    cdef public bint exclusive           # its input counts no cache, whatever the format does elsewhere
    cdef bytes head                      # of the path; None: the client's path behind `prefix`
    cdef bytes tail, stream_tail         # behind the model; head alone when tail is None
    cdef bytes prefix, strip
    cdef bytes other                     # in the place of `prefix` for paths that do not begin with `strip`; None: the same
    cdef readonly bint keep_query, keep_path
    cdef public FormatRoute several      # of requests for several choices, which the provider refuses or ignores; None: it does not
    cdef public object pool              # link.pool.Pool of another host than the provider's; None: the plan's
    cdef public bytes authority          # of that host
    cdef bytes query                     # what the provider's path always has behind its `?`
    cdef bytes path_for(self, LlmCall call, bytes path, bytes query, str suffix)
    cdef bytes segment(self, LlmCall call)

cdef class LlmEdits:
    cdef readonly dict overrides, defaults     # name -> raw JSON
    cdef readonly tuple transformations, final  # (name, expr.program.Program)
    cdef readonly tuple aliases                # (llm.pattern.ModelPattern, model), most specific first

cdef class LlmTarget:
    # One provider of one model entry.
    cdef readonly BackendPlan plan       # pool, steps, time-outs
    cdef public bytes account            # the provider's account, for ids of what is kept there
    cdef readonly bytes provider         # name in logs and metrics
    cdef readonly dict families          # family of the model -> client format -> FormatRoute
    cdef readonly object family          # family(model) -> str; None: the only one is ""
    cdef readonly str pinned             # replaces the client's model
    cdef readonly LlmEdits edits         # None: nothing is edited
    cdef readonly EndpointState endpoint      # its health; None: nobody looks at that
    cdef public bint own_key             # the gateway's credential goes along: a `key` in the client's query does not
    cdef readonly bint short_limit       # `gpt-*` models want max_completion_tokens
    cdef public str rest                 # format of paths that no suffix names: `detect`, `opaque`; None: the usual one
    cdef public int64_t max_answer       # bytes of an answer that is kept whole
    cdef public int64_t added            # tokens of the prompts that are added to requests, by estimate
    cdef public bint guarded             # prompts or answers are checked or added to: unknown formats are refused
    cdef public AuthorizationStep rules  # who may use it as one of several; None: everybody
    cdef public object matches           # llm.public.HeaderMatches: what it wants of the head then; None: nothing
    cdef uint64_t mixed                  # hash of its name, for affinity
    cdef public int slot                 # of those with one number only the first that may be used is; 0: it has none
    cdef FormatRoute format_route_of(self, str format, str model)

cdef class LlmGroup:
    # Providers of one priority.
    cdef readonly tuple targets          # LlmTarget

cdef class ModelEntry:
    cdef readonly str name
    cdef readonly tuple groups           # LlmGroup, first choice first
    cdef readonly int size               # targets in all of them
    cdef readonly bint guarded           # a target has rules or matches
    cdef readonly Program affinity       # equal values stay at one target of a group; None: none
    cdef readonly bint affinity_reads    # it asks what the body says
    cdef LlmTarget pick(self, list tried, RequestContext ctx)

cdef class VirtualEntry:
    # A name that stands for others: by weight, by condition, or one entry with several groups.
    cdef readonly str name
    cdef readonly tuple entries          # ModelEntry, or a tuple of llm.public.PublicModel: the first that holds
    cdef readonly tuple conditions       # Program or None, one per entry; None: by weight
    cdef readonly tuple sums             # running sums of weights
    cdef object resolve(self, RequestContext ctx)
