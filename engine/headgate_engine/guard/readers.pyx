"""Readers of the formats of LLM requests and replies; see readers.pxd.

Sources: the API references of OpenAI (https://platform.openai.com/docs/api-reference: chat completions, responses,
embeddings, realtime), Anthropic (https://docs.anthropic.com/en/api/messages), Google
(https://ai.google.dev/api/generate-content) and Cohere (https://docs.cohere.com/reference/rerank).
"""

from headgate_engine.guard.bedrock cimport converse_reply, converse_request
from headgate_engine.guard.items cimport gemini_reply, gemini_request, responses_reply, responses_request, variables
from headgate_engine.guard.reading cimport (
    Clears, Kinds, add_texts, count_words, files, inner_values, is_base64, is_call, is_only_system, is_result,
    is_system, is_text_type, is_tool, is_unseen, keep_item, no_clears, parts, strings_in, turn_of, words)
from headgate_engine.guard.spans import string_value
from headgate_engine.guard.transcript cimport (
    Fields, LINE, NO_TURN, N_ANNOTATIONS, N_ARGUMENTS, N_AUDIO, N_CHOICES, N_CONTENT, N_CONTEXT, N_CUSTOM, N_DATA,
    N_DOCUMENTS, N_FUNCTION, N_FUNCTION_CALL_SNAKE, N_IMAGES, N_INPUT, N_INPUT_AUDIO_TRANSCRIPTION, N_INSTRUCTIONS, N_ITEM,
    N_LOGPROBS, N_MEDIA_TYPE, N_MESSAGE, N_MESSAGES, N_NONE, N_OUTPUT, N_PROMPT, N_QUERY, N_REFUSAL, N_RESPONSE, N_ROLE, N_SESSION,
    N_SOURCE, N_SYSTEM, N_TEXT, N_TITLE, N_TOOL_CALLS, N_TRANSCRIPT, N_TRANSCRIPTION, N_TYPE, N_URL, ROLE_ASSISTANT,
    ROLE_NONE, ROLE_SYSTEM, ROLE_USER, S_INPUT, S_MESSAGES, S_OUTPUT, S_SYSTEM, SPACE, Span, BodyTexts, word_is)

FORMATS = frozenset(("completions", "messages", "responses", "gemini", "count_tokens", "gemini_count_tokens", "embeddings",
                     "rerank", "realtime", "converse"))


# -- chat completions ----------------------------------------------------------------------------------------------------
cdef int completions_request(BodyTexts t) except -1 nogil:
    cdef Fields top
    cdef Span array, row, element
    cdef int at = 0
    cdef int place
    t.fields(0, &top)
    while t.each(&top, N_MESSAGES, &at, &array):
        place = 0
        while t.item(array.start, &place, &row, &element):
            completions_message(t, row.start)
    return 0


cdef int completions_message(BodyTexts t, int start) except -1 nogil:
    cdef Fields fields, called
    cdef Kinds roles
    cdef Span span, row, element
    cdef int turn, scope, place
    cdef int system = 0
    cdef int tool = 0
    cdef int at = 0
    t.fields(start, &fields)
    words(t, &fields, N_ROLE, is_tool, &tool, &roles)
    words(t, &fields, N_ROLE, is_system, &system, &roles)
    # Of several roles, the one that is checked more strictly counts.
    if roles.count == 0 or tool < roles.count:
        scope = S_SYSTEM if roles.count and system == roles.count else S_MESSAGES
    else:
        scope = S_OUTPUT
    turn = turn_of(t, &roles, ROLE_NONE, SPACE)
    while t.each(&fields, N_CONTENT, &at, &span):
        parts(t, span, scope, turn, SPACE, no_clears(), False)
    t.cut()
    at = 0
    while t.each(&fields, N_REFUSAL, &at, &span):
        # Clients can write any text here, and models read it.
        if t.is_text(span.start):
            t.add(scope, span.start, span.stop, turn, SPACE)
    t.cut()
    at = 0
    while t.each(&fields, N_TOOL_CALLS, &at, &span):
        place = 0
        while t.item(span.start, &place, &row, &element):
            t.fields(row.start, &called)
            inner_values(t, &called, N_FUNCTION, N_ARGUMENTS, S_INPUT)
            inner_values(t, &called, N_CUSTOM, N_INPUT, S_INPUT)
            t.drop(&called)
    inner_values(t, &fields, N_FUNCTION_CALL_SNAKE, N_ARGUMENTS, S_INPUT)
    at = 0
    while t.each(&fields, N_IMAGES, &at, &span):
        # Earlier pictures of the model, as clients send them back.
        parts(t, span, scope, turn, SPACE, no_clears(), False)
    t.cut()
    t.drop(&fields)
    return 0


