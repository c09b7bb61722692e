"""Functions that several readers use; see reading.pxd."""

from headgate_engine.guard.transcript cimport (
    Fields, N_ANNOTATIONS, N_LOGPROBS, N_REFUSAL, N_TEXT, Piece, ROLE_WRITTEN, Span, BodyTexts, Word, word_ends,
    word_is)


cdef int words(BodyTexts t, const Fields* fields, int name, Test test, int* passed, Kinds* found) except -1 nogil:
    """Read all strings of that name and count those that pass a test."""
    cdef int at = 0
    cdef Span one
    found.count = 0
    found.word.length = 0
    passed[0] = 0
    while t.each(fields, name, &at, &one):
        if t.is_text(one.start):
            found.count += 1
            found.last = one
            found.word = t.word(one.start, one.stop)
            passed[0] += test(&found.word)
    return 0


cdef bint is_system(const Word* word) noexcept nogil:
    return word_is(word, b"system") or word_is(word, b"developer")


cdef bint is_only_system(const Word* word) noexcept nogil:
    return word_is(word, b"system")


cdef bint is_tool(const Word* word) noexcept nogil:
    return word_is(word, b"tool") or word_is(word, b"function")


cdef bint is_text_type(const Word* word) noexcept nogil:
    return word_is(word, b"text")


cdef bint is_message(const Word* word) noexcept nogil:
    return word_is(word, b"message")


cdef bint is_call(const Word* word) noexcept nogil:
    return word_is(word, b"tool_use") or word_is(word, b"server_tool_use") or word_is(word, b"mcp_tool_use")


cdef bint is_result(const Word* word) noexcept nogil:
    return word_ends(word, b"tool_result")


cdef bint is_unseen(const Word* word) noexcept nogil:
    return (word_is(word, b"thinking") or word_is(word, b"redacted_thinking") or word_is(word, b"web_search_tool_result")
            or word_is(word, b"image"))


cdef bint is_base64(const Word* word) noexcept nogil:
    return word_is(word, b"base64")


cdef int count_words(BodyTexts t, const Fields* fields, int name, Test test) except -1 nogil:
    cdef Kinds kinds
    cdef int passed = 0
    words(t, fields, name, test, &passed, &kinds)
    return passed


cdef int turn_of(BodyTexts t, const Kinds* roles, int otherwise, int joiner) except -1 nogil:
    """Begin the turn of a message. Of several roles the last one counts."""
    cdef int turn = t.turn(ROLE_WRITTEN if roles.count else otherwise, <unsigned char>joiner)
    if roles.count:
        t.turns[turn].name = roles.last
    return turn


cdef Clears no_clears() noexcept nogil:
    cdef Clears found
    found.first = found.count = 0
    return found


cdef int add_texts(BodyTexts t, const Fields* fields, int name, int scope, const Span* element, int turn, int joiner,
                   Clears clears) except -1 nogil:
    """Add all strings of that name as pieces. Return their number."""
    cdef int at = 0
    cdef int found = 0
    cdef Span one
    cdef Piece* piece
    while t.each(fields, name, &at, &one):
        if t.is_text(one.start):
            piece = t.add(scope, one.start, one.stop, turn, <unsigned char>joiner)
            piece.element = element[0]
            piece.clears, piece.clear_count = clears.first, clears.count
            found += 1
    return found


cdef int strings_in(BodyTexts t, int scope, const Fields* fields, int name, int turn) except -1 nogil:
    """Add all strings of that name as texts of their own that belong to a message."""
    cdef int i
    cdef int first = t.piece_count
    t.strings(scope, fields, name)
    for i in range(first, t.piece_count):
        t.pieces[i].turn = turn
    return 0


cdef int inner_values(BodyTexts t, const Fields* fields, int name, int inner, int scope) except -1 nogil:
    """Add the values of the member `inner` of the objects of that name."""
    cdef Fields found
    cdef Span one
    cdef int at = 0
    while t.each(fields, name, &at, &one):
        t.fields(one.start, &found)
        t.values(scope, &found, inner)
        t.drop(&found)
    return 0


cdef int parts(BodyTexts t, Span span, int scope, int turn, int joiner, Clears clears, bint marked) except -1 nogil:
    """Add a content of chat completions or responses: a string, or parts. marked: parts have marks of their own."""
    cdef Fields fields
    cdef Span row, element
    cdef Piece* piece
    cdef int place = 0
    cdef int found
    if t.is_text(span.start):
        piece = t.add(scope, span.start, span.stop, turn, <unsigned char>joiner)
        piece.clears, piece.clear_count = clears.first, clears.count
        return 0
    while t.item(span.start, &place, &row, &element):
        if t.is_text(row.start) and not marked:
            piece = t.add(scope, row.start, row.stop, turn, <unsigned char>joiner)
            piece.element = element
            piece.clears, piece.clear_count = clears.first, clears.count
            continue
        t.fields(row.start, &fields)
        if marked:
            clears = marks(t, &fields)
        found = add_texts(t, &fields, N_TEXT, scope, &element, turn, joiner, clears)
        found += add_texts(t, &fields, N_REFUSAL, scope, &element, turn, joiner, clears)
        if not found:
            t.cut()
        t.drop(&fields)
    return 0


cdef Clears marks(BodyTexts t, const Fields* fields) except * nogil:
    """Return the values that become wrong if a text changes.

    Annotations count its characters, probabilities repeat it.
    """
    cdef Clears found
    cdef Span span
    cdef int at = 0
    found.first = t.clear_count
    while t.each(fields, N_ANNOTATIONS, &at, &span):
        t.clear(span.start, span.stop, False)
    at = 0
    while t.each(fields, N_LOGPROBS, &at, &span):
        t.clear(span.start, span.stop, False)
    found.count = t.clear_count - found.first
    return found
