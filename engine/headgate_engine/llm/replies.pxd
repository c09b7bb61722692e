# Refusals of LLM routes.

from headgate_engine.context.request cimport Reply

cdef Reply refusal(int status, str code, str message)