cdef int completions_reply(BodyTexts t) except -1 nogil:
    """Add the texts of the choices. Token probabilities repeat a text, annotations count its characters."""
    cdef Fields top, choice, message
    cdef Span array, row, element, inner, span
    cdef Clears clears
    cdef int turn, place, within, at
    cdef int outer = 0
    t.fields(0, &top)
    while t.each(&top, N_CHOICES, &outer, &array):
        place = 0
        while t.item(array.start, &place, &row, &element):
            t.fields(row.start, &choice)
            turn = t.turn(ROLE_ASSISTANT, SPACE)
            clears.first = t.clear_count
            at = 0
            while t.each(&choice, N_LOGPROBS, &at, &span):
                t.clear(span.start, span.stop, True)
            within = 0
            while t.each(&choice, N_MESSAGE, &within, &inner):
                t.fields(inner.start, &message)
                at = 0
                while t.each(&message, N_ANNOTATIONS, &at, &span):
                    t.clear(span.start, span.stop, False)
                clears.count = t.clear_count - clears.first
                at = 0
                while t.each(&message, N_CONTENT, &at, &span):
                    parts(t, span, S_MESSAGES, turn, SPACE, clears, False)
                t.drop(&message)
            t.drop(&choice)
    return 0


# -- messages ------------------------------------------------------------------------------------------------------------
cdef int messages_request(BodyTexts t) except -1 nogil:
    cdef Fields top, fields
    cdef Kinds roles
    cdef Span array, row, element, span
    cdef int place, scope, turn, inner
    cdef int system = 0
    cdef int at = 0
    t.fields(0, &top)
    while t.each(&top, N_SYSTEM, &at, &span):
        blocks(t, span, S_SYSTEM, t.turn(ROLE_SYSTEM, LINE), LINE)
    at = 0
    while t.each(&top, N_MESSAGES, &at, &array):
        place = 0
        while t.item(array.start, &place, &row, &element):
            t.fields(row.start, &fields)
            words(t, &fields, N_ROLE, is_only_system, &system, &roles)
            scope = S_SYSTEM if roles.count and system == roles.count else S_MESSAGES
            turn = turn_of(t, &roles, ROLE_NONE, SPACE)
            inner = 0
            while t.each(&fields, N_CONTENT, &inner, &span):
                blocks(t, span, scope, turn, SPACE)
            t.drop(&fields)
    return 0


cdef int blocks(BodyTexts t, Span span, int scope, int turn, int joiner) except -1 nogil:
    """Add a content: a string, or blocks."""
    cdef Fields fields
    cdef Span row, element
    cdef int place = 0
    if t.is_text(span.start):
        t.add(scope, span.start, span.stop, turn, <unsigned char>joiner)
        return 0
    while t.item(span.start, &place, &row, &element):
        t.fields(row.start, &fields)
        block(t, &fields, &element, scope, turn, joiner)
        t.drop(&fields)
    return 0


