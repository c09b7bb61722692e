# Token counts of all formats, brought to one convention.

cdef class UsageCounts:
    cdef public long long input          # with what was read from and written to a cache
    cdef public long long output         # with reasoning
    cdef public long long cached         # part of input that was read from a cache
    cdef public long long written        # part of input that was written to a cache
    cdef public long long reasoning      # part of output
    cdef public long long total
    cdef public tuple parts              # of input and output by what they are: PARTS, -1 for unknown; None: not told

# Each takes what a reply has as usage and returns None when that counts nothing.
cpdef UsageCounts completions_usage(object usage)
cpdef UsageCounts exclusive_usage(object usage)      # messages
cpdef UsageCounts responses_usage(object usage)
cpdef UsageCounts gemini_usage(object usage)
cpdef UsageCounts converse_usage(object usage)
cpdef UsageCounts rerank_usage(object meta)
# What Gemini's input and output are made of, as Usage.parts.
cpdef tuple gemini_parts(object usage)
