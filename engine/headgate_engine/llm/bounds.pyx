"""What a request for a model may come to; see bounds.pxd.

A body that says a bound several times gets the largest, in whatever place it stands: what is reserved too much is released.
A quote within a text is escaped, so texts do not count.
"""

from headgate_engine.llm.estimate cimport document_tokens

from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp, strlen

from headgate_engine.llm.estimate import MESSAGES

cdef enum:
    # Bodies that are looked through without the interpreter's lock, in bytes.
    LONG_BODY = 32768
    # Values that are looked at before others get the interpreter's lock.
    TURN = 4096
    # Digits of bounds and of numbers of answers.
    BOUND_DIGITS = 12
    CHOICE_DIGITS = 4
    # Bytes of a definition that are reserved as one token.
    BYTES_PER_TOKEN = 3
    # Tokens of a picture: the most that Anthropic counts, and about what OpenAI and Google count for a large one
    # (https://docs.anthropic.com/en/docs/build-with-claude/vision).
    PER_PICTURE = 1600

# The place where a provider reads them, by format: the objects that may hold them, and the names. What stands elsewhere
# bounds nothing.
GEMINI = (("generationConfig", "generation_config"), ("maxOutputTokens", "max_output_tokens"),
          ("candidateCount", "candidate_count"))
PLACES = {
    "completions": ((), ("max_tokens", "max_completion_tokens"), ("n",)),
    "text": ((), ("max_tokens",), ("n", "best_of")),
    "messages": ((), ("max_tokens",), ()),
    "responses": ((), ("max_output_tokens",), ()),
    "gemini": GEMINI,
    "converse": (("inferenceConfig",), ("maxTokens",), ()),
}
# Members that become tokens of the prompt beside its texts.
DEFINITIONS = ("tools", "functions", "toolConfig", "response_format")
# Parts of messages that are pictures, by their type in some formats, and by the name of a member in others.
PICTURES = frozenset(("image_url", "image", "input_image"))
PICTURE_MEMBERS = ("inlineData", "inline_data", "fileData", "file_data", "image")
PARTS = ("content", "parts")
# Of tokens that a body may bound an answer by.
cdef int64_t LONGEST = 10 ** 12


cdef inline Py_ssize_t named(const char* p, Py_ssize_t n, const char* name) noexcept nogil:
    """The length of a quoted name that p begins with, behind its first quote; 0: it is another."""
    cdef Py_ssize_t length = <Py_ssize_t>strlen(name)
    if n > length and p[length] == 34 and memcmp(p, name, length) == 0:
        return length + 1
    return 0


