"""See the .pyi."""

OPEN = "\ue000"
CLOSE = "\ue001"


cdef bint is_word(Py_UCS4 c) noexcept nogil:
    return 48 <= c <= 57 or 65 <= c <= 90 or c == 95 or 97 <= c <= 122


def mark_literals(str text not None):
    cdef list parts = [], tokens = []
    cdef Py_ssize_t size = len(text), at = 0, rest = 0, end
    cdef Py_UCS4 c, before
    if OPEN in text:
        return text, []
    while at < size:
        c = text[at]
        if c == u"`" or (c == u"/" and at + 1 < size and text[at + 1] == u"/"):
            return text, []
        if c != u'"' and c != u"'":
            at += 1
            continue
        before = text[at - 1] if at else 0
        if is_word(before) or (at + 2 < size and text[at + 1] == c and text[at + 2] == c):
            return text, []
        end = at + 1
        while end < size and text[end] != c:
            # What a backslash escapes may be anything but the end of the line.
            if text[end] == u"\\":
                end += 1
                if end >= size or text[end] == u"\n":
                    return text, []
            elif text[end] == u"\n" or text[end] == u"\r":
                return text, []
            end += 1
        if end >= size:
            return text, []
        end += 1
        if before != u"[":
            parts.append(text[rest:at])
            parts.append(f'"{OPEN}{len(tokens)}{CLOSE}"')
            tokens.append(text[at:end])
            rest = end
        at = end
    parts.append(text[rest:])
    return "".join(parts), tokens
