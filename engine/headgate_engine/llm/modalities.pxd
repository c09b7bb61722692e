# What input and output are made of: text, images, sound. Prices and metrics ask for it.

from headgate_engine.context.request cimport TokenUsage
from headgate_engine.peek.json cimport UsagePeek

# parts: PARTS of llm.translate.counts, of input and then of output; -1 for what nobody told.
cdef int take_parts(TokenUsage usage, tuple parts) except -1
# Those of the answer or event that was peeked at, whose usage has Gemini's names.
cdef int take_gemini_parts(TokenUsage usage, UsagePeek peek) except -1
