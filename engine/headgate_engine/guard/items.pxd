# Responses and generateContent, whose requests are lists of items and parts.

from headgate_engine.guard.transcript cimport Transcript

cdef int responses_request(Transcript t) except -1 nogil
cdef int responses_reply(Transcript t) except -1 nogil
cdef int gemini_request(Transcript t) except -1 nogil
cdef int gemini_reply(Transcript t) except -1 nogil
