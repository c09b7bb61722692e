# cython: boundscheck=False
"""The compiled scanner of prompt guards; see scan.pxd. boundscheck is off: all access is to C memory of known length."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, realloc

from headgate_engine.guard.numbers cimport (
    C_DIGIT, C_START, C_WORD, CLASS, Group, MAX_GROUPS, PHONE_ENDS, card_at, email_at, phone_at, read_groups, sin_at,
    ssn_at)

import time

import re2

from headgate_engine.guard.edits import apply_edits, compose_edits

BUILTIN_NAMES = ("ssn", "creditCard", "phoneNumber", "email", "caSin")
TOKENS = {
    "ssn": b"<SSN>",
    "creditCard": b"<CREDIT_CARD>",
    "phoneNumber": b"<PHONE_NUMBER>",
    "email": b"<EMAIL_ADDRESS>",
    "caSin": b"<CA_SIN>",
}
MASKED = b"<masked>"
# Matches of one rule in one text; behind the last one everything is masked.
MAX_MATCHES = 20_000
# A search is linear, all matches of a pattern that runs on to the text's end need not be: time for those of one budget.
BUDGET_SECONDS = 0.25
# Candidates that the telephone library looks at, about 0.1 ms each; more count as numbers.
PHONE_TRIES = 500
# Memory of one pattern's automaton; it starts again from scratch when that is full.
PATTERN_MEMORY = 8 << 20

cdef enum:
    MAX_HITS = 40_000


cdef class Hits:
    def __cinit__(self):
        self.stopped = -1

    def __dealloc__(self):
        free(self.items)

    cdef int add(self, Py_ssize_t start, Py_ssize_t stop, int kind) except -1:
        cdef Hit* grown
        if self.count == self.capacity:
            grown = <Hit*>realloc(self.items, (self.capacity * 2 + 32) * sizeof(Hit))
            if grown == NULL:
                raise MemoryError()
            self.items = grown
            self.capacity = self.capacity * 2 + 32
        self.items[self.count].start = start
        self.items[self.count].stop = stop
        self.items[self.count].kind = kind
        self.count += 1
        return 0


cdef class Budget:
    def __init__(self, int phone_tries=PHONE_TRIES, double seconds=BUDGET_SECONDS):
        self.phone_tries = phone_tries
        self.seconds = seconds


# -- rules ---------------------------------------------------------------------------------------------------------------
def _compile(str text):
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY
    try:
        return re2.compile(text, options)
    except (re2.error, UnicodeEncodeError):
        raise ValueError("not a regular expression of the linear-time engine") from None


def _set_of(list texts):
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY
    found = re2.Set.SearchSet(options)
    for text in texts:
        found.Add(text)
    found.Compile()
    return found


cdef class Scanner:
    def __init__(self, rules, phone=None):
        cdef int kind
        self.rules = tuple((str(sort), str(text)) for sort, text in rules)
        self.phone = phone
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
            self.wanted |= 1 << kind
        self.patterns = tuple(patterns)
        self.pattern_rules = tuple(index for index, one in enumerate(patterns) if one is not None)
        sorts = [sort for sort, _text in self.rules]
        self.follows = "builtin" in sorts and "pattern" in sorts[sorts.index("builtin"):]
        if len(self.pattern_rules) > 1:
            self.pattern_set = _set_of([self.rules[index][1] for index in self.pattern_rules])

    cdef int _pass(self, bytes text, Hits out, int wanted) except -1:
        """Collects what the wanted built-ins find, left to right."""
        cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(text)
        cdef Py_ssize_t n = PyBytes_GET_SIZE(text)
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t start = 0
        cdef Py_ssize_t stop, size
        cdef Py_ssize_t floor[BUILTINS]
        cdef Py_ssize_t ends[PHONE_ENDS]
        cdef Group groups[MAX_GROUPS]
        cdef int count, i
        cdef bint border
        for i in range(BUILTINS):
            floor[i] = 0
        while at < n:
            if not CLASS[p[at]] & C_START:
                at += 1
                continue
            if out.count >= MAX_HITS:
                out.stopped = at
                return 0
            if p[at] == 64:
                if wanted & (1 << B_EMAIL):
                    stop = email_at(p, at, n, floor[B_EMAIL], &start)
                    if stop >= 0:
                        out.add(start, stop, B_EMAIL)
                        floor[B_EMAIL] = stop
                at += 1
                continue
            border = at == 0 or not CLASS[p[at - 1]] & C_WORD
            count = read_groups(p, at, n, groups)
            if border and wanted & (1 << B_SSN) and at >= floor[B_SSN]:
                stop = ssn_at(p, n, groups, count)
                if stop >= 0:
                    out.add(at, stop, B_SSN)
                    floor[B_SSN] = stop
            if border and wanted & (1 << B_CARD) and at >= floor[B_CARD]:
                stop = card_at(p, n, groups, count)
                if stop >= 0:
                    out.add(at, stop, B_CARD)
                    floor[B_CARD] = stop
            if border and wanted & (1 << B_SIN) and at >= floor[B_SIN]:
                stop = sin_at(p, n, groups, count)
                if stop >= 0:
                    out.add(at, stop, B_SIN)
                    floor[B_SIN] = stop
            if wanted & (1 << B_PHONE):
                count = phone_at(p, at, n, &start, ends)
                for i in range(count):
                    out.add(start, ends[i], B_PHONE)
            size = groups[0].length
            at += size
            while at < n and CLASS[p[at]] & C_DIGIT:
                at += 1
        return 0

    cdef list _resolve(self, bytes text, Hits hits, list order, Budget budget):
        """Edits of those built-in rules: where two overlap, the rule that is listed first has it."""
        cdef Py_ssize_t i
        cdef int kind
        taken = []
        cdef Hit* hit
        for kind in order:
            rule = self.rule_of[kind]
            token = TOKENS[BUILTIN_NAMES[kind]]
            found = []
            position, floor = 0, 0
            for i in range(hits.count):
                hit = &hits.items[i]
                if hit.kind != kind or hit.start < floor:
                    continue
                # Both lists ascend by their starts: one walk finds what overlaps.
                while position < len(taken) and taken[position][1] <= hit.start:
                    position += 1
                if position < len(taken) and taken[position][0] < hit.stop:
                    continue
                if kind == B_PHONE:
                    if self.phone is None:
                        break
                    if budget.phone_tries > 0:
                        budget.phone_tries -= 1
                        if not self.phone(text[hit.start:hit.stop]):
                            continue
                floor = hit.stop
                found.append((hit.start, hit.stop, token, rule))
            if found:
                taken = sorted(taken + found) if taken else found
        if hits.stopped >= 0:
            taken = [one for one in taken if one[1] <= hits.stopped]
            rule = self.rule_of[order[0]]
            taken.append((hits.stopped, len(text), TOKENS[BUILTIN_NAMES[order[0]]], rule))
        return taken

    def _order(self, first, last):
        """Built-ins among the rules first..last, in their order."""
        order = []
        for index in range(first, last):
            sort, name = self.rules[index]
            if sort == "builtin":
                kind = BUILTIN_NAMES.index(name)
                if self.rule_of[kind] == index:
                    order.append(kind)
        return order

    def _builtin_edits(self, bytes text, list order, Budget budget):
        cdef Hits hits = Hits()
        cdef int wanted = 0
        for kind in order:
            wanted |= 1 << <int>kind
        if not wanted:
            return []
        self._pass(text, hits, wanted)
        return self._resolve(text, hits, order, budget) if hits.count else []

    def _pattern_edits(self, bytes text, int rule, Budget budget):
        found = []
        started = time.perf_counter()
        deadline = started + budget.seconds
        for match in self.patterns[rule].finditer(text):
            start, stop = match.span()
            if time.perf_counter() > deadline or len(found) == MAX_MATCHES:
                if start < len(text):
                    found.append((start, len(text), MASKED, rule))
                break
            if start < stop:
                found.append((start, stop, MASKED, rule))
        budget.seconds -= time.perf_counter() - started
        return found

    def _suspects(self, bytes text):
        """Rules with patterns that match something, be it nothing long."""
        if self.pattern_set is not None:
            found = self.pattern_set.Match(text)
            return [self.pattern_rules[index] for index in sorted(found or ())]
        return [rule for rule in self.pattern_rules if self.patterns[rule].search(text) is not None]

    def first(self, bytes text not None, Budget budget=None):
        best = -1
        budget = budget or Budget()
        for edit in self._builtin_edits(text, self._order(0, len(self.rules)), budget):
            if best < 0 or edit[3] < best:
                best = edit[3]
        for rule in self._suspects(text):
            if 0 <= best < rule:
                break
            match = self.patterns[rule].search(text)
            if match is not None and match.start() == match.end():
                # It can match nothing, which is no match: is there another?
                if not self._pattern_edits(text, rule, budget):
                    continue
            return rule
        return best

    def edits(self, bytes text not None, Budget budget=None):
        cdef int index = 0
        cdef int last, tries
        budget = budget or Budget()
        suspects = self._suspects(text) if self.pattern_rules else []
        if not suspects:
            tries = budget.phone_tries
            done = self._builtin_edits(text, self._order(0, len(self.rules)), budget)
            if not done or not self.follows:
                return done
            # A pattern may match what the masks have left: rule by rule, then.
            budget.phone_tries = tries
        done = []
        working = text
        while index < len(self.rules):
            if self.patterns[index] is not None:
                last = index + 1
                found = self._pattern_edits(working, index, budget) if done or index in suspects else []
            else:
                last = index
                while last < len(self.rules) and self.patterns[last] is None:
                    last += 1
                found = self._builtin_edits(working, self._order(index, last), budget)
            if found:
                done = compose_edits(done, found) if done else found
                working = apply_edits(text, done)
            index = last
        return done

    def mask(self, bytes text not None):
        return apply_edits(text, self.edits(text))
