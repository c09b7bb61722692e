# The members of each format that contain texts: one function for requests and one for replies.

from headgate_engine.guard.transcript cimport BodyTexts

# Returns the texts of a body. Raises PeekError, ValueError, KeyError.
cdef BodyTexts texts_of(bytes body, str format, bint reply)
