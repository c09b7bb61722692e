# What each format says, and where: the members that hold texts, one function for requests and one for replies.

from headgate_engine.guard.transcript cimport BodyTexts

# The texts of a body; PeekError, ValueError, KeyError.
cdef BodyTexts texts_of(bytes body, str format, bint reply)