cdef int block(BodyTexts t, const Fields* fields, const Span* element, int scope, int turn, int joiner) except -1 nogil:
    cdef Kinds kinds
    cdef Span inner, whole
    cdef bint results
    cdef int first, found
    cdef int texts = 0
    cdef int at = 0
    whole.start = whole.stop = 0
    words(t, fields, N_TYPE, is_text_type, &texts, &kinds)
    if kinds.count and word_is(&kinds.word, b"mid_conv_system"):
        t.cut()
        while t.each(fields, N_CONTENT, &at, &inner):
            blocks(t, inner, S_SYSTEM, turn, joiner)
        return strings_in(t, S_SYSTEM, fields, N_TEXT, turn)
    if texts or not kinds.count:
        first = t.piece_count
        found = add_texts(t, fields, N_TEXT, scope, element if kinds.count < 2 else &whole, turn, joiner, no_clears())
        keep_item(t, first, found)
        if found and kinds.count < 2:
            return 0
    t.cut()
    if kinds.count == 1 and is_unseen(&kinds.word):
        return 0
    if count_words(t, fields, N_TYPE, is_call):
        t.values(S_INPUT, fields, N_INPUT)
        if kinds.count < 2:
            return 0
    results = count_words(t, fields, N_TYPE, is_result) > 0
    if results:
        result(t, fields)
        if kinds.count < 2:
            return 0
    return document(t, fields, scope, turn, not results)


cdef int result(BodyTexts t, const Fields* fields) except -1 nogil:
    cdef Span span
    cdef int at = 0
    while t.each(fields, N_CONTENT, &at, &span):
        if t.is_text(span.start) or t.p[span.start] == c"[":
            blocks(t, span, S_OUTPUT, NO_TURN, SPACE)
            t.cut()
        elif t.p[span.start] == c"{":
            t.alone(S_OUTPUT, span.start, span.stop)
    return 0


cdef int document(BodyTexts t, const Fields* fields, int scope, int turn, bint content) except -1 nogil:
    """Add all texts of documents, search results and compactions, as parts of the message. content: the content, too."""
    cdef Fields source
    cdef Span span, inner
    cdef int within
    cdef int at = 0
    strings_in(t, scope, fields, N_TITLE, turn)
    strings_in(t, scope, fields, N_CONTEXT, turn)
    while content and t.each(fields, N_CONTENT, &at, &span):
        blocks(t, span, scope, turn, SPACE)
        t.cut()
    strings_in(t, scope, fields, N_SOURCE, turn)
    at = 0
    while t.each(fields, N_SOURCE, &at, &span):
        if t.is_text(span.start):
            continue
        t.fields(span.start, &source)
        if count_words(t, &source, N_TYPE, is_base64):
            files(t, &source, N_DATA, N_MEDIA_TYPE, scope, turn)
        else:
            strings_in(t, scope, &source, N_DATA, turn)
        # What is said to be a picture may have any media type, too.
        files(t, &source, N_URL, N_NONE, scope, turn)
        within = 0
        while t.each(&source, N_CONTENT, &within, &inner):
            blocks(t, inner, scope, turn, SPACE)
            t.cut()
        t.drop(&source)
    return 0


cdef int messages_reply(BodyTexts t) except -1 nogil:
    """Add the text blocks as one choice."""
    cdef Fields top, fields
    cdef Span array, row, element
    cdef int place
    cdef Span whole
    cdef int at = 0
    cdef int turn = t.turn(ROLE_ASSISTANT, SPACE)
    whole.start = whole.stop = 0
    t.fields(0, &top)
    while t.each(&top, N_CONTENT, &at, &array):
        place = 0
        while t.item(array.start, &place, &row, &element):
            t.fields(row.start, &fields)
            if not count_words(t, &fields, N_TYPE, is_text_type) \
                    or not add_texts(t, &fields, N_TEXT, S_MESSAGES, &whole, turn, SPACE, no_clears()):
                t.cut()
            t.drop(&fields)
    return 0


