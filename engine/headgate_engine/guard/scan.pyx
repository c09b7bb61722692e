# cython: boundscheck=False, nonecheck=False
"""The compiled scanner of prompt guards; see scan.pxd.

boundscheck is off: all access is to C memory of known length. nonecheck is off: a search reads its work objects for
every byte, and they are made together with it.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from headgate_engine.guard.numbers cimport (
    C_DIGIT, C_START, C_WORD, CLASS, Group, MAX_GROUPS, PHONE_ENDS, card_at, email_at, phone_at, read_groups, sin_at,
    ssn_at)
from headgate_engine.guard.phone cimport is_phone
from headgate_engine.guard.watch cimport PatternWatch

import time
from itertools import pairwise

from headgate_engine.guard.edits import apply_edits, compose_edits
from headgate_engine.guard.pattern_set import PatternSet
from headgate_engine.guard.pattern_syntax import positions

BUILTIN_NAMES = ("ssn", "creditCard", "phoneNumber", "email", "caSin")
TOKENS = {
    "ssn": b"<SSN>",
    "creditCard": b"<CREDIT_CARD>",
    "phoneNumber": b"<PHONE_NUMBER>",
    "email": b"<EMAIL_ADDRESS>",
    "caSin": b"<CA_SIN>",
}
MASKED = b"<masked>"
# Most matches of one rule in one text. The rest of the text is masked as a whole.
MAX_MATCHES = 20_000
# Processor time for finding all matches of patterns (a process that waits for its turn must not mask what it would not
# otherwise). One search is linear, but all matches of a pattern that runs to the end of the text may not be.
BUDGET_SECONDS = 0.25
# Most time of a search: per byte, per digit in a text full of numbers, and per byte for each pattern (RE2 without its
# faster automaton). Measured by bench/micro/guard_scan.py.
BYTE_NS = 2
DIGIT_NS = 90
PATTERN_NS = 20
# Memory of one pattern's automaton. RE2 clears it when it is full.
PATTERN_MEMORY = 8 << 20
# Most instructions of one pattern. RE2 takes 0.3 us for each, in one call that holds the interpreter's lock; \p{L}{1,20} has
# 24,000.
MOST_INSTRUCTIONS = 40_000

cdef enum:
    MAX_HITS = 40_000

# Eight equal bytes each: 0x01, 0x80, '0', '@' ^ '0', and 10.
cdef uint64_t ONES = 0x0101010101010101
cdef uint64_t TOPS = 0x8080808080808080
cdef uint64_t ZEROS = 0x3030303030303030
cdef uint64_t AT_SIGNS = 0x7070707070707070
cdef uint64_t TENS = 0x0A0A0A0A0A0A0A0A


cdef int add(Hits* hits, Py_ssize_t start, Py_ssize_t stop, int kind) except -1 nogil:
    cdef Hit* grown
    if hits.count == hits.capacity:
        grown = <Hit*>realloc(hits.items, (hits.capacity * 2 + 32) * sizeof(Hit))
        if grown == NULL:
            with gil:
                raise MemoryError()
        hits.items = grown
        hits.capacity = hits.capacity * 2 + 32
    hits.items[hits.count].start = start
    hits.items[hits.count].stop = stop
    hits.items[hits.count].kind = kind
    hits.count += 1
    return 0


cdef class Workspace:
    def __dealloc__(self):
        free(self.hits.items)
        free(self.taken.items)
        free(self.found.items)
        free(self.merged.items)


cdef class ScanBudget:
    def __init__(self, double seconds=BUDGET_SECONDS):
        self.seconds = seconds


cdef Py_ssize_t next_start(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Return the offset of the next digit or @ from `at` on, n for none."""
    cdef uint64_t word
    while at + 8 <= n:
        memcpy(&word, p + at, 8)
        word ^= ZEROS
        # Is a byte less than 10, or is one zero? See https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord.
        if (word - TENS) & ~word & TOPS or ((word ^ AT_SIGNS) - ONES) & ~(word ^ AT_SIGNS) & TOPS:
            break
        at += 8
    while at < n and not CLASS[p[at]] & C_START:
        at += 1
    return at


