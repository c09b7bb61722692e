# Which format a client speaks, told by the end of its path, and where in a target the model stands.

from headgate_engine.context.headers cimport MessageHead

cdef class RouteMap:
    cdef readonly tuple suffixes         # (bytes, str), longest first
    cdef tuple plain                     # the same in small letters
    cdef dict unversioned                # whole paths (bytes) that are the suffixes without their /v1
    cdef readonly str rest               # format of everything else
    cdef str find(self, const char* path, Py_ssize_t n)
    # The format of the longest suffix; None where none fits.
    cdef str named(self, const char* path, Py_ssize_t n)

# The query without the members of that name.
cdef bytes without(bytes query, bytes name)
# Whether a client of Gemini wants a stream of events instead of an array.
cdef bint wants_events(MessageHead head) except -1
# The raw model of a path such as /v1beta/models/{m}:verb or /model/{m}/converse; None without one.
cdef tuple model_span(bytes path)
# A model's name as a segment of a path.
cdef bytes quoted(str model)
# The query with the model in place of the client's.
cdef bytes with_model(bytes query, str model)
# Azure's way to name a model: (model, target that says the same as other clients do) of a target, None for any other. The
# model is None where the query or the body has it.
cdef tuple azure_target(bytes path, bytes query)
