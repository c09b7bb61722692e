# cython: boundscheck=False
# Without a check of bounds: a position is compared with `end`, which is at most the length of the text, before it is read.
"""The way most configurations are written, read line by line. What is returned must be what libyaml's events come to; where
that is in doubt, the text is unusual. Columns count from 0 here.
"""

# Deeper documents are read by libyaml, whose reader knows the limit.
cdef enum:
    MAX_DEPTH = 100
    # libyaml wants the end of a key on the same line, within 1024 characters.
    MAX_KEY = 1000


class UnusualYaml(Exception):
    pass


cdef object unusual():
    return UnusualYaml()


cdef inline bint odd(Py_UCS4 c) noexcept nogil:
    """Characters that are a line end to libyaml, that it refuses, or that it may count in its own way."""
    if c < 0x20:
        return c != 10
    if c < 0x7F:
        return False
    return c < 0xA0 or 0xD800 <= c <= 0xDFFF or c == 0x2028 or c == 0x2029 or c == 0xFEFF or c == 0xFFFE or c == 0xFFFF


cdef inline bint starts_plain(Py_UCS4 c) noexcept nogil:
    """Whether a plain scalar may begin with a character, whatever follows."""
    return not (c == 32 or c == 45 or c == 63 or c == 58 or c == 44 or c == 91 or c == 93 or c == 123 or c == 125
                or c == 35 or c == 38 or c == 42 or c == 33 or c == 124 or c == 62 or c == 39 or c == 34 or c == 37
                or c == 64 or c == 96)


