# Readers of responses and generateContent, whose requests are lists of items and parts.

from headgate_engine.guard.transcript cimport BodyTexts

cdef int responses_request(BodyTexts t) except -1 nogil
cdef int responses_reply(BodyTexts t) except -1 nogil
# The variables of a prompt that the provider stores.
cdef int variables(BodyTexts t, int start) except -1 nogil
cdef int gemini_request(BodyTexts t) except -1 nogil
cdef int gemini_reply(BodyTexts t) except -1 nogil
