# cython: boundscheck=False, nonecheck=False
"""Searches and masks whole bodies; see search.pxd.

boundscheck is off: arrays grow before they are written, and offsets are those of a transcript. nonecheck is off: a
search makes its parts itself and runs without the GIL.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memchr, memcpy, memset

from headgate_engine.guard.scan cimport BUILTINS, ScanBudget, Hit, Scanner, Workspace
from headgate_engine.guard.spans cimport escape
from headgate_engine.guard.transcript cimport Clear, Piece, Text, BodyTexts, grown, written

from binascii import b2a_base64

from headgate_engine.guard.encoded import encoded_text
from headgate_engine.guard.scan import BUILTIN_NAMES, TOKENS
from headgate_engine.guard.spans import check
from headgate_engine.guard.transcript import SCOPES


cdef int scope_bits(scopes) except -1:
    cdef int bits = 0
    for name in scopes:
        bits |= 1 << <int>SCOPES.index(name)
    return bits


cdef class Search:
    """One search with built-ins alone: finds the runs that have matches, and owns the memory for that."""

    cdef Text text
    cdef Workspace work

    def __cinit__(self):
        memset(&self.text, 0, sizeof(Text))
        self.work = Workspace.__new__(Workspace)

    def __dealloc__(self):
        free(self.text.room)

    cdef int next(self, Scanner scanner, BodyTexts texts, int bits, int run) except -2 nogil:
        """Return the next run from `run` on that has matches, -1 for none. The matches are in `work.taken`."""
        while run < texts.run_count:
            if bits >> texts.runs[run].scope & 1:
                texts.text_of(run, &self.text)
                scanner.search(self.text.p, 0, self.text.n, &scanner.order, self.work)
                if self.work.taken.count:
                    return run
            run += 1
        return -1


# -- masks ---------------------------------------------------------------------------------------------------------------
cdef Py_ssize_t said_length(const uint8_t* p, const Piece* piece) noexcept nogil:
    """Return the length of a piece's text in bytes of UTF-8."""
    cdef uint8_t scratch[4]
    cdef Py_ssize_t at = piece.start + 1
    cdef Py_ssize_t stop = piece.stop - 1
    cdef Py_ssize_t found = 0
    cdef const uint8_t* hit
    cdef int size = 0
    if piece.raw:
        return piece.stop - piece.start
    if piece.coded:
        return coded_length(p, piece)
    while True:
        hit = <const uint8_t*>memchr(p + at, 92, stop - at)
        if hit == NULL:
            return found + stop - at
        found += hit - (p + at)
        at = hit - p
        found += escape(p + at, stop - at, scratch, &size)
        at += size


cdef Py_ssize_t coded_length(const uint8_t* p, const Piece* piece) noexcept nogil:
    cdef uint8_t* room = <uint8_t*>malloc(piece.stop - piece.start + 4)
    cdef Py_ssize_t found
    if room == NULL:
        return piece.stop - piece.start        # a file is alone in its run: nothing comes behind it
    found = written(p, piece, room)
    free(room)
    return found


cdef Py_ssize_t advanced(const uint8_t* p, Py_ssize_t at, Py_ssize_t stop, Py_ssize_t* place, Py_ssize_t to) noexcept nogil:
    """Return the offset in a raw string at which `to` bytes of its text are passed, or more inside an escape."""
    cdef uint8_t scratch[4]
    cdef Py_ssize_t left
    cdef const uint8_t* hit
    cdef int size = 0
    while at < stop and place[0] < to:
        left = min(to - place[0], stop - at)
        hit = <const uint8_t*>memchr(p + at, 92, left)
        if hit == NULL:
            place[0] += left
            at += left
            continue
        place[0] += hit - (p + at)
        at = hit - p
        place[0] += escape(p + at, stop - at, scratch, &size)
        at += size
    return at


cdef int by_place(const void* one, const void* other) noexcept nogil:
    cdef const Change* a = <const Change*>one
    cdef const Change* b = <const Change*>other
    if a.start != b.start:
        return -1 if a.start < b.start else 1
    return (a.stop > b.stop) - (a.stop < b.stop)