# -- formats without a conversation --------------------------------------------------------------------------------------
cdef int each_text(BodyTexts t, int first, int second) except -1 nogil:
    """Add inputs, queries and documents, each as a separate text. Token numbers have no readable text."""
    cdef Fields top, fields
    cdef Span array, row, element
    cdef int[2] names = [first, second]
    cdef int at, place, i
    t.fields(0, &top)
    for i in range(2):
        t.strings(S_MESSAGES, &top, names[i])
    for i in range(2):
        at = 0
        while t.each(&top, names[i], &at, &array):
            place = 0
            while t.item(array.start, &place, &row, &element):
                if t.is_text(row.start):
                    t.alone(S_MESSAGES, row.start, row.stop)
                else:
                    t.fields(row.start, &fields)
                    t.strings(S_MESSAGES, &fields, N_TEXT)
                    t.drop(&fields)
    return 0


cdef int realtime_request(BodyTexts t) except -1 nogil:
    """Add the texts of a client's event: items, the instructions and the input of a response, the settings of a session."""
    cdef Fields top
    cdef Span one
    cdef int at = 0
    t.fields(0, &top)
    while t.each(&top, N_ITEM, &at, &one):
        realtime_item(t, one)
    at = 0
    while t.each(&top, N_RESPONSE, &at, &one):
        realtime_settings(t, one.start)
    at = 0
    while t.each(&top, N_SESSION, &at, &one):
        realtime_settings(t, one.start)
    return 0


cdef int realtime_item(BodyTexts t, Span one) except -1 nogil:
    """Add the texts of an item, its content as one text. What its type says does not count: others may read it otherwise."""
    cdef Fields item
    cdef Kinds roles
    cdef Span span
    cdef int scope, turn
    cdef int system = 0
    cdef int at = 0
    if t.is_text(one.start):
        t.add(S_MESSAGES, one.start, one.stop, t.turn(ROLE_USER, SPACE), SPACE)
        t.cut()
        return 0
    t.fields(one.start, &item)
    words(t, &item, N_ROLE, is_system, &system, &roles)
    scope = S_SYSTEM if roles.count and system == roles.count else S_MESSAGES
    turn = turn_of(t, &roles, ROLE_USER, SPACE)
    while t.each(&item, N_CONTENT, &at, &span):
        realtime_content(t, span, scope, turn)
    t.cut()
    t.values(S_INPUT, &item, N_ARGUMENTS)
    at = 0
    while t.each(&item, N_OUTPUT, &at, &span):
        if t.p[span.start] == c"[":
            realtime_content(t, span, S_OUTPUT, NO_TURN)
            t.cut()
        elif not t.is_value(span.start, span.stop, b"null"):
            t.alone(S_OUTPUT, span.start, span.stop)
    t.drop(&item)
    return 0


cdef int realtime_content(BodyTexts t, Span span, int scope, int turn) except -1 nogil:
    """Add a content: a string, a part, or several of them."""
    cdef Span row, element, whole
    cdef int place = 0
    whole.start = whole.stop = 0
    if t.p[span.start] != c"[":
        return realtime_part(t, span, &whole, scope, turn)
    while t.item(span.start, &place, &row, &element):
        realtime_part(t, row, &whole, scope, turn)
    return 0


cdef int realtime_part(BodyTexts t, Span row, const Span* whole, int scope, int turn) except -1 nogil:
    cdef Fields part
    if t.is_text(row.start):
        t.add(scope, row.start, row.stop, turn, SPACE)
        return 0
    t.fields(row.start, &part)
    add_texts(t, &part, N_TEXT, scope, whole, turn, SPACE, no_clears())
    # A client may say what an audio is to mean.
    add_texts(t, &part, N_TRANSCRIPT, scope, whole, turn, SPACE, no_clears())
    t.drop(&part)
    return 0


