"""Paths of requests in one form, and the ways in which servers may read them; see paths.pxd.

Servers disagree on paths: some resolve `..` and decode `%61`, some take `//` for `/`, `%2f` or a backslash for a slash, cut
off `;parameters`, or decode twice. A rule for `/admin` has to hold whatever the backend does. RFC 3986 section 6.2.2 has
the forms that mean the same everywhere: those are settled here. All others may mean something else, so the bytes stay and
authorization looks at every reading.
"""

import re

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from headgate_engine.context.headers cimport HEAD_CONNECT, HEAD_SEVERAL_READINGS, MessageHead

# What servers read in more than one way; the last is a percent sign that begins no escape.
DOUBTFUL = re.compile(rb"//|%2[Ff]|%5[Cc]|\\|;|%25|%(?![0-9A-Fa-f]{2})")
PARAMETERS = re.compile(rb";[^/]*")
# Up to this many bytes all combinations of leniency are readings; beyond it each kind alone, and all of them together.
ALL_COMBINATIONS = 1024
# Longer paths with several readings are refused: to read them takes too long.
MAX_DOUBTFUL = 8192


cdef bint is_plain(const char* path, Py_ssize_t n) noexcept nogil:
    """Whether the path is in its form and has one reading: nearly all are."""
    cdef Py_ssize_t i
    cdef char c
    for i in range(n):
        c = path[i]
        if c == c'/':
            if i + 1 < n and (path[i + 1] == c'/' or path[i + 1] == c'.'):
                return False
        elif c == c'%' or c == c'\\' or c == c';':
            return False
    return True


cdef int hex_value(char c) noexcept nogil:
    if c'0' <= c <= c'9':
        return c - c'0'
    c = c | 32
    return c - c'a' + 10 if c'a' <= c <= c'f' else -1


cdef bint ends_in_half_escape(const char* text, Py_ssize_t n) noexcept nogil:
    """Whether one more hexadecimal digit, or two, would make an escape of the text's end."""
    return n > 0 and (text[n - 1] == c'%' or (n > 1 and text[n - 2] == c'%' and hex_value(text[n - 1]) >= 0))


cdef bytes decoded(bytes path, bint greedy=False):
    """The path with its escapes of unreserved characters decoded (RFC 3986 section 2.3).

    A percent sign that begins no escape must not become one: `%2%65` stays, unless greedy, which makes `%2e` of it.
    """
    cdef Py_ssize_t n = len(path)
    cdef Py_ssize_t i = 0, used = 0
    cdef const char* source = path
    cdef bytes made
    cdef char* out
    cdef int high, low
    if b"%" not in path:
        return path
    made = PyBytes_FromStringAndSize(NULL, n)
    out = PyBytes_AS_STRING(made)
    while i < n:
        out[used] = source[i]
        if source[i] == c'%' and i + 2 < n:
            high, low = hex_value(source[i + 1]), hex_value(source[i + 2])
            if high >= 0 and low >= 0 and is_unreserved(high * 16 + low) and (
                    greedy or hex_value(<char>(high * 16 + low)) < 0 or not ends_in_half_escape(out, used)):
                out[used] = <char>(high * 16 + low)
                i += 2
        used += 1
        i += 1
    return made if used == n else made[:used]


cdef bint is_unreserved(int c) noexcept nogil:
    return (c'a' <= c <= c'z' or c'A' <= c <= c'Z' or c'0' <= c <= c'9' or c == c'-' or c == c'.' or c == c'_'
            or c == c'~')


def _without_dots(bytes path):
    """The path without dot segments (RFC 3986 section 5.2.4)."""
    if b"/." not in path:
        return path
    segments = path.split(b"/")[1:]
    kept = []
    for segment in segments:
        if segment == b"..":
            if kept:
                kept.pop()
        elif segment != b".":
            kept.append(segment)
    if segments[-1] in (b".", b".."):
        kept.append(b"")          # what is named is the folder
    return b"/" + b"/".join(kept)


