# Models that clients may name: by pattern, by fields of the head, by rules; and the list of them.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.llm.target cimport LlmTarget, ModelEntry
from headgate_engine.route.conditions cimport Condition, ConditionTable
from headgate_engine.steps.authorization cimport AuthorizationStep

from libc.stdint cimport int64_t

cdef class HeaderMatches:
    # Entries of which one must hold, each a list of conditions that all must.
    cdef readonly tuple entries          # tuples of ValuePredicate
    cdef ConditionTable plain, secure
    cdef Condition* conditions           # of all entries, one after the other
    cdef bint fits(self, RequestContext ctx) except -1

cdef class PublicModel:
    # What clients may ask for: a pattern, and where it leads.
    cdef readonly str pattern
    cdef object names                    # llm.pattern.ModelPattern
    cdef readonly ModelEntry entry
    cdef readonly HeaderMatches matches  # None: whatever the head says
    cdef readonly AuthorizationStep rules    # None: everybody
    cdef readonly bint reads_body        # its rules ask what the body says
    cdef readonly object source          # headgate.backend.llm.model_ids of a pattern; None: nobody can be asked

# The entry without the targets that the request does not fit or may not use; None when that are all, and then `denied[0]`
# says whether rules stood in the way.
cdef ModelEntry permitted(ModelEntry entry, RequestContext ctx, bint* denied)
# Whether the key's patterns (llm.pattern.ModelPattern) let it use the model.
cdef bint allowed(patterns, bytes model) except -1
# Models that a request may see: name -> ModelEntry. ctx None: whoever asks.
cdef dict models_for(tuple models, dict virtual, RequestContext ctx)
# The document of such models in the shape of a format: completions, messages, gemini.
cdef bytes model_listing(str shape, dict found, int64_t created)
# What a request for the list, or for one of the models, is answered with; None for a model that is not in it.
# ready: the list as everybody sees it in OpenAI's shape, None where rules decide.
# The sources of patterns that have to be asked first; None: none.
cdef list sources_due(tuple models)
cdef bytes shown_models(tuple models, dict virtual, bytes ready, int64_t created, RequestContext ctx, bytes path)
# The model that the path of a list names behind it, "" for the list.
cdef str listed_model(bytes path)
# The shape in which who sends a head reads lists and errors, where the path says no more.
cdef str list_format(MessageHead head, bytes path)
cdef bint is_model_list(bytes path) except -1
# Whether rules read `llmRequest`.
cdef bint reads_request(AuthorizationStep rules) except -1
