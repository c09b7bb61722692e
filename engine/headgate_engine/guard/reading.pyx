"""Functions that several readers use; see reading.pxd."""

from headgate_engine.guard.encoded cimport is_text_media
from headgate_engine.guard.spans cimport escape
from headgate_engine.guard.transcript cimport (
    Fields, N_ANNOTATIONS, N_FILE, N_FILE_DATA, N_IMAGE_URL, N_LOGPROBS, N_NONE, N_REFUSAL, N_TEXT, N_URL, Piece, ROLE_WRITTEN,
    Span, BodyTexts, WORD, Word, word_ends, word_is)

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp

cdef enum:
    COMMA = 44
    BASE64 = 0x626173653634    # the bytes of "base64"
    SIX_BYTES = 0xFFFFFFFFFFFF


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
    return (word_is(word, b"thinking") or word_is(word, b"redacted_thinking") or word_is(word, b"web_search_tool_result"))


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


cdef void keep_item(BodyTexts t, int first, int texts) noexcept nogil:
    cdef int i
    if t.piece_count - first > 1:
        for i in range(first, first + texts):
            t.pieces[i].element.start = t.pieces[i].element.stop = 0


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
    cdef int found, first
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
        first = t.piece_count
        found = add_texts(t, &fields, N_TEXT, scope, &element, turn, joiner, clears)
        found += add_texts(t, &fields, N_REFUSAL, scope, &element, turn, joiner, clears)
        if not found:
            t.cut()
        # Whoever reads the part by its type sends its file, even beside a text.
        data_urls(t, &fields, scope, turn)
        keep_item(t, first, found)
        t.drop(&fields)
    return 0


cdef int data_urls(BodyTexts t, const Fields* fields, int scope, int turn) except -1 nogil:
    """Add the text files of a part of chat completions or responses. Some providers take any media type for a picture."""
    cdef Fields inner
    cdef Span span
    cdef int at, i
    # Where they stand in a part, and in which member of that if it is an object.
    cdef int[3] holders = [N_FILE_DATA, N_IMAGE_URL, N_FILE]
    cdef int[3] members = [N_NONE, N_URL, N_FILE_DATA]
    for i in range(3):
        files(t, fields, holders[i], N_NONE, scope, turn)
        at = 0
        while members[i] and t.each(fields, holders[i], &at, &span):
            t.fields(span.start, &inner)
            files(t, &inner, members[i], N_NONE, scope, turn)
            t.drop(&inner)
    return 0


cdef int files(BodyTexts t, const Fields* fields, int name, int kind, int scope, int turn) except -1 nogil:
    cdef Span one
    cdef Kinds kinds
    cdef int coded
    cdef int readable = 0
    cdef int at = 0
    if kind:
        words(t, fields, kind, is_readable, &readable, &kinds)
    while t.each(fields, name, &at, &one):
        if t.is_text(one.start):
            coded = 0 if kind else coded_at(t, &one)
            if coded or readable:
                t.file(scope, one.start, one.stop, coded or one.start + 1, turn)
    return 0


cdef int coded_at(BodyTexts t, const Span* one) noexcept nogil:
    """Return where the base64 of a data URL (RFC 2397) with text begins, 0 if a string is none.

    What is in front of the comma may have any length and any escapes. Readers pass over blanks, some of them in other places than
    others (https://fetch.spec.whatwg.org/#data-urls, https://url.spec.whatwg.org/#url-parsing): here they count nowhere.
    """
    cdef Word head                             # the first bytes, which have the media type
    cdef uint8_t said[4]
    cdef uint8_t letter
    cdef uint64_t tail = 0
    cdef int at = one.start + 1
    cdef int stop = one.stop - 1
    cdef int size = 1
    cdef int wrote, i
    head.length = 0
    while at < stop:
        if t.p[at] == 92:
            wrote = escape(t.p + at, stop - at, said, &size)
        else:
            said[0] = t.p[at]
            wrote = size = 1
        at += size
        if said[0] == COMMA:
            return at if tail & SIX_BYTES == BASE64 and is_text_media(&head, 5) else 0
        for i in range(wrote):
            letter = said[i] + 32 if 65 <= said[i] <= 90 else said[i]
            if letter == 32 or letter == 9 or letter == 10 or letter == 12 or letter == 13:
                continue
            tail = tail << 8 | letter
            if head.length < WORD:
                head.text[head.length] = letter
                head.length += 1
                if head.length == 5 and memcmp(head.text, b"data:", 5) != 0:
                    return 0
    return 0


cdef bint is_readable(const Word* word) noexcept nogil:
    """Whether a word is a media type of text, or a format of text as Converse has it."""
    cdef Word copy = word[0]
    return (word_is(word, b"txt") or word_is(word, b"md") or word_is(word, b"csv") or word_is(word, b"html")
            or is_text_media(&copy, 0))


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
