# Refusals of LLM routes.

from headgate_engine.context.request cimport Reply

cdef Reply refusal(int status, str code, str message)

# Of routers.
cdef Reply BAD_ENCODING
cdef Reply BAD_MODEL
cdef Reply NOT_JSON
cdef Reply NOT_RESOLVED
cdef Reply NO_BATCHES
cdef Reply NO_LIST
cdef Reply NO_MODEL
cdef Reply NO_TARGET
cdef Reply NO_UPGRADE
cdef Reply SEVERAL_PROVIDERS
cdef Reply TOO_LONG
cdef Reply TOO_MANY
cdef Reply TWO_MODELS
cdef Reply UNKNOWN_ENCODING
cdef Reply UNKNOWN_PATH
