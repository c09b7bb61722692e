# The client's half of stream translation for generateContent.

from headgate_engine.llm.translate.evidence cimport Citation, RanTool
from headgate_engine.llm.translate.writers cimport Writer

cdef class GeminiWriter(Writer):
    cdef bytes rest                      # of an event, behind its part
    cdef object wrap                     # wrap(signature, redacted=False) -> Base64
    cdef str answering                   # model that is told
    cdef list chunks                     # of groundingMetadata: what citations and searches point to
    cdef list supports                   # of groundingMetadata: [first and last character, text, index of the chunk]
    cdef list queries                    # that the vendor searched for
    cdef list tokens                     # log probabilities, for the last event
    cdef list pieces                     # of the text, for the places of citations
    cdef dict places                     # URL -> index in `chunks`
    cdef int _part(self, bytes part) except -1
    cdef int _signed(self, str signature) except -1
    cdef int _cited(self, Citation citation) except -1
    cdef int _found(self, RanTool tool) except -1
    cdef int _chunk_of(self, str url, str title) except -1
    cdef dict _grounding(self)