# -- rules ---------------------------------------------------------------------------------------------------------------
def _compile(str text):
    import re2  # 2.5 MB: loaded with the first pattern

    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY
    try:
        found = re2.compile(text, options)
    except (re2.error, UnicodeEncodeError):
        raise ValueError("not a regular expression of the linear-time engine") from None
    if found.programsize > MOST_INSTRUCTIONS:
        raise ValueError(f"the pattern takes {found.programsize:,} instructions of RE2, of at most {MOST_INSTRUCTIONS:,}: count "
                         "fewer characters of a large class, or none, as in \\p{L}+")
    return found


cdef class Scanner:
    def __init__(self, rules):
        cdef int kind
        self.rules = tuple((str(sort), str(text)) for sort, text in rules)
        for kind in range(BUILTINS):
            self.rule_of[kind] = -1
        patterns = []
        for index, (sort, text) in enumerate(self.rules):
            patterns.append(None)
            if sort == "pattern":
                patterns[index] = _compile(text)
                continue
            if sort != "builtin" or text not in BUILTIN_NAMES:
                raise ValueError(f"there is no {sort} {text!r}")
            kind = BUILTIN_NAMES.index(text)
            if self.rule_of[kind] < 0:
                self.rule_of[kind] = index
        self.patterns = tuple(patterns)
        self.pattern_rules = tuple(index for index, one in enumerate(patterns) if one is not None)
        sorts = [sort for sort, _text in self.rules]
        self.follows = "builtin" in sorts and "pattern" in sorts[sorts.index("builtin"):]
        texts = [self.rules[index][1] for index in self.pattern_rules]
        if len(texts) > 1:
            self.pattern_set = PatternSet(texts, [one for one in patterns if one is not None], PATTERN_MEMORY)
        read = positions(texts)
        if texts and read is not None:
            self.watch = PatternWatch(read)
        self.stages = len(texts) + sum(1 for one, other in pairwise(["pattern", *sorts]) if other == "builtin" != one)
        self.order = self._order(0, len(self.rules))

    cdef int _pass(self, const uint8_t* p, Py_ssize_t first, Py_ssize_t n, Hits* out, int wanted) except -1 nogil:
        """Collect the matches of the wanted built-ins from `first` on, left to right."""
        cdef Py_ssize_t at = first
        cdef Py_ssize_t start = 0
        cdef Py_ssize_t stop
        cdef Py_ssize_t floor[BUILTINS]
        cdef Py_ssize_t ends[PHONE_ENDS]
        cdef Group groups[MAX_GROUPS]
        cdef int count, i
        cdef bint border
        out.count = 0
        out.stopped = -1
        for i in range(BUILTINS):
            floor[i] = first
        while True:
            at = next_start(p, at, n)
            if at >= n:
                return 0
            if out.count >= MAX_HITS:
                out.stopped = at
                return 0
            if p[at] == 64:
                if wanted & (1 << B_EMAIL):
                    stop = email_at(p, at, n, floor[B_EMAIL], &start)
                    if stop >= 0:
                        add(out, start, stop, B_EMAIL)
                        floor[B_EMAIL] = stop
                at += 1
                continue
            border = at == 0 or not CLASS[p[at - 1]] & C_WORD
            count = read_groups(p, at, n, groups)
            if border:
                self._numbers(p, n, groups, count, wanted, floor, out)
            if wanted & (1 << B_PHONE):
                count = phone_at(p, at, n, &start, ends)
                for i in range(count):
                    add(out, start, ends[i], B_PHONE)
            at += groups[0].length
            while at < n and CLASS[p[at]] & C_DIGIT:
                at += 1

    cdef int _numbers(self, const uint8_t* p, Py_ssize_t n, Group* groups, int count, int wanted, Py_ssize_t* floor,
                      Hits* out) except -1 nogil:
        """Collect the numbers that begin with the first group."""
        cdef Py_ssize_t at = groups[0].start
        cdef Py_ssize_t stop
        cdef int kind
        for kind in range(BUILTINS):
            if not wanted & (1 << kind) or at < floor[kind]:
                continue
            if kind == B_SSN:
                stop = ssn_at(p, n, groups, count)
            elif kind == B_CARD:
                stop = card_at(p, n, groups, count)
            elif kind == B_SIN:
                stop = sin_at(p, n, groups, count)
            else:
                continue
            if stop >= 0:
                add(out, at, stop, kind)
                floor[kind] = stop
        return 0

    cdef int search(self, const uint8_t* p, Py_ssize_t start, Py_ssize_t n, const Order* order,
                    Workspace work) except -1 nogil:
        cdef int i
        self._pass(p, start, n, &work.hits, order.wanted)
        work.taken.count = 0
        if work.hits.count == 0:
            return 0
        for i in range(order.count):
            self._take(p, order.kinds[i], work)
        if work.hits.stopped >= 0:
            while work.taken.count and work.taken.items[work.taken.count - 1].stop > work.hits.stopped:
                work.taken.count -= 1
            add(&work.taken, work.hits.stopped, n, order.kinds[0])
        return 0

    cdef int _take(self, const uint8_t* p, int kind, Workspace work) except -1 nogil:
        """Add the matches of one kind. Where two overlap, that of the first rule in the list wins."""
        cdef Hits* taken = &work.taken
        cdef Hits* found = &work.found
        cdef Py_ssize_t i
        cdef Py_ssize_t position = 0
        cdef Py_ssize_t floor = 0
        cdef Hit* hit
        found.count = 0
        for i in range(work.hits.count):
            hit = &work.hits.items[i]
            if hit.kind != kind or hit.start < floor:
                continue
            # Both lists are sorted by start, so one pass finds all overlaps.
            while position < taken.count and taken.items[position].stop <= hit.start:
                position += 1
            if position < taken.count and taken.items[position].start < hit.stop:
                continue
            if kind == B_PHONE and not is_phone(p + hit.start, hit.stop - hit.start):
                continue
            floor = hit.stop
            add(found, hit.start, hit.stop, kind)
        return self._merge(work) if found.count else 0

    cdef int _merge(self, Workspace work) except -1 nogil:
        """Merge `taken` and `found` into one ascending list."""
        cdef Py_ssize_t i = 0
        cdef Py_ssize_t k = 0
        cdef Hit* one
        cdef Hits spare
        cdef Hits* merged = &work.merged
        merged.count = 0
        while i < work.taken.count or k < work.found.count:
            if k == work.found.count or i < work.taken.count and work.taken.items[i].start < work.found.items[k].start:
                one = &work.taken.items[i]
                i += 1
            else:
                one = &work.found.items[k]
                k += 1
            add(merged, one.start, one.stop, one.kind)
        spare = work.taken
        work.taken = work.merged
        work.merged = spare
        return 0

    cdef Order _order(self, Py_ssize_t first, Py_ssize_t last):
        """Return the built-ins among the rules first..last, in their order."""
        cdef Order order
        cdef Py_ssize_t index
        cdef int kind
        order.count = order.wanted = 0
        for index in range(first, last):
            sort, name = self.rules[index]
            if sort == "builtin":
                kind = BUILTIN_NAMES.index(name)
                if self.rule_of[kind] == index:
                    order.kinds[order.count] = kind
                    order.wanted |= 1 << kind
                    order.count += 1
        return order

    cdef list _builtin_edits(self, bytes text, Py_ssize_t start, Py_ssize_t stop, Order order):
        cdef Workspace work
        cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(text)
        if not order.wanted or next_start(p, start, stop) == stop:
            return []
        work = Workspace.__new__(Workspace)
        with nogil:
            self.search(p, start, stop, &order, work)
        return self.builtin_edits_of(work)

    cdef list builtin_edits_of(self, Workspace work):
        cdef Py_ssize_t i
        cdef Hit* hit
        cdef list found = []
        for i in range(work.taken.count):
            hit = &work.taken.items[i]
            found.append((hit.start, hit.stop, TOKENS[BUILTIN_NAMES[hit.kind]], self.rule_of[hit.kind]))
        return found

    def _pattern_edits(self, bytes text not None, Py_ssize_t first, int rule, ScanBudget budget not None):
        """Return the edits of a pattern's matches that begin at or behind `first`."""
        if not 0 <= rule < len(self.patterns):
            raise IndexError(f"rule {rule}")
        found = []
        started = time.thread_time()
        deadline = started + budget.seconds
        for match in self.patterns[rule].finditer(text, first):
            start, stop = match.span()
            if time.thread_time() > deadline or len(found) == MAX_MATCHES:
                if start < len(text):
                    found.append((start, len(text), MASKED, rule))
                break
            if start < stop:
                found.append((start, stop, MASKED, rule))
        budget.seconds -= time.thread_time() - started
        return found

    def _suspects(self, bytes text):
        """Return the rules with patterns that may match, even if only the empty string."""
        if self.pattern_set is not None:
            return [self.pattern_rules[index] for index in self.pattern_set.suspects(text)]
        return [rule for rule in self.pattern_rules if self.patterns[rule].search(text) is not None]

    def nanoseconds(self, bytes text not None):
        cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(text)
        cdef Py_ssize_t n = PyBytes_GET_SIZE(text)
        cdef Py_ssize_t i
        cdef Py_ssize_t digits = 0
        if self.order.wanted:
            with nogil:
                for i in range(n):
                    digits += 48 <= p[i] <= 57
        return n * BYTE_NS + digits * DIGIT_NS + n * PATTERN_NS * len(self.pattern_rules)

    def first(self, bytes text not None, ScanBudget budget=None):
        best = -1
        budget = budget or ScanBudget()
        for edit in self._builtin_edits(text, 0, len(text), self.order):
            if best < 0 or edit[3] < best:
                best = edit[3]
        for rule in self._suspects(text):
            if 0 <= best < rule:
                break
            match = self.patterns[rule].search(text)
            if match is None:
                continue
            if match.start() == match.end():
                # The first match is empty, which does not count: is there another match?
                if not self._pattern_edits(text, 0, rule, budget):
                    continue
            return rule
        return best

    def edits(self, bytes text not None, ScanBudget budget=None):
        suspects = self._suspects(text) if self.pattern_rules else []
        return self._staged(text, 0, suspects, budget or ScanBudget(), None)

    cdef list edits_between(self, bytes text, Py_ssize_t start, Py_ssize_t stop, bint suspected, list steps):
        suspects = ()
        if not self.pattern_rules:
            return self._builtin_edits(text, start, stop, self.order)
        if stop < len(text):
            text = text[:stop]
        if suspected and self.pattern_set is None:
            suspects = self.pattern_rules
        elif suspected:
            # With the byte in front, which decides about borders of words and lines.
            suspects = self._suspects(text[start - 1:] if start > 1 else text)
        return self._staged(text, start, suspects, ScanBudget(), steps)

    cdef list _staged(self, bytes text, Py_ssize_t start, object suspects, ScanBudget budget, list steps):
        """Return the edits of the matches that begin at or behind `start`. Only suspects match in the text as it is.

        steps: gets the text after each rule that has changed it, if another rule follows.
        """
        cdef int index = 0
        cdef int last
        if not suspects:
            done = self._builtin_edits(text, start, len(text), self.order)
            if not done or not self.follows:
                return done
            # A pattern may match the result of a mask, so apply rule by rule.
        done = []
        working = text
        while index < len(self.rules):
            if self.patterns[index] is not None:
                last = index + 1
                found = self._pattern_edits(working, start, index, budget) if done or index in suspects else []
            else:
                last = index
                while last < len(self.rules) and self.patterns[last] is None:
                    last += 1
                found = self._builtin_edits(working, start, len(working), self._order(index, last))
            if found:
                done = compose_edits(done, found) if done else found
                working = apply_edits(text, done)
                if steps is not None and last < len(self.rules):
                    steps.append(working)
            index = last
        return done

    def mask(self, bytes text not None):
        return apply_edits(text, self.edits(text))
