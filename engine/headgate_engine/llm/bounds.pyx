"""What a request for a model may come to; see bounds.pxd.

A body that says a bound several times gets the largest, in whatever place it stands: what is reserved too much is released.
A quote within a text is escaped, so texts do not count. How many answers there are counts only where providers read it, since
a schema may have such a name as well.

Sound and film are counted by their size, at the lowest rates of usual encoders: 750 bytes a second (Opus at 6 kbit/s), 8,000 of
WAV (8 bits, 8 kHz), with 32 tokens a second (https://ai.google.dev/gemini-api/docs/tokens; OpenAI: 10,
https://platform.openai.com/docs/guides/realtime-costs). A PDF has a token for each byte, as the densest pages of 3,000 tokens
do (https://docs.anthropic.com/en/docs/build-with-claude/pdf-support), another file one for each three.
"""

from headgate_engine.llm.estimate cimport document_tokens
from headgate_engine.llm.form_parts cimport FormParts, scan_form

from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp, strlen

from headgate_engine.llm.estimate import MESSAGES, TEXTS

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
    # Bytes of sound, and of sound in a WAV, for one token.
    SOUND_BYTES = 23
    WAV_BYTES = 250
    # Parts within parts that are looked into.
    DEEPEST = 32

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
# Members of Google's parts, with their data or with where that is.
GOOGLE_PARTS = ("inlineData", "inline_data", "fileData", "file_data")
PARTS = ("content", "parts", "output", "toolResult")
# Members that name what a request does not carry, and is a part of its prompt.
EARLIER = ("previous_response_id", "conversation", "cachedContent", "cached_content")
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


cdef class MediaCount:
    """What a prompt has beside its texts: pictures, tokens of sound and film, tokens of files, and what it only names."""

    cdef int64_t pictures, sound, files, named
    cdef int seen

    cdef int look(self, object value, int depth) except -1:
        """Count what a message, a part, or a list of them has."""
        let_others(&self.seen)
        if depth > DEEPEST:
            return 0
        if isinstance(value, list):
            for one in <list>value:
                self.look(one, depth + 1)
        elif isinstance(value, dict) and not self.part(<dict>value, depth):
            for name in PARTS:
                if name in <dict>value:
                    self.look((<dict>value)[name], depth + 1)
        return 0

    cdef bint part(self, dict value, int depth) except -1:
        """Whether this is a part that is no text."""
        kind = value.get("type")
        if isinstance(kind, str):
            if kind in PICTURES:
                self.pictures += 1
                return True
            if kind == "item_reference":           # of Responses: what was said or answered earlier
                self.named += 1
                return True
            if kind == "input_audio":
                self.sound += sound_of(member(value.get("input_audio"), "data"))
                return True
            if kind == "file" or kind == "input_file":
                self.file(member(value.get("file") if kind == "file" else value, "file_data"))
                return True
            if kind == "document" and isinstance(value.get("source"), dict):
                return self.source(value["source"], depth)
        for name in GOOGLE_PARTS:
            if isinstance(value.get(name), dict):
                self.google(value[name])
                return True
        if isinstance(value.get("image"), dict):
            self.pictures += 1
            return True
        for name in ("audio", "video"):
            if isinstance(value.get(name), dict):
                data = member(value[name].get("source"), "bytes")
                self.sound += sound_of(data)
                self.named += data is None
                return True
        return isinstance(value.get("document"), dict) and self.source(value["document"].get("source"), depth)

    cdef bint source(self, object source, int depth) except -1:
        """A document of Anthropic's or Amazon's, by where its content is."""
        if isinstance(source, dict) and isinstance(source.get("content"), (list, str)):
            self.look(source["content"], depth + 1)
            return True
        data = member(source, "data")
        if data is None:
            data = member(source, "bytes")
        self.file(member(source, "text") if data is None else data)
        return True

    cdef int file(self, object data) except -1:
        if data is None:
            self.named += 1
        else:
            self.files += file_of(<str>data)
        return 0

    cdef int google(self, dict part) except -1:
        cdef str mime = member(part, "mimeType") or member(part, "mime_type") or "image/"
        data = member(part, "data")
        if mime.startswith("image/"):
            self.pictures += 1
        elif data is None:
            self.named += 1
        elif mime.startswith(("audio/", "video/")):
            self.sound += sound_of(data)
        else:
            self.files += file_of(<str>data)
        return 0

    cdef int64_t stored(self, object variables) except -1:
        """Count what the variables of a prompt have that the provider stores. Return the tokens of their texts, at most."""
        cdef int64_t characters = 0
        self.named += 1
        if isinstance(variables, dict):
            for one in (<dict>variables).values():
                if not isinstance(one, dict) or not self.part(<dict>one, 0):
                    characters += spelled(one, &self.seen)
        return characters // BYTES_PER_TOKEN

    cdef tuple found(self, bint spoken):
        return self.pictures, self.sound, self.files, self.named, spoken


cdef str member(object value, str name):
    """Return a text of an object, None where there is none."""
    found = (<dict>value).get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


cdef inline Py_ssize_t data_at(str data):
    """Where base64 begins behind the head of a `data:` URL."""
    return data.find(",", 0, 256) + 1 if data.startswith("data:") else 0


