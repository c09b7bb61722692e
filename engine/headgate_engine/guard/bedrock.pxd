# Readers of Bedrock's Converse.

from headgate_engine.guard.transcript cimport BodyTexts

cdef int converse_request(BodyTexts t) except -1 nogil
cdef int converse_reply(BodyTexts t) except -1 nogil
