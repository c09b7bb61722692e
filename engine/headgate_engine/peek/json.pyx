# cython: boundscheck=False
"""JSON peeks: strict like the standard parser (RFC 8259), linear, without recursion. boundscheck is off: every index is
compared with the length first."""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from headgate_engine.wire.scan cimport hex_value

import json


class PeekError(ValueError):
    """The text is not JSON; `offset` is the byte where that shows."""

    def __init__(self, reason, offset):
        super().__init__(f"{reason} at byte {offset}")
        self.offset = offset


cdef enum Expect:
    X_VALUE = 0
    X_KEY_OR_END = 1      # behind '{'
    X_KEY = 2             # behind ',' in an object
    X_COLON = 3
    X_VALUE_OR_END = 4    # behind '['
    X_COMMA_OR_END = 5
    X_DONE = 6


cdef inline Py_ssize_t skip_blanks(const char* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    while at < n and (p[at] == 32 or p[at] == 10 or p[at] == 13 or p[at] == 9):
        at += 1
    return at


cdef Py_ssize_t string_end(const char* p, Py_ssize_t at, Py_ssize_t n, bint* high) noexcept nogil:
    """Offset behind the closing quote of the string whose first character is at `at`, or -1 - the offset of the fault."""
    cdef uint8_t c
    cdef int i
    cdef uint64_t eight, quote, slash
    while at < n:
        # Eight plain characters at a time: none below 0x20, no quote, no backslash, none above 0x7f.
        while n - at >= 8:
            memcpy(&eight, p + at, 8)
            quote = eight ^ <uint64_t>0x2222222222222222
            slash = eight ^ <uint64_t>0x5C5C5C5C5C5C5C5C
            if (((eight - <uint64_t>0x2020202020202020) | (quote - <uint64_t>0x0101010101010101)
                    | (slash - <uint64_t>0x0101010101010101) | eight) & <uint64_t>0x8080808080808080):
                break
            at += 8
        if at >= n:
            break
        c = <uint8_t>p[at]
        if c == 34:
            return at + 1
        if c < 32:
            return -1 - at
        if c == 92:
            at += 1
            if at >= n:
                return -1 - at
            c = <uint8_t>p[at]
            if c == 117:
                for i in range(1, 5):
                    if at + i >= n or hex_value(p[at + i]) < 0:
                        return -1 - at
                at += 4
            elif not (c == 34 or c == 92 or c == 47 or c == 98 or c == 102 or c == 110 or c == 114 or c == 116):
                return -1 - at
        elif c >= 128:
            high[0] = True
        at += 1
    return -1 - n


cdef Py_ssize_t number_end(const char* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Offset behind the number that begins at `at`, or -1 - the offset of the fault."""
    if at < n and p[at] == b"-":
        at += 1
    if at >= n or not 48 <= p[at] <= 57:
        return -1 - at
    if p[at] == b"0":
        at += 1
    else:
        while at < n and 48 <= p[at] <= 57:
            at += 1
    if at < n and p[at] == b".":
        at += 1
        if at >= n or not 48 <= p[at] <= 57:
            return -1 - at
        while at < n and 48 <= p[at] <= 57:
            at += 1
    if at < n and (p[at] == b"e" or p[at] == b"E"):
        at += 1
        if at < n and (p[at] == b"+" or p[at] == b"-"):
            at += 1
        if at >= n or not 48 <= p[at] <= 57:
            return -1 - at
        while at < n and 48 <= p[at] <= 57:
            at += 1
    return at


cdef int fault(str reason, Py_ssize_t at) except -1:
    raise PeekError(reason, at)


cdef class ObjectPeek:
    cdef int member(self, const char* key, Py_ssize_t key_len, Py_ssize_t value_start, Py_ssize_t value_stop,
                    int kind) except -1:
        return 0

    cdef bytes string_at(self, Py_ssize_t start, Py_ssize_t stop):
        """The decoded string whose raw form, quotes included, is start..stop."""
        cdef bytes raw = self.text[start + 1:stop - 1]
        if b"\\" not in raw:
            return raw
        return json.loads(self.text[start:stop]).encode("utf-8", "surrogatepass")

    cdef int64_t int_at(self, Py_ssize_t start, Py_ssize_t stop) noexcept:
        """A non-negative whole number, -1 for anything else."""
        cdef int64_t value = 0
        cdef Py_ssize_t at
        if stop - start > 18 or stop <= start:
            return -1
        for at in range(start, stop):
            if not 48 <= self.text[at] <= 57:
                return -1
            value = value * 10 + (self.text[at] - 48)
        return value

    cdef int scan(self, const char* p, Py_ssize_t n) except -1:
        cdef char stack[MAX_DEPTH]
        cdef int depth = 0
        cdef int expect = X_VALUE
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t end = 0
        cdef Py_ssize_t key_start = 0
        cdef Py_ssize_t key_stop = 0
        cdef Py_ssize_t value_start = 0
        cdef int kind = J_NONE
        cdef int top_kind = J_NONE
        cdef bint high = False
        cdef char c
        self.text = p
        self.length = n
        self.kind = J_NONE
        self.object_end = -1
        self.empty = False
        while True:
            at = skip_blanks(p, at, n)
            if at >= n:
                break
            c = p[at]
            if expect == X_DONE:
                fault("text behind the value", at)
            if expect == X_COLON:
                if c != b":":
                    fault("expected a colon", at)
                at += 1
                expect = X_VALUE
                continue
            if expect == X_KEY or expect == X_KEY_OR_END:
                if c == b'"':
                    end = string_end(p, at + 1, n, &high)
                    if end < 0:
                        fault("bad string", -1 - end)
                    if depth == 1:
                        key_start, key_stop = at, end
                    at = end
                    expect = X_COLON
                    continue
                if c != b"}" or expect == X_KEY:
                    fault("expected a member name", at)
                if depth == 1:
                    self.empty = True
            elif expect == X_COMMA_OR_END:
                if c == b",":
                    expect = X_KEY if stack[depth - 1] == b"{" else X_VALUE
                    at += 1
                    continue
                if not (c == b"}" and stack[depth - 1] == b"{" or c == b"]" and stack[depth - 1] == b"["):
                    fault("expected a comma or an end", at)
            if expect == X_VALUE or expect == X_VALUE_OR_END:
                if not (c == b"]" and expect == X_VALUE_OR_END):
                    if depth <= 1:
                        value_start = at
                    if c == b'"':
                        end = string_end(p, at + 1, n, &high)
                        kind = J_STRING
                    elif c == b"{" or c == b"[":
                        if depth == MAX_DEPTH:
                            fault("nested too deeply", at)
                        kind = J_OBJECT if c == b"{" else J_ARRAY
                        if depth <= 1:
                            top_kind = kind
                        if depth == 0:
                            self.kind = kind
                        stack[depth] = c
                        depth += 1
                        at += 1
                        expect = X_KEY_OR_END if c == b"{" else X_VALUE_OR_END
                        continue
                    elif c == b"-" or 48 <= c <= 57:
                        end = number_end(p, at, n)
                        kind = J_NUMBER
                    elif c == b"t" and n - at >= 4 and memcmp(p + at, b"true", 4) == 0:
                        end = at + 4
                        kind = J_TRUE
                    elif c == b"f" and n - at >= 5 and memcmp(p + at, b"false", 5) == 0:
                        end = at + 5
                        kind = J_FALSE
                    elif c == b"n" and n - at >= 4 and memcmp(p + at, b"null", 4) == 0:
                        end = at + 4
                        kind = J_NULL
                    else:
                        fault("expected a value", at)
                    if end < 0:
                        fault("bad string" if kind == J_STRING else "bad number", -1 - end)
                    at = end
                    if depth == 1 and stack[0] == b"{":
                        self._member(key_start, key_stop, value_start, at, kind)
                    if depth == 0:
                        self.kind = kind
                        expect = X_DONE
                    else:
                        expect = X_COMMA_OR_END
                    continue
                if depth == 1:
                    self.empty = True
            # a container ends
            if depth == 1:
                self.object_end = at
            depth -= 1
            at += 1
            if depth == 1 and stack[0] == b"{":
                self._member(key_start, key_stop, value_start, at, top_kind)
            expect = X_COMMA_OR_END if depth else X_DONE
        if expect != X_DONE:
            fault("text ends too early", n)
        if high:
            self._check_utf8()
        return 0

    def _check_utf8(self):
        try:
            PyUnicode_DecodeUTF8(self.text, self.length, "strict")
        except UnicodeDecodeError as error:
            raise PeekError("invalid UTF-8", error.start) from None

    cdef int _member(self, Py_ssize_t key_start, Py_ssize_t key_stop, Py_ssize_t start, Py_ssize_t stop, int kind) except -1:
        cdef const char* key = self.text + key_start + 1
        cdef Py_ssize_t n = key_stop - key_start - 2
        cdef bytes decoded
        for i in range(n):
            if key[i] == b"\\":
                decoded = self.string_at(key_start, key_stop)
                return self.member(decoded, len(decoded), start, stop, kind)
        return self.member(key, n, start, stop, kind)


cdef inline bint named(const char* key, Py_ssize_t n, const char* name, Py_ssize_t m) noexcept nogil:
    return n == m and memcmp(key, name, m) == 0


cdef class ChatPeek(ObjectPeek):
    cdef int scan(self, const char* p, Py_ssize_t n) except -1:
        self.has_model = self.model_is_string = self.duplicate_model = False
        self.stream = self.has_stream_options = False
        self.model_start = self.model_stop = 0
        return ObjectPeek.scan(self, p, n)

    cdef int member(self, const char* key, Py_ssize_t n, Py_ssize_t start, Py_ssize_t stop, int kind) except -1:
        if named(key, n, b"model", 5):
            self.duplicate_model = self.has_model
            self.has_model = True
            self.model_is_string = kind == J_STRING
            self.model_start = start
            self.model_stop = stop
        elif named(key, n, b"stream", 6):
            self.stream = kind == J_TRUE
        elif named(key, n, b"stream_options", 14):
            self.has_stream_options = True
        return 0

    @property
    def is_object(self):
        return self.kind == J_OBJECT

    cdef bytes model_bytes(self):
        return self.string_at(self.model_start, self.model_stop)

    def peek(self, bytes text):
        """Scans; returns (model or None, stream, has stream options, raw model span). PeekError when not JSON."""
        self.scan(text, len(text))
        model = self.model_bytes().decode("utf-8", "surrogatepass") if self.has_model and self.model_is_string else None
        return model, bool(self.stream), bool(self.has_stream_options), (self.model_start, self.model_stop)


cdef class UsageMembers(ObjectPeek):
    cdef int member(self, const char* key, Py_ssize_t n, Py_ssize_t start, Py_ssize_t stop, int kind) except -1:
        cdef UsagePeek owner = self.owner
        if named(key, n, b"prompt_tokens", 13) or named(key, n, b"input_tokens", 12):
            owner.input_tokens = self.int_at(start, stop)
        elif named(key, n, b"completion_tokens", 17) or named(key, n, b"output_tokens", 13):
            owner.output_tokens = self.int_at(start, stop)
        elif named(key, n, b"total_tokens", 12):
            owner.total_tokens = self.int_at(start, stop)
        elif named(key, n, b"cached_tokens", 13):
            owner.cached_tokens = self.int_at(start, stop)
        elif named(key, n, b"reasoning_tokens", 16):
            owner.reasoning_tokens = self.int_at(start, stop)
        elif kind == J_OBJECT and n > 8 and memcmp(key + n - 8, b"_details", 8) == 0:
            details = UsageMembers.__new__(UsageMembers)
            (<UsageMembers>details).owner = owner
            (<UsageMembers>details).scan(self.text + start, stop - start)
        return 0


cdef class UsagePeek(ObjectPeek):
    cdef int scan(self, const char* p, Py_ssize_t n) except -1:
        self.has_usage = self.choices_empty = False
        self.input_tokens = self.output_tokens = self.total_tokens = -1
        self.cached_tokens = self.reasoning_tokens = -1
        return ObjectPeek.scan(self, p, n)

    cdef int member(self, const char* key, Py_ssize_t n, Py_ssize_t start, Py_ssize_t stop, int kind) except -1:
        cdef UsageMembers members
        if kind == J_OBJECT and named(key, n, b"usage", 5):
            members = UsageMembers.__new__(UsageMembers)
            members.owner = self
            members.scan(self.text + start, stop - start)
            self.has_usage = True
        elif kind == J_ARRAY and named(key, n, b"choices", 7):
            self.choices_empty = skip_blanks(self.text, start + 1, stop) == stop - 1
        return 0

    def peek(self, bytes text):
        """Scans; returns (input, output, total, cached, reasoning) tokens or None without usage."""
        self.scan(text, len(text))
        if not self.has_usage:
            return None
        return self.input_tokens, self.output_tokens, self.total_tokens, self.cached_tokens, self.reasoning_tokens


cdef class RpcPeek(ObjectPeek):
    cdef int scan(self, const char* p, Py_ssize_t n) except -1:
        self.has_id = self.has_method = self.method_is_string = self.has_result = self.has_error = False
        self.has_params = self.duplicate = False
        self.id_kind = J_NONE
        return ObjectPeek.scan(self, p, n)

    cdef int member(self, const char* key, Py_ssize_t n, Py_ssize_t start, Py_ssize_t stop, int kind) except -1:
        if named(key, n, b"id", 2):
            self.duplicate = self.duplicate or self.has_id
            self.has_id = True
            self.id_kind = kind
            self.id_start, self.id_stop = start, stop
        elif named(key, n, b"method", 6):
            self.duplicate = self.duplicate or self.has_method
            self.has_method = True
            self.method_is_string = kind == J_STRING
            self.method_start, self.method_stop = start, stop
        elif named(key, n, b"params", 6):
            self.duplicate = self.duplicate or self.has_params
            self.has_params = True
            self.params_start, self.params_stop = start, stop
        elif named(key, n, b"result", 6):
            self.has_result = True
        elif named(key, n, b"error", 5):
            self.has_error = True
        return 0

    @property
    def is_object(self):
        return self.kind == J_OBJECT

    @property
    def is_array(self):
        return self.kind == J_ARRAY

    def peek(self, bytes text):
        """Scans `text`, which must stay the argument of the calls below. PeekError when it is not JSON."""
        self.scan(text, len(text))

    def method_of(self, bytes text):
        """The method, or None."""
        if not self.has_method or not self.method_is_string:
            return None
        return json.loads(text[self.method_start:self.method_stop])

    def id_span(self):
        """(start, stop) of the raw id."""
        return self.id_start, self.id_stop

    def params_span(self):
        """(start, stop) of the raw params."""
        return self.params_start, self.params_stop
