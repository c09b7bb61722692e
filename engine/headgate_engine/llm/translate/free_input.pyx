"""The input of custom tools, see free_input.pxd and free_input.pyi."""

import json
import re

cdef enum:
    BEFORE
    WITHIN
    BEHIND
    OTHER

# Arguments that are longer than this and have not begun as wanted do not.
cdef Py_ssize_t LONGEST_BEGIN = 256
cdef object BEGIN = re.compile(r'\s*\{\s*"input"\s*:\s*"')
# Whole characters of a JSON string: the first half of a surrogate pair waits for what follows it.
cdef object WHOLE = re.compile(
    r'(?:[^"\\]++|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}'
    r'|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[0-9a-fA-F]{4}|(?=[^\\]|\\[^u])))*+')


def free_text(str arguments not None):
    try:
        found = json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return arguments
    if type(found) is dict and type((<dict>found).get("input")) is str:
        return (<dict>found)["input"]
    return "" if found == {} else arguments


cdef class FreeInput:
    def __cinit__(self):
        self.pieces = []
        self.rest = ""

    cdef str feed(self, str delta):
        cdef Py_ssize_t stop
        cdef str piece
        if self.state == BEHIND:
            return ""
        if self.state != WITHIN:
            self.pieces.append(delta)
            if self.state == OTHER:
                return ""
        self.rest = self.rest + delta
        if self.state == BEFORE:
            begun = BEGIN.match(self.rest)
            if begun is None:
                if len(self.rest) > LONGEST_BEGIN:
                    self.state = OTHER
                return ""
            self.state = WITHIN
            self.pieces.clear()
            self.rest = self.rest[begun.end():]
        stop = WHOLE.match(self.rest).end()
        piece, self.rest = self.rest[:stop], self.rest[stop:]
        if self.rest.startswith('"'):
            self.state = BEHIND
        try:
            return json.loads(f'"{piece}"', strict=False)
        except ValueError:
            # An escape that JSON does not have.
            return piece

    cdef bint is_whole(self) noexcept:
        return self.state == BEHIND

    cdef str end(self):
        return free_text("".join(self.pieces)) if self.pieces else ""
