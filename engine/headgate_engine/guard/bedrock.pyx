"""Readers of Bedrock's Converse; see bedrock.pxd.

A block is named by its member (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html).
"""

from headgate_engine.guard.reading cimport (
    Kinds, add_texts, inner_values, is_readable, keep_item, no_clears, strings_in, turn_of, words)
from headgate_engine.guard.transcript cimport (
    Fields, NO_TURN, N_BYTES, N_CITATIONS_CONTENT, N_CONTENT, N_CONTEXT, N_DOCUMENT, N_FORMAT, N_GUARD_CONTENT, N_INPUT, N_JSON,
    N_MESSAGE,
    N_MESSAGES, N_OUTPUT, N_PROMPT_VARIABLES, N_ROLE, N_SEARCH_RESULT, N_SOURCE, N_SYSTEM, N_TEXT, N_TITLE, N_TOOL_RESULT,
    N_TOOL_USE, ROLE_ASSISTANT, ROLE_NONE, ROLE_SYSTEM, ROLE_USER, S_INPUT, S_MESSAGES, S_OUTPUT, S_SYSTEM, SPACE, LINE,
    Span, BodyTexts, Word)


cdef bint no_test(const Word* word) noexcept nogil:
    return False


cdef int converse_request(BodyTexts t) except -1 nogil:
    cdef Fields top, fields
    cdef Kinds roles
    cdef Span array, row, element, span
    cdef int place, turn, inner
    cdef int passed = 0
    cdef int at = 0
    t.fields(0, &top)
    while t.each(&top, N_SYSTEM, &at, &span):
        blocks(t, span, S_SYSTEM, t.turn(ROLE_SYSTEM, LINE), LINE)
    at = 0
    while t.each(&top, N_MESSAGES, &at, &array):
        place = 0
        while t.item(array.start, &place, &row, &element):
            t.fields(row.start, &fields)
            words(t, &fields, N_ROLE, no_test, &passed, &roles)
            turn = turn_of(t, &roles, ROLE_NONE, SPACE)
            inner = 0
            while t.each(&fields, N_CONTENT, &inner, &span):
                blocks(t, span, S_MESSAGES, turn, SPACE)
            t.drop(&fields)
    t.cut()
    at = 0
    while t.each(&top, N_PROMPT_VARIABLES, &at, &span):
        variables(t, span)
    return 0


cdef int variables(BodyTexts t, Span span) except -1 nogil:
    """Add the variables of a prompt that the provider stores, as a message of the user."""
    cdef Fields holder
    cdef Span value
    cdef int at = 0
    cdef int turn = t.turn(ROLE_USER, SPACE)
    while t.value(span.start, &at, &value):
        t.fields(value.start, &holder)
        strings_in(t, S_MESSAGES, &holder, N_TEXT, turn)
        t.drop(&holder)
    return 0


cdef int blocks(BodyTexts t, Span span, int scope, int turn, int joiner) except -1 nogil:
    cdef Fields fields
    cdef Span row, element
    cdef int first, found
    cdef int place = 0
    while t.item(span.start, &place, &row, &element):
        t.fields(row.start, &fields)
        first = t.piece_count
        found = add_texts(t, &fields, N_TEXT, scope, &element, turn, joiner, no_clears())
        if not found:
            t.cut()
        block(t, &fields, scope, turn)
        keep_item(t, first, found)
        t.drop(&fields)
    return 0


cdef int block(BodyTexts t, const Fields* fields, int scope, int turn) except -1 nogil:
    """Add a block that is not a separate text. Reasoning and images are not read."""
    cdef Fields found
    cdef Span span
    cdef int at = 0
    inner_values(t, fields, N_TOOL_USE, N_INPUT, S_INPUT)
    while t.each(fields, N_TOOL_RESULT, &at, &span):
        t.fields(span.start, &found)
        result(t, &found)
        t.drop(&found)
    for at in range(2):
        nested(t, fields, N_DOCUMENT if at == 0 else N_SEARCH_RESULT, scope, turn)
    inner_texts(t, fields, N_CITATIONS_CONTENT, N_CONTENT, scope, turn)
    return inner_texts(t, fields, N_GUARD_CONTENT, N_TEXT, scope, turn)


cdef int result(BodyTexts t, const Fields* fields) except -1 nogil:
    """Add what a tool has said."""
    cdef Fields inner
    cdef Span span, row, element
    cdef int place, first, found
    cdef int at = 0
    while t.each(fields, N_CONTENT, &at, &span):
        place = 0
        while t.item(span.start, &place, &row, &element):
            t.fields(row.start, &inner)
            first = t.piece_count
            found = add_texts(t, &inner, N_TEXT, S_OUTPUT, &element, NO_TURN, SPACE, no_clears())
            if not found:
                t.cut()
            t.values(S_OUTPUT, &inner, N_JSON)
            nested(t, &inner, N_DOCUMENT, S_OUTPUT, NO_TURN)
            nested(t, &inner, N_SEARCH_RESULT, S_OUTPUT, NO_TURN)
            keep_item(t, first, found)
            t.drop(&inner)
        t.cut()
    return 0


