# The provider's half of a stream that stays in its format, where several of them become one.

from headgate_engine.llm.translate.readers cimport CompletionsReader

cdef class SameReader(CompletionsReader):
    # Passes events of chat completions and of legacy text completions on with all of their members.
    cdef public bint include_usage       # the client wants the event with the usage