cdef int64_t sound_of(str data) except -1:
    """Most tokens of sound or film in base64; what is no WAV is thought to be compressed."""
    cdef Py_ssize_t at
    if data is None:
        return 0
    at = data_at(data)
    return (len(data) - at) * 3 // 4 // (WAV_BYTES if data.startswith("UklGR", at) else SOUND_BYTES) + 1


cdef int64_t file_of(str data) except -1:
    cdef Py_ssize_t at = data_at(data)
    return (len(data) - at) * 3 // 4 // (1 if data.startswith("JVBERi", at) else BYTES_PER_TOKEN) + 1


cdef bint speaks(dict told) except -1:
    """Whether answers may be sound."""
    if isinstance(told.get("audio"), dict):
        return True
    holder = told.get("generationConfig") or told.get("generation_config")
    wanted = told.get("modalities")
    if isinstance(holder, dict):
        wanted = holder.get("responseModalities") or holder.get("response_modalities")
    return isinstance(wanted, list) and any(isinstance(one, str) and one.lower() == "audio" for one in wanted)


cdef int64_t numbers_in(object value, int* seen) except -1:
    """How many numbers a list has, or its lists: texts to embed or to complete may be tokens already."""
    cdef int64_t sum = 0
    if isinstance(value, list):
        for one in <list>value:
            let_others(seen)
            sum += numbers_in(one, seen) if isinstance(one, list) else isinstance(one, int)
    return sum


cdef int64_t prompts_in(object value) except -1:
    """How many prompts a request for completions has: each has so many answers."""
    return max(len(<list>value), 1) if isinstance(value, list) and not isinstance((value or (0,))[0], int) else 1


cdef int64_t outer_choices(const char* p, Py_ssize_t n, int levels) noexcept nogil:
    """The largest number of answers in the outer `levels` objects of a JSON text; 0 if there is none."""
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t length
    cdef int64_t most = 0
    cdef int depth = 0
    while at < n:
        if p[at] == 123 or p[at] == 91:
            depth += 1
        elif p[at] == 125 or p[at] == 93:
            depth -= 1
        elif p[at] == 34:
            at += 1
            if depth <= levels:
                length = named(p + at, n - at, b"n")
                if not length:
                    length = named(p + at, n - at, b"best_of")
                if not length:
                    length = named(p + at, n - at, b"candidateCount")
                if length:
                    most = max(most, number(p + at + length, n - at - length, CHOICE_DIGITS))
            while at < n and p[at] != 34:
                at += 2 if p[at] == 92 else 1
        at += 1
    return most


cdef tuple form_media(bytes body, AnswerBounds* found):
    """What a form has beside texts; found.choices is its `n`."""
    cdef FormParts parts
    cdef const char* p = body
    cdef Py_ssize_t n = len(body)
    cdef int64_t sound = 0
    if n < LONG_BODY:
        scan_form(p, n, &parts)
    else:
        with nogil:
            scan_form(p, n, &parts)
    found.choices = max(found.choices, parts.choices)
    if parts.files:
        sound = n // (WAV_BYTES if b"RIFF" in body[:65536] else SOUND_BYTES) + 1
    return parts.pictures, sound, 0, 0, False


cdef tuple worst_case(str format, bytes body, object told):
    cdef AnswerBounds found
    cdef const char* p = body
    cdef Py_ssize_t n = len(body)
    cdef int64_t beside = 0
    cdef int64_t counted
    cdef int levels
    cdef int seen = 0
    cdef MediaCount media = MediaCount.__new__(MediaCount)
    cdef tuple parts
    cdef bint spoken = False
    outer, bounds, counts = PLACES.get(format, ((), (), ()))
    holders = []
    if isinstance(told, dict):
        holders = [told] if not outer else [told[name] for name in outer if isinstance(told.get(name), dict)]
        for name in DEFINITIONS:
            if (<dict>told).get(name):
                beside += spelled(told[name], &seen) // BYTES_PER_TOKEN
        for name in MESSAGES.get(format, ()):
            media.look((<dict>told).get(name), 0)
        for name in EARLIER:
            media.named += bool((<dict>told).get(name)) and format in PLACES
        if format == "responses" and isinstance((<dict>told).get("prompt"), dict):
            beside += media.stored(told["prompt"].get("variables"))
        elif format == "converse" and (<dict>told).get("promptVariables"):
            beside += media.stored(told["promptVariables"])
        for name in TEXTS.get(format, ()):
            beside += numbers_in((<dict>told).get(name), &seen)
        spoken = speaks(<dict>told)
    elif told is None and format in PLACES:
        beside = n // BYTES_PER_TOKEN          # a provider may read what we cannot
    found.most, found.choices = 0, 0
    levels = 2 if outer else 1
    counted = 0
    if n < LONG_BODY:
        scan_bounds(p, n, &found)
        counted = outer_choices(p, n, levels)
    else:
        with nogil:
            scan_bounds(p, n, &found)
            counted = outer_choices(p, n, levels)
    if isinstance(told, dict):
        found.choices = max(counted, most_of(holders, counts))
        if format == "text":
            found.choices = max(found.choices, 1) * prompts_in((<dict>told).get("prompt"))
    parts = form_media(body, &found) if told is None and n > 1 and p[0] == 45 and p[1] == 45 else media.found(spoken)
    return document_tokens(format, told), beside, most_of(holders, bounds), found.most, found.choices, parts


def worst_of(str format not None, bytes body not None, document):
    return worst_case(format, body, document)