cdef int nested(BodyTexts t, const Fields* fields, int name, int scope, int turn) except -1 nogil:
    """Add the texts of documents and search results."""
    cdef Fields found, holder
    cdef Kinds formats
    cdef Span span, source
    cdef int within, readable
    cdef int each = 0
    cdef int at = 0
    while t.each(fields, name, &at, &span):
        t.fields(span.start, &found)
        strings_in(t, scope, &found, N_TITLE, turn)
        strings_in(t, scope, &found, N_CONTEXT, turn)
        listed(t, &found, N_CONTENT, scope, turn)
        inner_texts(t, &found, N_SOURCE, N_CONTENT, scope, turn)
        inner_texts(t, &found, N_SOURCE, N_TEXT, scope, turn)
        readable = 0
        words(t, &found, N_FORMAT, is_readable, &readable, &formats)
        # A document without a format is text.
        if readable or not formats.count:
            within = 0
            while t.each(&found, N_SOURCE, &within, &source):
                t.fields(source.start, &holder)
                while t.each(&holder, N_BYTES, &each, &source):
                    if t.is_text(source.start):
                        t.file(scope, source.start, source.stop, source.start + 1, turn)
                each = 0
                t.drop(&holder)
        t.drop(&found)
    return 0


cdef int inner_texts(BodyTexts t, const Fields* fields, int name, int inner, int scope, int turn) except -1 nogil:
    """Add the texts in the member `inner` of the objects of that name: a string, an object with one, or a list of these."""
    cdef Fields holder, found
    cdef Span span, value
    cdef int within
    cdef int at = 0
    while t.each(fields, name, &at, &span):
        t.fields(span.start, &holder)
        strings_in(t, scope, &holder, inner, turn)
        listed(t, &holder, inner, scope, turn)
        within = 0
        while t.each(&holder, inner, &within, &value):
            t.fields(value.start, &found)
            strings_in(t, scope, &found, N_TEXT, turn)
            t.drop(&found)
        t.drop(&holder)
    return 0


cdef int listed(BodyTexts t, const Fields* fields, int name, int scope, int turn) except -1 nogil:
    """Add the texts of the objects in a list."""
    cdef Fields found
    cdef Span span, row, element
    cdef int place
    cdef int at = 0
    while t.each(fields, name, &at, &span):
        place = 0
        while t.item(span.start, &place, &row, &element):
            t.fields(row.start, &found)
            strings_in(t, scope, &found, N_TEXT, turn)
            t.drop(&found)
    return 0


cdef int converse_reply(BodyTexts t) except -1 nogil:
    """Add the text blocks as one choice. Citations of a masked text are kept: they say nothing of its characters."""
    cdef Fields top, holder, message
    cdef Span outer, middle, array
    cdef int within, inner
    cdef int at = 0
    cdef int turn = t.turn(ROLE_ASSISTANT, SPACE)
    t.fields(0, &top)
    while t.each(&top, N_OUTPUT, &at, &outer):
        t.fields(outer.start, &holder)
        within = 0
        while t.each(&holder, N_MESSAGE, &within, &middle):
            t.fields(middle.start, &message)
            inner = 0
            while t.each(&message, N_CONTENT, &inner, &array):
                said(t, array, turn)
            t.drop(&message)
        t.drop(&holder)
    return 0


cdef int said(BodyTexts t, Span array, int turn) except -1 nogil:
    """Add the texts of an answer's blocks."""
    cdef Fields fields, cited, inner
    cdef Span row, element, span, content, one
    cdef Span whole
    cdef int at, within, each
    cdef int place = 0
    whole.start = whole.stop = 0
    while t.item(array.start, &place, &row, &element):
        t.fields(row.start, &fields)
        if not add_texts(t, &fields, N_TEXT, S_MESSAGES, &whole, turn, SPACE, no_clears()):
            t.cut()
        at = 0
        while t.each(&fields, N_CITATIONS_CONTENT, &at, &span):
            t.fields(span.start, &cited)
            within = 0
            while t.each(&cited, N_CONTENT, &within, &content):
                each = 0
                while t.item(content.start, &each, &one, &element):
                    t.fields(one.start, &inner)
                    add_texts(t, &inner, N_TEXT, S_MESSAGES, &whole, turn, SPACE, no_clears())
                    t.drop(&inner)
            t.drop(&cited)
            t.cut()
        t.drop(&fields)
    return 0