cdef class Patch:
    def __cinit__(self):
        self.tokens = [TOKENS[name] for name in BUILTIN_NAMES]

    def __dealloc__(self):
        free(self.edits)
        free(self.parts)
        free(self.places)
        free(self.changes)

    cdef int edit(self, Py_ssize_t start, Py_ssize_t stop, int token) except -1 nogil:
        self.edits = <Edit*>grown(self.edits, self.edit_count, &self.edit_room, sizeof(Edit))
        self.edits[self.edit_count].start = start
        self.edits[self.edit_count].stop = stop
        self.edits[self.edit_count].token = token
        self.edit_count += 1
        return 0

    cdef int part(self, int piece, Py_ssize_t start, Py_ssize_t stop, int token) except -1 nogil:
        self.parts = <Edit*>grown(self.parts, self.part_count, &self.part_room, sizeof(Edit))
        self.parts[self.part_count].start = start
        self.parts[self.part_count].stop = stop
        self.parts[self.part_count].token = token
        self.parts[self.part_count].piece = piece
        self.part_count += 1
        return 0

    cdef int change(self, int start, int stop, int token) except -1 nogil:
        self.changes = <Change*>grown(self.changes, self.change_count, &self.change_room, sizeof(Change))
        self.changes[self.change_count].start = start
        self.changes[self.change_count].stop = stop
        self.changes[self.change_count].token = token
        self.change_count += 1
        return 0

    cdef int run(self, BodyTexts t, int index) except -1 nogil:
        cdef int first = t.runs[index].first
        cdef int count = t.runs[index].count
        cdef int at = 0
        cdef int end, piece
        self.locate(t, first, count)
        self.divide(count)
        while at < self.part_count:
            piece = self.parts[at].piece
            end = at + 1
            while end < self.part_count and self.parts[end].piece == piece:
                end += 1
            self.put(t, &t.pieces[first + piece], &self.parts[at], end - at,
                     self.places[piece].high - self.places[piece].low)
            at = end
        self.edit_count = 0
        return 0

    cdef int locate(self, BodyTexts t, int first, int count) except -1 nogil:
        """Find the offsets of the pieces in the text of their run."""
        cdef Py_ssize_t low = 0
        cdef int i
        for i in range(count):
            self.places = <Place*>grown(self.places, i, &self.place_room, sizeof(Place))
            self.places[i].low = low
            low += said_length(t.p, &t.pieces[first + i])
            self.places[i].high = low
            low += 1                     # for the joiner
        return 0

    cdef int divide(self, int count) except -1 nogil:
        """Divide the edits among the pieces; both ascend."""
        cdef Edit* edit
        cdef Place* place
        cdef int first = 0
        cdef int i, k, touched
        self.part_count = 0
        for i in range(self.edit_count):
            edit = &self.edits[i]
            while first < count and self.places[first].high <= edit.start:
                first += 1
            touched = -1
            k = first
            while k < count and self.places[k].low < edit.stop:
                place = &self.places[k]
                if max(edit.start, place.low) < min(edit.stop, place.high):
                    self.part(k, max(edit.start - place.low, 0), min(edit.stop, place.high) - place.low, T_NOTHING)
                    touched = k
                k += 1
            if touched >= 0:
                self.parts[self.part_count - 1].token = edit.token
                continue
            # Between two pieces: it is added to the first of them.
            k = first if first < count and self.places[first].low <= edit.start else first - 1
            if k < 0:
                k = 0
            place = &self.places[k]
            self.part(k, min(edit.start, place.high) - place.low, min(edit.start, place.high) - place.low, edit.token)
        return 0

    cdef int put(self, BodyTexts t, Piece* piece, Edit* parts, int count, Py_ssize_t length) except -1 nogil:
        """Apply the edits of one piece to the body."""
        cdef Py_ssize_t at = piece.start + 1
        cdef Py_ssize_t place = 0
        cdef Py_ssize_t covered = 0
        cdef Py_ssize_t begin
        cdef bint gone = True
        cdef Clear* clear
        cdef int i
        for i in range(count):
            covered += parts[i].stop - parts[i].start
            gone = gone and parts[i].token == T_NOTHING
        if gone and covered == length and piece.element.stop:
            return self.change(piece.element.start, piece.element.stop, T_NOTHING)
        if piece.coded:
            with gil:
                self.encode(t, piece, parts, count)
            count = 0
        for i in range(count):
            if piece.raw:
                self.raw = True
                self.change(<int>(piece.start + parts[i].start), <int>(piece.start + parts[i].stop), parts[i].token)
                continue
            begin = at = advanced(t.p, at, piece.stop - 1, &place, parts[i].start)
            at = advanced(t.p, at, piece.stop - 1, &place, parts[i].stop)
            self.change(<int>begin, <int>at, parts[i].token)
        for i in range(piece.clears, piece.clears + piece.clear_count):
            clear = &t.clears[i]
            self.change(clear.span.start, clear.span.stop, T_NULL if clear.null else T_EMPTY_LIST)
        return 0

    cdef int encode(self, BodyTexts t, Piece* piece, Edit* parts, int count) except -1:
        """Apply the edits of a text file in base64, and encode it again."""
        cdef bytes text = encoded_text(t.body, piece.coded, piece.stop - 1)
        cdef Py_ssize_t at = 0
        cdef int i
        cdef list said = []
        for i in range(count):
            said.append(text[at:parts[i].start])
            if parts[i].token >= 0:
                said.append(self.tokens[parts[i].token])
            at = parts[i].stop
        said.append(text[at:])
        self.tokens.append(b2a_base64(b"".join(said), newline=False))
        return self.change(piece.coded, piece.stop - 1, <int>len(self.tokens) - 1)

    cdef bytes done(self, BodyTexts t):
        """Return the body with all changes."""
        cdef int count = <int>len(self.tokens)
        cdef const char** texts = <const char**>malloc(count * sizeof(char*))
        cdef Py_ssize_t* sizes = <Py_ssize_t*>malloc(count * sizeof(Py_ssize_t))
        cdef Py_ssize_t total = t.n
        cdef Py_ssize_t at = 0
        cdef char* out
        cdef Change* change
        cdef bytes found
        cdef int i
        try:
            if texts == NULL or sizes == NULL:
                raise MemoryError()
            for i in range(count):
                texts[i], sizes[i] = PyBytes_AS_STRING(self.tokens[i]), PyBytes_GET_SIZE(self.tokens[i])
            with nogil:
                qsort(self.changes, self.change_count, sizeof(Change), by_place)
                for i in range(self.change_count):
                    change = &self.changes[i]
                    if change.start < at:
                        change.token = T_NOTHING
                        change.start = change.stop = <int>at          # inside an item that is removed
                        continue
                    at = change.stop
                    total += size_of(change.token, sizes) - (change.stop - change.start)
            found = PyBytes_FromStringAndSize(NULL, total)
            out = PyBytes_AS_STRING(found)
            with nogil:
                at = 0
                for i in range(self.change_count):
                    change = &self.changes[i]
                    memcpy(out, t.p + at, change.start - at)
                    out += change.start - at
                    memcpy(out, text_of(change.token, texts), size_of(change.token, sizes))
                    out += size_of(change.token, sizes)
                    at = change.stop
                memcpy(out, t.p + at, t.n - at)
        finally:
            free(<void*>texts)
            free(sizes)
        if self.raw:
            check(found)
        return found