cdef int realtime_settings(BodyTexts t, int start) except -1 nogil:
    """Add the texts of `response` or `session`."""
    cdef Fields fields
    cdef Span span, row, element
    cdef int place
    cdef int at = 0
    t.fields(start, &fields)
    while t.each(&fields, N_INSTRUCTIONS, &at, &span):
        realtime_content(t, span, S_SYSTEM, t.turn(ROLE_SYSTEM, SPACE))
        t.cut()
    at = 0
    while t.each(&fields, N_INPUT, &at, &span):
        if t.p[span.start] != c"[":
            realtime_item(t, span)
        place = 0
        while t.item(span.start, &place, &row, &element):
            realtime_item(t, row)
    at = 0
    while t.each(&fields, N_PROMPT, &at, &span):
        variables(t, span.start)
    transcription(t, &fields, N_INPUT_AUDIO_TRANSCRIPTION)
    at = 0
    while t.each(&fields, N_AUDIO, &at, &span):
        audio_settings(t, span.start)
    t.drop(&fields)
    return 0


cdef int audio_settings(BodyTexts t, int start) except -1 nogil:
    cdef Fields audio, given
    cdef Span span
    cdef int at = 0
    t.fields(start, &audio)
    while t.each(&audio, N_INPUT, &at, &span):
        t.fields(span.start, &given)
        transcription(t, &given, N_TRANSCRIPTION)
        t.drop(&given)
    t.drop(&audio)
    return 0


cdef int transcription(BodyTexts t, const Fields* fields, int name) except -1 nogil:
    """Add the prompt of the model that transcribes a user's speech."""
    cdef Fields found
    cdef Span span
    cdef int at = 0
    while t.each(fields, name, &at, &span):
        t.fields(span.start, &found)
        strings_in(t, S_SYSTEM, &found, N_PROMPT, t.turn(ROLE_SYSTEM, SPACE))
        t.drop(&found)
    return 0


# -- formats by name -----------------------------------------------------------------------------------------------------
ctypedef int (*Reader)(BodyTexts t) except -1 nogil


cdef int nothing(BodyTexts t) except -1 nogil:
    """Add nothing: vectors and scores are no text."""
    return 0


cdef int embeddings_request(BodyTexts t) except -1 nogil:
    return each_text(t, N_INPUT, N_NONE)


cdef int rerank_request(BodyTexts t) except -1 nogil:
    return each_text(t, N_QUERY, N_DOCUMENTS)


cdef Reader reader_of(str format, bint reply) except NULL:
    if format == "completions":
        return completions_reply if reply else completions_request
    if format == "messages":
        return messages_reply if reply else messages_request
    if format == "responses":
        return responses_reply if reply else responses_request
    if format == "gemini":
        return gemini_reply if reply else gemini_request
    if format == "converse":
        return converse_reply if reply else converse_request
    if format not in FORMATS:
        raise KeyError(format)
    if reply:
        return nothing
    if format == "count_tokens":
        return messages_request
    if format == "gemini_count_tokens":
        return gemini_request
    return embeddings_request if format == "embeddings" else rerank_request if format == "rerank" else realtime_request


cdef BodyTexts texts_of(bytes body, str format, bint reply):
    cdef Reader read = reader_of(format, reply)
    cdef BodyTexts t = BodyTexts.__new__(BodyTexts)
    t.begin(body)
    with nogil:
        read(t)
    return t


def event_types(bytes body not None):
    """The values of `type` of an object, each time it stands there: a str, or None for what is no string."""
    cdef BodyTexts t = BodyTexts.__new__(BodyTexts)
    cdef Fields top
    cdef Span one
    cdef int at = 0
    found = []
    t.begin(body)
    t.fields(0, &top)
    while t.each(&top, N_TYPE, &at, &one):
        found.append(
            string_value(body, one.start, one.stop).decode("utf-8", "replace") if t.is_text(one.start) else None)
    return found


def read_texts(bytes body not None, str format not None, *, bint reply=False):
    return texts_of(body, format, reply)