cdef inline Py_ssize_t blanks(const char* p, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t at = 0
    while at < n and (p[at] == 32 or p[at] == 10 or p[at] == 9 or p[at] == 13):
        at += 1
    return at


cdef int64_t number(const char* p, Py_ssize_t n, int most) noexcept nogil:
    """The number that stands behind a name, of 1 to `most` digits; -1: none does."""
    cdef Py_ssize_t at = blanks(p, n)
    cdef int64_t found = 0
    cdef int digits = 0
    if at >= n or p[at] != 58:
        return -1
    at += 1
    at += blanks(p + at, n - at)
    while at < n and 48 <= p[at] <= 57:
        if digits == most:
            return -1
        found = found * 10 + p[at] - 48
        digits = digits + 1
        at += 1
    return found if digits else -1


cdef int scan_bounds(const char* p, Py_ssize_t n, AnswerBounds* found) noexcept nogil:
    cdef const char* end = p + n
    cdef const char* at = p
    cdef Py_ssize_t left, length
    while True:
        at = <const char*>memchr(at, 34, end - at)
        if at == NULL:
            return 0
        at += 1
        left = end - at
        if left < 2:
            return 0
        if at[0] == 109:
            length = named(at, left, b"max_tokens")
            if not length:
                length = named(at, left, b"max_completion_tokens")
            if not length:
                length = named(at, left, b"max_output_tokens")
            if not length:
                length = named(at, left, b"maxOutputTokens")
            if not length:
                length = named(at, left, b"maxTokens")
            if length:
                found.most = max(found.most, number(at + length, left - length, BOUND_DIGITS))
        elif at[0] == 110 or at[0] == 98 or at[0] == 99:
            length = named(at, left, b"n")
            if not length:
                length = named(at, left, b"best_of")
            if not length:
                length = named(at, left, b"candidateCount")
            if length:
                found.choices = max(found.choices, number(at + length, left - length, CHOICE_DIGITS))


cdef int64_t count_of(object value) noexcept:
    """Return a number of tokens or answers as a provider may read it, at most LONGEST; 0 for what bounds nothing."""
    # Integers may be written as 1e5, and as texts in the JSON of protocol buffers. -1 means without a bound to some.
    if isinstance(value, str):
        if len(value) > 32:
            return 0
        try:
            value = float(value)
        except ValueError:
            return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        return 0
    return LONGEST if value >= LONGEST else <int64_t>value


cdef int64_t most_of(list holders, tuple names) except -1:
    cdef int64_t most = 0
    for holder in holders:
        for name in names:
            most = max(most, count_of((<dict>holder).get(name)))
    return most


cdef inline void let_others(int* seen) noexcept:
    """Let others have the interpreter's lock after so many values."""
    seen[0] += 1
    if seen[0] >= TURN:
        seen[0] = 0
        with nogil:
            pass


cdef int64_t spelled(object value, int* seen) except -1:
    """The characters of a value as JSON, without those of escapes."""
    cdef int64_t sum = 2
    let_others(seen)
    if isinstance(value, str):
        return len(<str>value) + 2
    if isinstance(value, dict):
        for name, one in (<dict>value).items():
            sum += len(name) + 6 + spelled(one, seen)
        return sum
    if isinstance(value, list):
        for one in <list>value:
            sum += 2 + spelled(one, seen)
        return sum
    return len(str(value))


cdef int64_t pictures_in(object value, int* seen) except -1:
    """How many pictures a message, a part, or a list of them has."""
    cdef int64_t sum = 0
    let_others(seen)
    if isinstance(value, list):
        for one in <list>value:
            sum += pictures_in(one, seen)
    elif isinstance(value, dict):
        kind = (<dict>value).get("type")
        if isinstance(kind, str) and kind in PICTURES:
            return 1
        for name in PICTURE_MEMBERS:
            if isinstance((<dict>value).get(name), dict):
                return 1
        for name in PARTS:
            if name in <dict>value:
                sum += pictures_in((<dict>value)[name], seen)
    return sum


cdef tuple worst_case(str format, bytes body, object told):
    cdef AnswerBounds found
    cdef const char* p = body
    cdef Py_ssize_t n = len(body)
    cdef int64_t beside = 0
    cdef int seen = 0
    outer, bounds, counts = PLACES.get(format, ((), (), ()))
    holders = []
    if isinstance(told, dict):
        holders = [told] if not outer else [told[name] for name in outer if isinstance(told.get(name), dict)]
        for name in DEFINITIONS:
            if (<dict>told).get(name):
                beside += spelled(told[name], &seen) // BYTES_PER_TOKEN
        for name in MESSAGES.get(format, ()):
            beside += PER_PICTURE * pictures_in((<dict>told).get(name), &seen)
    elif told is None and format in PLACES:
        beside = n // BYTES_PER_TOKEN          # a provider may read what we cannot
    found.most, found.choices = 0, most_of(holders, counts)
    if n < LONG_BODY:
        scan_bounds(p, n, &found)
    else:
        with nogil:
            scan_bounds(p, n, &found)
    return document_tokens(format, told), beside, most_of(holders, bounds), found.most, found.choices


def worst_of(str format not None, bytes body not None, document):
    return worst_case(format, body, document)