cdef Py_ssize_t size_of(int token, const Py_ssize_t* sizes) noexcept nogil:
    if token >= 0:
        return sizes[token]
    return 0 if token == T_NOTHING else 2 if token == T_EMPTY_LIST else 4


cdef const char* text_of(int token, const char** texts) noexcept nogil:
    if token >= 0:
        return texts[token]
    return b"[]" if token == T_EMPTY_LIST else b"null"


# -- for Python ----------------------------------------------------------------------------------------------------------
def first_rule(Scanner scanner not None, BodyTexts texts not None, scopes not None, ScanBudget budget not None):
    cdef int bits = scope_bits(scopes)
    cdef int run = 0
    cdef int best
    cdef Py_ssize_t i
    cdef Search search
    if scanner.pattern_rules:
        for run in range(texts.run_count):
            if bits >> texts.runs[run].scope & 1:
                best = scanner.first(texts.text(run), budget)
                if best >= 0:
                    return best
        return -1
    search = Search.__new__(Search)
    with nogil:
        run = search.next(scanner, texts, bits, 0)
    if run < 0:
        return -1
    best = scanner.rule_of[search.work.taken.items[0].kind]
    for i in range(search.work.taken.count):
        best = min(best, scanner.rule_of[search.work.taken.items[i].kind])
    return best


def masked(Scanner scanner not None, BodyTexts texts not None, scopes not None, ScanBudget budget not None):
    cdef int bits = scope_bits(scopes)
    cdef int run = 0
    cdef Py_ssize_t i
    cdef Hit* hit
    cdef Search search
    cdef Patch patch = Patch.__new__(Patch)
    if scanner.pattern_rules:
        for run in range(texts.run_count):
            if bits >> texts.runs[run].scope & 1:
                note(patch, scanner.edits(texts.text(run), budget))
                if patch.edit_count:
                    with nogil:
                        patch.run(texts, run)
    else:
        search = Search.__new__(Search)
        with nogil:
            run = search.next(scanner, texts, bits, run)
            while run >= 0:
                for i in range(search.work.taken.count):
                    hit = &search.work.taken.items[i]
                    patch.edit(hit.start, hit.stop, hit.kind)
                patch.run(texts, run)
                run = search.next(scanner, texts, bits, run + 1)
    return patch.done(texts) if patch.change_count else None


cdef int note(Patch patch, list edits) except -1:
    """Add edits of Scanner.edits(). Equal consecutive replacements share one token."""
    cdef Py_ssize_t start, stop
    cdef bytes replacement
    for start, stop, replacement, _rule in edits:
        if replacement != patch.tokens[len(patch.tokens) - 1] or len(patch.tokens) == BUILTINS:
            patch.tokens.append(replacement)
        patch.edit(start, stop, <int>len(patch.tokens) - 1)
    return 0
