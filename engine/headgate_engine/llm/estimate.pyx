"""An estimate of a prompt's tokens; see estimate.pxd.

It cuts a text as the tokenizers of OpenAI do before they look into their tables (words with the blank before them, numbers
by three, signs, blanks) and then, without those tables, takes a mean for each kind of piece. docs/llm.md tells how far off
it is. Counted are 3 + 1 per message and 3 for the start of the answer, as in OpenAI's cookbook
(https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken); roles, tools and images are not.
"""

from headgate_engine.context.request cimport Reply

from libc.stdint cimport int64_t, uint8_t

import json

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef enum:
    # Texts that are counted without the interpreter's lock, in bytes: 0.1 ms.
    LONG_TEXT = 32768
    # Members of a list that are counted before others get the interpreter's lock.
    TURN = 1024
    # Costs in eighths of a token.
    TOKEN = 8
    # Letters of a Latin word that its first token has; and of each further one.
    FIRST_LETTERS = 10
    MORE_LETTERS = 5
    # Signs of one token; and what a single one costs in front of a word.
    SIGNS = 3
    LEADING_SIGN = 5
    PER_MESSAGE = 4
    PER_PROMPT = 3

# Where a prompt's texts are: by format, members with messages, and members with texts alone.
MESSAGES = {"completions": ("messages",), "messages": ("system", "messages"), "responses": ("instructions", "input"),
            "gemini": ("systemInstruction", "system_instruction", "contents"), "converse": ("system", "messages"),
            "count_tokens": ("system", "messages"),
            "gemini_count_tokens": ("systemInstruction", "system_instruction", "contents")}
# Members of a counting request of Google that hold a whole request.
INSIDE = ("generateContentRequest", "generate_content_request")
# Answers, where these are not Anthropic's.
ESTIMATES = {"gemini_count_tokens": b'{"totalTokens":%d}', "converse": b'{"inputTokens":%d}'}
TEXTS = {"text": ("prompt",), "embeddings": ("input",), "rerank": ("query", "documents")}
# Members of messages and parts that hold more of them, or text.
INNER = ("content", "parts", "text", "output")


cdef inline bint is_lower(uint8_t c) noexcept nogil:
    return 97 <= c <= 122


cdef inline bint is_upper(uint8_t c) noexcept nogil:
    return 65 <= c <= 90


cdef inline bint is_digit(uint8_t c) noexcept nogil:
    return 48 <= c <= 57


cdef inline int64_t wide_cost(const uint8_t* p, Py_ssize_t n, Py_ssize_t* size) noexcept nogil:
    """Eighths of a token of a character that is not ASCII."""
    cdef uint8_t c = p[0]
    if c < 0xE0:
        size[0] = 2
        return 3                           # Greek, Cyrillic, Hebrew, Arabic: words of several letters a token
    if c < 0xF0:
        size[0] = 3
        if c == 0xE0 or c == 0xE1:
            return 5                       # Indic, Thai and others
        if c == 0xE2:
            return 8                       # signs
        return 7                           # Chinese, Japanese, Korean
    size[0] = 4
    return 16                              # emoji


cdef int64_t text_tokens(const char* text, Py_ssize_t n) noexcept nogil:
    cdef const uint8_t* p = <const uint8_t*>text
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t start, size
    cdef int64_t sum = 0
    while at < n:
        start = at
        if is_lower(p[at]) or is_upper(p[at]):
            # A word: capitals, then small letters; camelCase is two.
            while at < n and is_upper(p[at]):
                at += 1
            while at < n and (is_lower(p[at]) or 0xC3 <= p[at] <= 0xC5 and at + 1 < n):
                at += 2 if p[at] >= 0xC3 else 1
            size = at - start
            sum += TOKEN
            if size > FIRST_LETTERS:
                sum += TOKEN * ((size - FIRST_LETTERS + MORE_LETTERS - 1) // MORE_LETTERS)
        elif is_digit(p[at]):
            while at < n and is_digit(p[at]):
                at += 1
            sum += TOKEN * ((at - start + 2) // 3)
        elif p[at] == 10 or p[at] == 13:
            while at < n and (p[at] == 10 or p[at] == 13):
                at += 1
            sum += TOKEN
        elif p[at] == 32 or p[at] == 9:
            while at < n and (p[at] == 32 or p[at] == 9):
                at += 1
            if at - start > 1:
                sum += TOKEN               # a single blank belongs to what follows
        elif p[at] < 128:
            while at < n and p[at] < 128 and p[at] > 32 and not is_digit(p[at]) and not is_lower(p[at] | 32):
                at += 1
            size = at - start
            if size == 0:
                at += 1                    # a control character
                sum += TOKEN
            elif size == 1 and at < n and is_lower(p[at] | 32):
                sum += LEADING_SIGN        # .name, _name, (name: often one token
            else:
                sum += TOKEN * ((size + SIGNS - 1) // SIGNS)
            while at < n and (p[at] == 10 or p[at] == 13):
                at += 1                    # the ends of lines belong to the signs before them
        else:
            sum += wide_cost(p + at, n - at, &size)
            at += size
    return (sum + TOKEN - 1) // TOKEN


cdef int64_t tokens_in(object value) except -1:
    """Of all texts in a message, a part, or a list of them."""
    cdef Py_ssize_t size = 0
    cdef const char* raw
    cdef int64_t sum = 0
    cdef Py_ssize_t at = 0
    if isinstance(value, str):
        try:
            raw = PyUnicode_AsUTF8AndSize(value, &size)
        except UnicodeEncodeError:
            value = value.encode("utf-8", "replace")
            return text_tokens(<bytes>value, len(<bytes>value))
        if size < LONG_TEXT:
            return text_tokens(raw, size)
        with nogil:
            sum = text_tokens(raw, size)
        return sum
    if isinstance(value, list):
        for one in <list>value:
            sum += tokens_in(one)
            at += 1
            if not at % TURN:
                with nogil:
                    pass               # others may have the interpreter's lock
    elif isinstance(value, dict):
        for name in INNER:
            if name in <dict>value:
                sum += tokens_in((<dict>value)[name])
    elif isinstance(value, int) and not isinstance(value, bool):
        return 1                           # a token of an embedding's input that is cut already
    return sum


cdef int64_t messages_in(object value) noexcept:
    if isinstance(value, list):
        return len(<list>value)
    return 0 if value is None else 1


cdef int64_t prompt_tokens(str format, bytes body) except -1:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return 0
    return document_tokens(format, told)


cdef int64_t document_tokens(str format, object told) except -1:
    cdef int64_t sum = 0
    if not isinstance(told, dict):
        return 0
    if format == "gemini_count_tokens":
        for name in INSIDE:
            if isinstance((<dict>told).get(name), dict):
                told = (<dict>told)[name]
    for name in TEXTS.get(format, ()):
        sum += tokens_in(told.get(name))
    for name in MESSAGES.get(format, ()):
        sum += PER_MESSAGE * messages_in(told.get(name)) + tokens_in(told.get(name))
    return sum + PER_PROMPT if format in MESSAGES else sum


cdef Reply estimate_of(str format, int64_t found):
    told = ESTIMATES.get(format, b'{"input_tokens":%d}') % found
    return Reply(200, told, ((b"content-type", b"application/json"),), "DirectResponse")


def tokens_of_document(str format not None, told):
    """Of a request that is decoded already."""
    return document_tokens(format, told)
