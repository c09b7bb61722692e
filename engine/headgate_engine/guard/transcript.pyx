# cython: boundscheck=False, nonecheck=False
"""The texts of a body; see transcript.pxd.

boundscheck is off: the body is checked as JSON before offsets are taken from it, and arrays grow before they are
written. nonecheck is off: the body is read without the GIL, into objects that are made for it.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcmp, memcpy, memset, strlen

from headgate_engine.guard.encoded cimport decode
from headgate_engine.guard.spans cimport K_ARRAY, K_OBJECT, K_STRING, escape, string_end, unquoted, value_end
from headgate_engine.peek.json cimport ObjectPeek
from headgate_engine.peek.scan cimport DEPTH_LIMIT, Field, Found, Scan, scan_text, skip_blanks

from headgate_engine.guard.encoded import encoded_text

SCOPES = ("systemPrompt", "messages", "toolInput", "toolOutput")
cdef tuple ROLES = ("", "system", "user", "assistant")
# Deeper nesting is refused (RFC 8259 section 9 allows a limit).
DEPTH = 512

cdef enum:
    LONG_TEXT = 65536          # bytes

cdef const char** NAMES = [
    "", "action", "actions", "annotations", "args", "arguments", "audio", "candidates", "choices", "citationsContent",
    "code", "codeExecutionResult", "code_execution_result", "content", "contents", "context", "custom", "data", "document",
    "documents", "executableCode", "executable_code", "function", "functionCall", "function_call", "functionResponse",
    "function_response", "guardContent", "input", "input_audio_transcription", "instructions", "item", "json", "logprobs",
    "message", "messages", "operation", "output", "outputs", "parts", "prompt", "promptVariables", "queries", "query", "refusal",
    "response", "results", "role", "searchResult", "session", "source", "system", "systemInstruction", "system_instruction", "text",
    "thought", "title", "tool_calls", "toolResult", "toolUse", "tools", "transcript", "transcription", "type", "variables",
    "bytes", "file", "file_data", "format", "inlineData", "inline_data", "media_type", "mimeType", "mime_type",
    "images", "image_url", "url"]
cdef uint8_t LENGTHS[N_COUNT]
# Hash table of names by length and first letter; `NEXT` links the names that share a slot.
cdef uint8_t PLACES[256]
cdef uint8_t NEXT[N_COUNT]


cdef inline uint8_t place_of(uint8_t first, int n) noexcept nogil:
    return <uint8_t>(first * 31 + n)


cdef void fill_names() noexcept:
    cdef int i
    cdef uint8_t place
    for i in range(1, N_COUNT):
        LENGTHS[i] = <uint8_t>strlen(NAMES[i])
        place = place_of(<uint8_t>NAMES[i][0], LENGTHS[i])
        NEXT[i] = PLACES[place]
        PLACES[place] = <uint8_t>i


fill_names()


cdef int name_of(const uint8_t* p, int n) noexcept nogil:
    cdef int found
    if n == 0:
        return N_NONE
    found = PLACES[place_of(p[0], n)]
    while found and (LENGTHS[found] != n or memcmp(NAMES[found], p, n) != 0):
        found = NEXT[found]
    return found


cdef bint word_is(const Word* word, const char* text) noexcept nogil:
    cdef int n = <int>strlen(text)
    return word.length == n and memcmp(word.text, text, n) == 0


cdef bint word_ends(const Word* word, const char* text) noexcept nogil:
    cdef int n = <int>strlen(text)
    cdef int held = word.length if word.length < WORD else WORD
    return held >= n and memcmp(word.text + held - n, text, n) == 0


cdef void* grown(void* items, int count, int* room, size_t size) except NULL nogil:
    cdef void* found
    if items != NULL and count < room[0]:
        return items
    found = realloc(items, (room[0] * 2 + 32) * size)
    if found == NULL:
        with gil:
            raise MemoryError()
    room[0] = room[0] * 2 + 32
    return found


cdef class BodyTexts:
    cdef int begin(self, bytes body) except -1:
        cdef Scan scan
        cdef Found top
        if PyBytes_GET_SIZE(body) > MOST_BYTES:
            raise ValueError("a body of gigabytes is not read")
        self.body = body
        self.p = <const uint8_t*>PyBytes_AS_STRING(body)
        self.n = <int>PyBytes_GET_SIZE(body)
        with nogil:
            check_text(&scan, &top, self.p, self.n)
        if scan.fault:
            # This slower check raises the error.
            ObjectPeek(DEPTH).scan(<const char*>self.p, self.n)
        self.lead = <int>skip_blanks(self.p, 0, self.n)
        if self.n == self.lead or self.p[self.lead] != K_OBJECT:
            raise ValueError("not a JSON object")
        return 0

    def __dealloc__(self):
        free(self.members)
        free(self.pieces)
        free(self.runs)
        free(self.turns)
        free(self.clears)

    # -- reading -------------------------------------------------------------------------------------------------------
    cdef int fields(self, int at, Fields* found) except -1 nogil:
        cdef const uint8_t* p = self.p
        cdef int n = self.n
        cdef int stop, start, name
        cdef Word word
        at = at or self.lead
        found.first = self.member_count
        found.count = 0
        if p[at] != K_OBJECT:
            return 0
        at += 1
        while True:
            at = <int>skip_blanks(p, at, n)
            if at >= n or p[at] != K_STRING:
                return 0
            stop = <int>string_end(p, at, n)
            if memchr(p + at, 92, stop - at) == NULL:
                name = name_of(p + at + 1, stop - at - 2)
            else:
                word = self.word(at, stop)
                name = name_of(word.text, word.length) if word.length <= WORD else N_NONE
            start = <int>skip_blanks(p, skip_blanks(p, stop, n) + 1, n)         # behind the colon
            stop = <int>value_end(p, start, n)
            if name:
                self.members = <Member*>grown(self.members, self.member_count, &self.member_room, sizeof(Member))
                self.members[self.member_count].name = name
                self.members[self.member_count].start = start
                self.members[self.member_count].stop = stop
                self.member_count += 1
                found.count += 1
            at = <int>skip_blanks(p, stop, n)
            if at >= n or p[at] != 44:
                return 0
            at += 1

    cdef void drop(self, const Fields* fields) noexcept nogil:
        self.member_count = fields.first

    cdef bint each(self, const Fields* fields, int name, int* position, Span* found) noexcept nogil:
        cdef Member* one
        while position[0] < fields.count:
            one = &self.members[fields.first + position[0]]
            position[0] += 1
            if one.name == name:
                found.start, found.stop = one.start, one.stop
                return True
        return False

    cdef bint item(self, int array, int* at, Span* found, Span* element) noexcept nogil:
        cdef const uint8_t* p = self.p
        cdef int behind
        if at[0] == 0:
            if p[array] != K_ARRAY:
                return False
            at[0] = <int>skip_blanks(p, array + 1, self.n)
            if p[at[0]] == 93:
                at[0] = -1
        if at[0] < 0:
            return False
        found.start = at[0]
        found.stop = <int>value_end(p, at[0], self.n)
        behind = <int>skip_blanks(p, found.stop, self.n)
        element.start = element.stop = 0
        at[0] = -1
        if behind < self.n and p[behind] == 44:
            at[0] = <int>skip_blanks(p, behind + 1, self.n)
            element.start, element.stop = found.start, at[0]
        return True

    cdef bint value(self, int start, int* at, Span* found) noexcept nogil:
        cdef const uint8_t* p = self.p
        if at[0] == 0:
            at[0] = start + 1 if p[start] == K_OBJECT else -1
        if at[0] < 0:
            return False
        at[0] = <int>skip_blanks(p, at[0], self.n)
        if p[at[0]] != K_STRING:
            return False
        at[0] = <int>skip_blanks(p, string_end(p, at[0], self.n), self.n) + 1          # behind the colon
        found.start = <int>skip_blanks(p, at[0], self.n)
        found.stop = <int>value_end(p, found.start, self.n)
        at[0] = <int>skip_blanks(p, found.stop, self.n)
        at[0] = at[0] + 1 if p[at[0]] == 44 else -1
        return True

    cdef bint is_text(self, int at) noexcept nogil:
        return self.p[at] == K_STRING

    cdef bint is_value(self, int start, int stop, const char* text) noexcept nogil:
        return stop - start == <int>strlen(text) and memcmp(self.p + start, text, stop - start) == 0

    cdef Word word(self, int start, int stop) noexcept nogil:
        cdef Word found
        cdef uint8_t scratch[4]
        cdef int size = 1
        cdef int wrote, i
        found.length = 0
        start += 1
        stop -= 1
        while start < stop:
            if self.p[start] == 92:
                wrote = escape(self.p + start, stop - start, scratch, &size)
            else:
                scratch[0] = self.p[start]
                wrote = size = 1
            for i in range(wrote):
                if found.length >= WORD:
                    # Only the last bytes are kept; longer strings are compared by these.
                    shift(&found)
                    found.text[WORD - 1] = scratch[i]
                else:
                    found.text[found.length] = scratch[i]
                found.length += 1
            start += size
        return found

    # -- collecting ----------------------------------------------------------------------------------------------------
    cdef int turn(self, int role, uint8_t joiner) except -1 nogil:
        """Begin a turn and return its number."""
        cdef Turn* one
        self.open = False
        self.turns = <Turn*>grown(self.turns, self.turn_count, &self.turn_room, sizeof(Turn))
        one = &self.turns[self.turn_count]
        one.role = role
        one.name.start = one.name.stop = 0
        one.joiner = joiner
        self.turn_count += 1
        return self.turn_count - 1

    cdef void cut(self) noexcept nogil:
        """End the run: the next piece begins another text."""
        self.open = False

    cdef Piece* add(self, int scope, int start, int stop, int turn, uint8_t joiner) except NULL nogil:
        """Add a piece. It continues the run unless that has been cut."""
        cdef Run* run
        cdef Piece* piece
        run = &self.runs[self.run_count - 1] if self.open else NULL
        if run == NULL or run.scope != scope or run.joiner != joiner:
            self.runs = <Run*>grown(self.runs, self.run_count, &self.run_room, sizeof(Run))
            run = &self.runs[self.run_count]
            run.first = self.piece_count
            run.count = 0
            run.scope = <uint8_t>scope
            run.joiner = joiner
            self.run_count += 1
            self.open = True
        self.pieces = <Piece*>grown(self.pieces, self.piece_count, &self.piece_room, sizeof(Piece))
        piece = &self.pieces[self.piece_count]
        piece.start, piece.stop = start, stop
        piece.element.start = piece.element.stop = 0
        piece.turn = turn
        piece.clears = piece.clear_count = 0
        piece.raw = False
        piece.coded = 0
        self.piece_count += 1
        run.count += 1
        return piece

    cdef int alone(self, int scope, int start, int stop) except -1 nogil:
        """Add a value, a string or raw JSON, as a separate text."""
        cdef Piece* piece
        self.open = False
        piece = self.add(scope, start, stop, NO_TURN, SPACE)
        piece.raw = not self.is_text(start)
        self.open = False
        return 0

    cdef int file(self, int scope, int start, int stop, int coded, int turn) except -1 nogil:
        cdef Piece* piece
        self.open = False
        piece = self.add(scope, start, stop, turn, SPACE)
        piece.coded = coded
        self.open = False
        return 0

    cdef int strings(self, int scope, const Fields* fields, int name) except -1 nogil:
        cdef int at = 0
        cdef Span one
        while self.each(fields, name, &at, &one):
            if self.is_text(one.start):
                self.alone(scope, one.start, one.stop)
        return 0

    cdef int values(self, int scope, const Fields* fields, int name) except -1 nogil:
        cdef int at = 0
        cdef Span one
        while self.each(fields, name, &at, &one):
            if not self.is_value(one.start, one.stop, b"null"):
                self.alone(scope, one.start, one.stop)
        return 0

    cdef int clear(self, int start, int stop, bint null) except -1 nogil:
        self.clears = <Clear*>grown(self.clears, self.clear_count, &self.clear_room, sizeof(Clear))
        self.clears[self.clear_count].span.start = start
        self.clears[self.clear_count].span.stop = stop
        self.clears[self.clear_count].null = null
        self.clear_count += 1
        return 0

    # -- results -------------------------------------------------------------------------------------------------------
    cdef int text_of(self, int run, Text* text) except -1 nogil:
        cdef Run* one = &self.runs[run]
        cdef Piece* piece = &self.pieces[one.first]
        cdef Py_ssize_t most = one.count
        cdef uint8_t* room
        cdef int i
        if one.count == 1 and not piece.coded:
            i = 0 if piece.raw else 1
            text.p, text.n = self.p + piece.start + i, piece.stop - piece.start - 2 * i
            if piece.raw or memchr(text.p, 92, text.n) == NULL:
                return 0
        for i in range(one.count):
            most += piece[i].stop - piece[i].start
        if text.capacity < most:
            room = <uint8_t*>realloc(text.room, most)
            if room == NULL:
                with gil:
                    raise MemoryError()
            text.room, text.capacity = room, most
        text.n = 0
        for i in range(one.count):
            if i:
                text.room[text.n] = one.joiner
                text.n += 1
            text.n += written(self.p, &piece[i], text.room + text.n)
        text.p = text.room
        return 0

    cdef bytes _text(self, const Piece* pieces, int count, uint8_t joiner):
        cdef int i
        cdef list parts = []
        for i in range(count):
            parts.append(self.body[pieces[i].start:pieces[i].stop] if pieces[i].raw
                         else encoded_text(self.body, pieces[i].coded, pieces[i].stop - 1) if pieces[i].coded
                         else unquoted(self.body, pieces[i].start, pieces[i].stop))
        return (b"\n" if joiner == LINE else b" ").join(parts)

    cdef tuple _piece(self, const Piece* piece):
        cdef int i
        cdef list clears = []
        for i in range(piece.clears, piece.clears + piece.clear_count):
            clears.append((self.clears[i].span.start, self.clears[i].span.stop, b"null" if self.clears[i].null else b"[]"))
        return (piece.start, piece.stop, <bint>piece.raw, (piece.element.start, piece.element.stop), tuple(clears),
                piece.coded)

    def __len__(self):
        return self.run_count

    def run(self, int index):
        cdef Run* run
        if not 0 <= index < self.run_count:
            raise IndexError("there is no such run")
        run = &self.runs[index]
        return (SCOPES[run.scope], b"\n" if run.joiner == LINE else b" ",
                [self._piece(&self.pieces[run.first + i]) for i in range(run.count)])

    def text(self, int index):
        cdef Run* run
        cdef Py_ssize_t length = 0
        cdef int i
        if not 0 <= index < self.run_count:
            raise IndexError("there is no such run")
        run = &self.runs[index]
        for i in range(run.first, run.first + run.count):
            length += self.pieces[i].stop - self.pieces[i].start
        return self._text(&self.pieces[run.first], run.count, run.joiner) if length < LONG_TEXT else long_text(self, index)

    def scope(self, int index):
        if not 0 <= index < self.run_count:
            raise IndexError("there is no such run")
        return SCOPES[self.runs[index].scope]

    def conversation(self):
        cdef int i
        cdef Turn* turn
        cdef list found = []
        cdef list pieces = [[] for _ in range(self.turn_count)]
        for i in range(self.piece_count):
            if self.pieces[i].turn >= 0:
                pieces[self.pieces[i].turn].append(self._piece(&self.pieces[i]))
        for i in range(self.turn_count):
            turn = &self.turns[i]
            role = ROLES[turn.role] if turn.role != ROLE_WRITTEN else \
                unquoted(self.body, turn.name.start, turn.name.stop).decode("utf-8", "replace")
            found.append((role, b"\n" if turn.joiner == LINE else b" ", pieces[i]))
        return found


cdef bytes long_text(BodyTexts texts, int run):
    """The text of a run, copied without the GIL: threads read long ones while the event loop continues."""
    cdef Text text
    cdef bytes found
    cdef char* out
    memset(&text, 0, sizeof(Text))
    try:
        with nogil:
            texts.text_of(run, &text)
        found = PyBytes_FromStringAndSize(NULL, text.n)
        out = PyBytes_AS_STRING(found)
        with nogil:
            memcpy(out, text.p, text.n)
    finally:
        free(text.room)
    return found


cdef Field[1] NO_FIELDS


cdef int check_text(Scan* scan, Found* top, const uint8_t* p, Py_ssize_t n) noexcept nogil:
    """Check a whole text as JSON."""
    scan.text = p
    scan.length = n
    scan.fields = NO_FIELDS
    scan.count = 1
    scan.max_depth = DEPTH_LIMIT
    scan.found = top
    memset(top, 0, sizeof(Found))
    scan.duplicate = scan.empty = False
    scan.fault = 0
    return scan_text(scan)


cdef void shift(Word* word) noexcept nogil:
    cdef int i
    for i in range(WORD - 1):
        word.text[i] = word.text[i + 1]


cdef Py_ssize_t written(const uint8_t* p, const Piece* piece, uint8_t* out) noexcept nogil:
    """Write the text of a piece and return its length, which is at most the length of the piece."""
    cdef Py_ssize_t at = piece.start
    cdef Py_ssize_t stop = piece.stop
    cdef Py_ssize_t used = 0
    cdef const uint8_t* found
    cdef int size = 0
    if piece.coded:
        return decode(p + piece.coded, stop - 1 - piece.coded, out)
    if not piece.raw:
        at += 1
        stop -= 1
        while at < stop:
            found = <const uint8_t*>memchr(p + at, 92, stop - at)
            size = <int>((stop - at) if found == NULL else found - (p + at))
            memcpy(out + used, p + at, size)
            used += size
            at += size
            if at < stop:
                used += escape(p + at, stop - at, out + used, &size)
                at += size
        return used
    memcpy(out, p + at, stop - at)
    return stop - at