def resolved(bytes path not None):
    """The path in its form: unreserved characters decoded, dot segments resolved. Other bytes stay."""
    return _without_dots(decoded(path)) if path.startswith(b"/") else path


def readings(bytes path not None):
    """All readings of a path but itself, in any order: at most 127, of long paths at most 13."""
    cdef bytes whole = path
    if not path.startswith(b"/"):
        return ()
    found = [path]
    if len(path) <= ALL_COMBINATIONS:
        for lenient in LENIENT:
            found = list(dict.fromkeys((*found, *[lenient(one) for one in found])))
    else:
        for lenient in LENIENT:
            found.append(lenient(path))
            whole = lenient(whole)
        found.append(whole)
    found = dict.fromkeys((*found, *[_without_dots(one) for one in found]))
    return tuple(one for one in found if one != path)


def _decoded(bytes path):
    return decoded(path)


def _decoded_again(bytes path):
    return decoded(decoded(path, True).replace(b"%25", b"%"), True)


def _escaped_slash(bytes path):
    return path.replace(b"%2f", b"/").replace(b"%2F", b"/")


def _backslash(bytes path):
    return path.replace(b"\\", b"/").replace(b"%5c", b"/").replace(b"%5C", b"/")


def _without_parameters(bytes path):
    return PARAMETERS.sub(b"", path) if b";" in path else path


def _single_slashes(bytes path):
    while b"//" in path:
        path = path.replace(b"//", b"/")
    return path


# In this order: what one of them makes, the next ones may read.
LENIENT = (_decoded, _decoded_again, _escaped_slash, _backslash, _without_parameters, _single_slashes)


cdef bytes path_of(MessageHead head):
    return head.data[head.target_off:head.target_off + head.path_len]


cdef bint settle_path(MessageHead head, int mode) except -1:
    cdef bytes path, form, target
    if is_plain(head.data + head.target_off, head.path_len) or head.flags & HEAD_CONNECT:
        return True
    path = path_of(head)
    form = path if mode == PATH_KEEP else resolved(path)
    if mode == PATH_REFUSE and form != path:
        return False
    if form != path:
        target = form + head.data[head.target_off + head.path_len:head.target_off + head.target_len]
        head.set_target(target, len(target))
    if DOUBTFUL.search(form) is not None or mode == PATH_KEEP and resolved(form) != form:
        if mode == PATH_REFUSE or len(form) > MAX_DOUBTFUL:
            return False
        head.flags |= HEAD_SEVERAL_READINGS
    return True


cdef tuple other_readings(MessageHead head):
    return readings(path_of(head))


cdef class PathGuise:
    cdef int wear(self, bytes path) except -1:
        cdef bytes target = path + self.query
        self.drop()
        return self.head.set_target(target, len(target))

    cdef int drop(self) noexcept:
        self.head.target_off, self.head.target_len = self.target_off, self.target_len
        self.head.path_len, self.head.length = self.path_len, self.length
        return 0


cdef PathGuise guise_of(MessageHead head):
    cdef PathGuise found = PathGuise.__new__(PathGuise)
    found.head = head
    found.target_off, found.target_len = head.target_off, head.target_len
    found.path_len, found.length = head.path_len, head.length
    found.query = head.data[head.target_off + head.path_len:head.target_off + head.target_len]
    return found


def settled(str path not None, int mode=PATH_RESOLVE):
    """Python face of settle_path(): (path, whether it has several readings), None if it is refused."""
    cdef MessageHead head = MessageHead()
    head.set_request("GET", path, "")
    if not settle_path(head, mode):
        return None
    return head.target, bool(head.flags & HEAD_SEVERAL_READINGS)


MODES = {"resolve": PATH_RESOLVE, "refuse": PATH_REFUSE, "keep": PATH_KEEP}