cdef class BlockReader:
    cdef bint next_line(self) except -1:
        """Go to the next line with content, and to its first character that is no blank."""
        cdef Py_ssize_t i
        cdef str text = self.text
        while True:
            if self.end >= self.size:
                self.more = False
                self.begin = self.at = self.end = self.size
                return False
            self.begin = self.end + 1 if self.line else 0
            self.line += 1
            i = text.find("\n", self.begin)
            self.end = self.size if i < 0 else i
            i = self.begin
            while i < self.end and text[i] == 32:
                i += 1
            self.at = i
            if i < self.end and text[i] != 35:
                if self._marker():
                    raise unusual()
                self.more = True
                return True

    cdef bint _marker(self) except -1:
        """Whether a document may begin or end on this line."""
        cdef str text = self.text
        cdef Py_ssize_t i = self.begin
        if i >= self.end:
            return False
        return text[i] == 37 or (self.end - i >= 3 and (text[i] == 45 or text[i] == 46)
                                 and text[i + 1] == text[i] and text[i + 2] == text[i])

    cdef int enter(self) except -1:
        self.depth += 1
        self.count += 1
        if self.depth > MAX_DEPTH or self.count > self.most:
            raise unusual()
        return 0

    cdef int leave(self) except -1:
        self.depth -= 1
        return 0

    # -- blocks ------------------------------------------------------------------------------------------------------
    cdef bint _dash(self) except -1:
        return self.text[self.at] == 45 and (self.at + 1 == self.end or self.text[self.at + 1] == 32)

    cdef object line_node(self):
        """The list or map that begins with the present line."""
        cdef Py_ssize_t column = self.at - self.begin
        if self._dash():
            return self.sequence()
        return self.mapped(column)

    cdef object mapped(self, Py_ssize_t column):
        """The map whose first key is next."""
        return self.mapping(column, self.key(), column)

    cdef object sequence(self):
        cdef Py_ssize_t column = self.at - self.begin, line
        cdef list items = []
        node = self.node(items, self.line, column + 1)
        self.enter()
        while True:
            line = self.line
            self.at += 1
            while self.at < self.end and self.text[self.at] == 32:
                self.at += 1
            if self.at == self.end or self.text[self.at] == 35:
                if self.next_line() and self.at - self.begin > column:
                    items.append(self.line_node())
                else:
                    items.append(self.empty(line, column + 1))
            else:
                items.append(self.item(column))
            if not self.more or self.at - self.begin < column:
                break
            if self.at - self.begin > column:
                raise unusual()
            if not self._dash():
                break
        self.leave()
        return node

    cdef object item(self, Py_ssize_t outer):
        """What follows a dash on its line."""
        cdef Py_ssize_t column = self.at - self.begin, start = self.at
        cdef Py_UCS4 c = self.text[self.at]
        cdef str text
        if self._dash():
            return self.sequence()
        if c == 91 or c == 123:
            node = self.flow()
            self.end_line(outer)
            return node
        text = self.scalar()
        if self.at < self.end and self.text[self.at] == 58:
            self.at = start
            return self.mapped(column)
        node = self.scalar_node(text, column)
        self.end_line(outer)
        return node

    cdef object mapping(self, Py_ssize_t column, str key, Py_ssize_t key_column):
        """The map at a column, behind the colon of whose first key the reader stands."""
        cdef dict entries = {}
        cdef Py_ssize_t line, behind
        node = self.node(entries, self.line, column + 1)
        self.enter()
        while True:
            line, behind = self.line, self.at - self.begin
            while self.at < self.end and self.text[self.at] == 32:
                self.at += 1
            if self.at == self.end or self.text[self.at] == 35:
                if self.next_line() and self.at - self.begin > column:
                    value = self.line_node()
                elif self.more and self.at - self.begin == column and self._dash():
                    value = self.sequence()
                else:
                    value = self.empty(line, behind)
            else:
                value = self.value(column)
            if key in entries:
                raise unusual()
            entries[key] = self.entry(line, key_column + 1, value)
            if not self.more or self.at - self.begin < column:
                break
            if self.at - self.begin > column:
                raise unusual()
            key_column = column
            key = self.key()
        self.leave()
        return node

    cdef str key(self):
        """The key that is next; then the reader stands behind its colon."""
        cdef Py_ssize_t start = self.at
        cdef str text
        if self._dash():
            raise unusual()
        text = self.scalar()
        if self.at >= self.end or self.text[self.at] != 58 or self.at - start > MAX_KEY:
            raise unusual()
        if (self.plain and text == "<<") or (self.expand is not None and "$" in text):
            raise unusual()
        self.at += 1
        if self.at < self.end and self.text[self.at] != 32:
            raise unusual()
        self.count += 1
        return self.names.setdefault(text, text)

    cdef object value(self, Py_ssize_t outer):
        """What follows a key on its line."""
        cdef Py_ssize_t column = self.at - self.begin
        cdef Py_UCS4 c = self.text[self.at]
        cdef str text
        if c == 91 or c == 123:
            node = self.flow()
        else:
            if self._dash():
                raise unusual()
            text = self.scalar()
            node = self.scalar_node(text, column)
        self.end_line(outer)
        return node

    cdef int end_line(self, Py_ssize_t outer) except -1:
        """Go to the next line, behind a value that ends here: nothing but a comment follows, and it does not go on."""
        cdef Py_ssize_t start = self.at
        while self.at < self.end and self.text[self.at] == 32:
            self.at += 1
        if self.at < self.end and (self.text[self.at] != 35 or self.at == start):
            raise unusual()
        if self.next_line() and self.at - self.begin > outer:
            raise unusual()
        return 0

    # -- scalars -----------------------------------------------------------------------------------------------------
    cdef str scalar(self):
        """The scalar that is next, on its line; `plain` tells how it was written. The reader stands behind it."""
        cdef Py_ssize_t start = self.at, i, last
        cdef Py_UCS4 c = self.text[self.at]
        cdef str text = self.text
        if c == 39 or c == 34:
            self.plain = False
            return self.quoted(c)
        self.plain = True
        if not starts_plain(c) and not (c == 45 and self.at + 1 < self.end and text[self.at + 1] != 32):
            raise unusual()
        i = last = start
        while i < self.end:
            c = text[i]
            if c == 58 and (i + 1 == self.end or text[i + 1] == 32):
                break
            if c == 35 and text[i - 1] == 32:
                break
            if c != 32:
                last = i + 1
            i += 1
        # A blank in front of the colon of a key is allowed, and rare.
        if i < self.end and text[i] == 58 and last != i:
            raise unusual()
        self.at = last
        return text[start:last]

    cdef str quoted(self, Py_UCS4 mark):
        """The text in quotes that is next."""
        cdef Py_ssize_t start = self.at + 1, i = self.at + 1
        cdef bint special = False
        cdef str text = self.text, found
        cdef Py_UCS4 c
        while True:
            if i >= self.end:
                raise unusual()
            c = text[i]
            if c == mark:
                if mark == 39 and i + 1 < self.end and text[i + 1] == 39:
                    special = True
                    i += 2
                    continue
                break
            if c == 92 and mark == 34:
                special = True
                i += 1
                if i >= self.end or text[i] not in "\"\\/nt":
                    raise unusual()
            i += 1
        self.at = i + 1
        found = text[start:i]
        if not special:
            return found
        return found.replace("''", "'") if mark == 39 else unescaped(found)

    cdef object scalar_node(self, str text, Py_ssize_t column):
        self.count += 1
        node = self.node(self.resolve(text) if self.plain else text, self.line, column + 1)
        if self.expand is not None and "$" in text:
            self.expand(node, text)
        return node

    cdef object empty(self, Py_ssize_t line, Py_ssize_t column):
        """The value that is not there, behind a dash or a colon."""
        self.count += 1
        return self.node(None, line, column + 1)

    # -- lists and maps in brackets ----------------------------------------------------------------------------------
    cdef Py_UCS4 flow_char(self) except? 0:
        """The next character that is no blank, on this line or a later one: in brackets lines may be indented as they like."""
        cdef Py_ssize_t i
        while True:
            while self.at < self.end and self.text[self.at] == 32:
                self.at += 1
            if self.at < self.end and self.text[self.at] != 35:
                return self.text[self.at]
            if self.end >= self.size or (self.at < self.end and self.at > self.begin and self.text[self.at - 1] != 32):
                raise unusual()
            self.begin = self.at = self.end + 1
            self.line += 1
            i = self.text.find("\n", self.begin)
            self.end = self.size if i < 0 else i
            if self._marker():
                raise unusual()

    cdef object flow(self):
        cdef Py_UCS4 c = self.flow_char()
        cdef Py_ssize_t column
        cdef str text
        if c == 91:
            return self.flow_list()
        if c == 123:
            return self.flow_map()
        column = self.at - self.begin
        text = self.flow_scalar()
        return self.scalar_node(text, column)

    cdef object flow_list(self):
        cdef list items = []
        cdef Py_UCS4 c
        node = self.node(items, self.line, self.at - self.begin + 1)
        self.enter()
        self.at += 1
        c = self.flow_char()
        while c != 93:
            items.append(self.flow())
            c = self.flow_char()
            if c == 44:
                self.at += 1
                c = self.flow_char()
                if c == 93:
                    raise unusual()
            elif c != 93:
                raise unusual()
        self.at += 1
        self.leave()
        return node

    cdef object flow_map(self):
        cdef dict entries = {}
        cdef Py_ssize_t line, column, start
        cdef str key
        cdef Py_UCS4 c
        node = self.node(entries, self.line, self.at - self.begin + 1)
        self.enter()
        self.at += 1
        c = self.flow_char()
        while c != 125:
            start, line, column = self.at, self.line, self.at - self.begin
            key = self.flow_scalar()
            if (self.plain and key == "<<") or (self.expand is not None and "$" in key) or key in entries:
                raise unusual()
            if self.at >= self.end or self.text[self.at] != 58 or self.at - start > MAX_KEY:
                raise unusual()
            self.at += 1
            # Behind a key in quotes the value may follow at once, as in JSON without blanks.
            if self.plain and (self.at >= self.end or self.text[self.at] != 32):
                raise unusual()
            self.count += 1
            c = self.flow_char()
            if c == 44 or c == 125:
                raise unusual()
            value = self.flow()
            entries[self.names.setdefault(key, key)] = self.entry(line, column + 1, value)
            c = self.flow_char()
            if c == 44:
                self.at += 1
                c = self.flow_char()
                if c == 125:
                    raise unusual()
            elif c != 125:
                raise unusual()
        self.at += 1
        self.leave()
        return node

    cdef str flow_scalar(self):
        cdef Py_ssize_t start = self.at, i = self.at, last = self.at
        cdef str text = self.text
        cdef Py_UCS4 c = text[self.at]
        if c == 39 or c == 34:
            self.plain = False
            return self.quoted(c)
        self.plain = True
        if not starts_plain(c) and not (c == 45 and self.at + 1 < self.end and text[self.at + 1] not in " ,[]{}"):
            raise unusual()
        while i < self.end:
            c = text[i]
            if c == 44 or c == 93 or c == 125:
                break
            if c == 91 or c == 123 or c == 63:
                raise unusual()
            if c == 58:
                if i + 1 == self.end or text[i + 1] in ",[]{}":
                    raise unusual()
                if text[i + 1] == 32:
                    if last != i:
                        raise unusual()
                    break
            if c == 35 and text[i - 1] == 32:
                break
            if c != 32:
                last = i + 1
            i += 1
        self.at = last
        return text[start:last]


cdef str unescaped(str text):
    """The text in double quotes with its escapes replaced."""
    cdef list parts = []
    cdef Py_ssize_t i = 0, n = len(text)
    cdef Py_ssize_t start = 0
    while i < n:
        if text[i] == 92:
            parts.append(text[start:i])
            parts.append({"n": "\n", "t": "\t"}.get(text[i + 1], text[i + 1]))
            i += 2
            start = i
        else:
            i += 1
    parts.append(text[start:])
    return "".join(parts)


def read_blocks(str text not None, node, entry, resolve, expand, Py_ssize_t most):
    cdef BlockReader reader
    cdef Py_UCS4 c
    for c in text:
        if odd(c):
            raise unusual()
    reader = BlockReader.__new__(BlockReader)
    reader.text = text
    reader.size = len(text)
    reader.node, reader.entry, reader.resolve, reader.expand = node, entry, resolve, expand
    reader.most = most
    reader.names = {}
    if not reader.next_line():
        raise unusual()
    root = reader.line_node()
    if reader.more:
        raise unusual()
    if reader.count > most:
        raise unusual()
    return root
