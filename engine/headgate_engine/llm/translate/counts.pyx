"""Token counts of all formats, brought to one convention: what caches hold is part of the input."""

# Larger than any real count, small enough that sums stay exact in JSON numbers. No enum: that would be a C int.
cdef long long MOST = 1125899906842624


# What tokens are of, for input and then for output.
PARTS = ("text_tokens", "image_tokens", "audio_tokens")
MODALITIES = {"TEXT": 0, "IMAGE": 1, "AUDIO": 2}


cdef class UsageCounts:
    """Tokens of one exchange."""

    def __init__(self, long long input=0, long long output=0, long long cached=0, long long written=0,
                 long long reasoning=0, long long total=-1, tuple parts=None):
        self.input = input
        self.output = output
        self.cached = cached
        self.written = written
        self.reasoning = reasoning
        self.total = input + output if total < 0 else total
        self.parts = parts

    def _all(self):
        return self.input, self.output, self.cached, self.written, self.reasoning, self.total, self.parts

    def __eq__(self, other):
        return isinstance(other, UsageCounts) and self._all() == (<UsageCounts>other)._all()

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


cdef tuple parts_of(object given, object made):
    """PARTS of the details of input and of output; None when they tell none."""
    cdef list found = [count(details, name) for details in (given, made) for name in PARTS]
    return tuple(found) if max(found) >= 0 else None


cpdef tuple gemini_parts(object usage):
    cdef list found = [-1, -1, -1, -1, -1, -1]
    cdef int first = 0
    cdef long long tokens
    for name in ("promptTokensDetails", "candidatesTokensDetails"):
        details = member(usage, name)
        if isinstance(details, list):
            for one in <list>details:
                at = MODALITIES.get(member(one, "modality")) if isinstance(member(one, "modality"), str) else None
                tokens = count(one, "tokenCount")
                if at is not None and tokens >= 0:
                    found[first + at] = max(found[first + at], 0) + tokens
        first = 3
    return tuple(found) if max(found) >= 0 else None


cpdef UsageCounts completions_usage(object usage):
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
    made = member(usage, "completion_tokens_details")
    return UsageCounts(known(input), known(output), known(cached), known(written), known(count(made, "reasoning_tokens")),
                 total, parts_of(details, made))


cpdef UsageCounts exclusive_usage(object usage):
    cdef long long input = count(usage, "input_tokens")
    cdef long long output = count(usage, "output_tokens")
    cdef long long cached = known(count(usage, "cache_read_input_tokens"))
    cdef long long written = known(count(usage, "cache_creation_input_tokens"))
    if input < 0 and output < 0 and not cached and not written:
        return None
    return UsageCounts(known(input) + cached + written, known(output), cached, written)


cpdef UsageCounts responses_usage(object usage):
    cdef long long input = count(usage, "input_tokens")
    cdef long long output = count(usage, "output_tokens")
    cdef long long total = count(usage, "total_tokens")
    if input < 0 and output < 0 and total < 0:
        return None
    details = member(usage, "input_tokens_details")
    if details is None:
        details = member(usage, "input_token_details")    # realtime
    made = member(usage, "output_tokens_details")
    return UsageCounts(known(input), known(output), known(count(details, "cached_tokens")),
                 known(count(details, "cache_write_tokens")), known(count(made, "reasoning_tokens")), total,
                 parts_of(details, made))


cpdef UsageCounts gemini_usage(object usage):
    cdef long long input = count(usage, "promptTokenCount")
    cdef long long output = count(usage, "candidatesTokenCount")
    cdef long long thoughts = known(count(usage, "thoughtsTokenCount"))
    cdef long long total = count(usage, "totalTokenCount")
    if input < 0 and output < 0 and total < 0:
        return None
    # What tools put into the prompt is counted apart, and is part of the total.
    input = known(input) + known(count(usage, "toolUsePromptTokenCount"))
    return UsageCounts(input, known(output) + thoughts, known(count(usage, "cachedContentTokenCount")), 0, thoughts, total,
                 gemini_parts(usage))


cpdef UsageCounts converse_usage(object usage):
    cdef long long input = count(usage, "inputTokens")
    cdef long long output = count(usage, "outputTokens")
    cdef long long cached = known(count(usage, "cacheReadInputTokens"))
    cdef long long written = known(count(usage, "cacheWriteInputTokens"))
    if input < 0 and output < 0:
        return None
    return UsageCounts(known(input) + cached + written, known(output), cached, written, 0, count(usage, "totalTokens"))


cpdef UsageCounts rerank_usage(object meta):
    cdef long long input = count(member(meta, "tokens"), "input_tokens")
    cdef long long output = known(count(member(meta, "tokens"), "output_tokens"))
    if input < 0:
        input = count(member(meta, "billed_units"), "total_tokens")
    if input < 0:
        input = count(member(meta, "billed_units"), "input_tokens")
    return None if input < 0 else UsageCounts(input, output)
