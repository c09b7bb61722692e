"""Token counts of all formats, brought to one convention: what caches hold is part of the input."""

# Larger than any real count, small enough that sums stay exact in JSON numbers. No enum: that would be a C int.
cdef long long MOST = 1125899906842624


cdef class Usage:
    """Tokens of one exchange."""

    def __init__(self, long long input=0, long long output=0, long long cached=0, long long written=0,
                 long long reasoning=0, long long total=-1):
        self.input = input
        self.output = output
        self.cached = cached
        self.written = written
        self.reasoning = reasoning
        self.total = input + output if total < 0 else total

    def _all(self):
        return self.input, self.output, self.cached, self.written, self.reasoning, self.total

    def __eq__(self, other):
        return isinstance(other, Usage) and self._all() == (<Usage>other)._all()

    def __hash__(self):
        return hash(self._all())

    def __repr__(self):
        return (f"Usage(input={self.input}, output={self.output}, cached={self.cached}, written={self.written}, "
                f"reasoning={self.reasoning}, total={self.total})")


cdef long long count(object holder, str name):
    """The count of that name; -1 when it is not there or no count."""
    if not isinstance(holder, dict):
        return -1
    value = (<dict>holder).get(name)
    # Some vendors write 12.0. A bool is an int to Python.
    if type(value) is float and 0 <= value <= MOST and value == int(value):
        return <long long>value
    if type(value) is not int or not 0 <= value <= MOST:
        return -1
    return value


cdef inline long long known(long long value) noexcept:
    return value if value > 0 else 0


cdef inline long long either(long long value, long long other) noexcept:
    return value if value >= 0 else other


cdef object member(object holder, str name):
    return (<dict>holder).get(name) if isinstance(holder, dict) else None


cpdef Usage completions_usage(object usage):
    cdef long long input = either(count(usage, "prompt_tokens"), count(usage, "input_tokens"))
    cdef long long output = either(count(usage, "completion_tokens"), count(usage, "output_tokens"))
    cdef long long total = count(usage, "total_tokens")
    if input < 0 and output < 0 and total < 0:
        return None
    if output <= 0 and total > known(input):
        # Some vendors leave the output, or the reasoning in it, out of everything but the total.
        output = total - known(input)
    details = member(usage, "prompt_tokens_details")
    cached = either(count(details, "cached_tokens"), count(usage, "cache_read_input_tokens"))
    written = either(count(details, "cache_write_tokens"), count(usage, "cache_creation_input_tokens"))
    reasoning = count(member(usage, "completion_tokens_details"), "reasoning_tokens")
    return Usage(known(input), known(output), known(cached), known(written), known(reasoning), total)


cpdef Usage exclusive_usage(object usage):
    cdef long long input = count(usage, "input_tokens")
    cdef long long output = count(usage, "output_tokens")
    cdef long long cached = known(count(usage, "cache_read_input_tokens"))
    cdef long long written = known(count(usage, "cache_creation_input_tokens"))
    if input < 0 and output < 0 and not cached and not written:
        return None
    return Usage(known(input) + cached + written, known(output), cached, written)


cpdef Usage responses_usage(object usage):
    cdef long long input = count(usage, "input_tokens")
    cdef long long output = count(usage, "output_tokens")
    cdef long long total = count(usage, "total_tokens")
    if input < 0 and output < 0 and total < 0:
        return None
    details = member(usage, "input_tokens_details")
    if details is None:
        details = member(usage, "input_token_details")    # realtime
    return Usage(known(input), known(output), known(count(details, "cached_tokens")),
                 known(count(details, "cache_write_tokens")),
                 known(count(member(usage, "output_tokens_details"), "reasoning_tokens")), total)


cpdef Usage gemini_usage(object usage):
    cdef long long input = count(usage, "promptTokenCount")
    cdef long long output = count(usage, "candidatesTokenCount")
    cdef long long thoughts = known(count(usage, "thoughtsTokenCount"))
    cdef long long total = count(usage, "totalTokenCount")
    if input < 0 and output < 0 and total < 0:
        return None
    # What tools put into the prompt is counted apart, and is part of the total.
    input = known(input) + known(count(usage, "toolUsePromptTokenCount"))
    return Usage(input, known(output) + thoughts, known(count(usage, "cachedContentTokenCount")), 0, thoughts, total)


cpdef Usage converse_usage(object usage):
    cdef long long input = count(usage, "inputTokens")
    cdef long long output = count(usage, "outputTokens")
    cdef long long cached = known(count(usage, "cacheReadInputTokens"))
    cdef long long written = known(count(usage, "cacheWriteInputTokens"))
    if input < 0 and output < 0:
        return None
    return Usage(known(input) + cached + written, known(output), cached, written)


cpdef Usage rerank_usage(object meta):
    cdef long long input = count(member(meta, "tokens"), "input_tokens")
    cdef long long output = known(count(member(meta, "tokens"), "output_tokens"))
    if input < 0:
        input = count(member(meta, "billed_units"), "total_tokens")
    if input < 0:
        input = count(member(meta, "billed_units"), "input_tokens")
    return None if input < 0 else Usage(input, output)
