# cython: boundscheck=False
"""Answers whose ids are sealed; see id_tap.pxd. boundscheck is off: the scan stays within the bytes that came.

A string is an id when it stands at a name of ids (`id`, `file_id`, `file_ids`, `training_file`) and begins as the vendor's
ids do; which those are is known to who seals. Text that only looks like JSON stands in strings, where its quotes are escaped.
"""

import re

from libc.string cimport memcmp

from headgate_engine.context.headers cimport H_CONTENT_ENCODING, H_CONTENT_LENGTH, MessageHead
from headgate_engine.context.media cimport media_type_is
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

# Where a new call of a browser is told (https://platform.openai.com/docs/guides/realtime-webrtc).
cdef bytes location = b"location"
# Where the pieces of a file go at Google (https://ai.google.dev/api/files).
cdef bytes upload_url = b"x-goog-upload-url"
cdef bytes control_url = b"x-goog-upload-control-url"
SEGMENT = re.compile(rb"[^/?#]+")
# Paths of Google's, whatever the version of its API.
GOOGLE = re.compile(rb"(?:/upload)?/v1(?:beta|alpha)\d*/|/upload/v1/|/v1/(?:files|cachedContents)\b")


cdef IdTap id_tap(ResponseTap inner, object ids, bytes place, bytes prefix, bytes strip):
    cdef IdTap tap = IdTap.__new__(IdTap)
    tap.inner, tap.ids, tap.place, tap.prefix, tap.strip = inner, ids, place, prefix, strip
    return tap


cdef bytes led(bytes address, bytes origin, bytes prefix, bytes strip):
    """The address at the gateway without the prefix of the provider's paths, which goes in front of what clients ask for."""
    cdef bytes start = origin + prefix
    if prefix == strip or not address.startswith(start + b"/"):
        return address
    return origin + strip + address[len(start):]


cdef bytes origin_of(RequestContext ctx):
    """Scheme and authority of the gateway, as the client has them. A proxy in front may have ended TLS."""
    cdef MessageHead head = ctx.head
    secure = ctx.secure or head.get("x-forwarded-proto") == "https"
    return (b"https://" if secure else b"http://") + head.data[ctx.host_off:ctx.host_off + ctx.host_len]


cdef bint of_ids(const char* name, int n, bint google) noexcept nogil:
    """Whether a name is that of an id, of a list of ids, or of an address with one: `id`, `..._id`, `..._ids`, `..._file`,
    `..._files`, `results_url`; at Google `name`, `uri`, `...Uri`, `...File`, `fileName` and `cachedContent`."""
    if n == 2:
        return memcmp(name, b"id", 2) == 0
    if google and (n == 4 and memcmp(name, b"name", 4) == 0 or n == 3 and memcmp(name, b"uri", 3) == 0
                   or n > 3 and memcmp(name + n - 3, b"Uri", 3) == 0
                   or n > 4 and memcmp(name + n - 4, b"File", 4) == 0 or n == 8 and memcmp(name, b"fileName", 8) == 0
                   or n == 13 and memcmp(name, b"cachedContent", 13) == 0):
        return True
    if n == 11 and memcmp(name, b"results_url", 11) == 0:
        return True
    return (n > 3 and memcmp(name + n - 3, b"_id", 3) == 0 or n > 4 and memcmp(name + n - 4, b"_ids", 4) == 0
            or n > 5 and memcmp(name + n - 5, b"_file", 5) == 0 or n > 6 and memcmp(name + n - 6, b"_files", 6) == 0)


cdef class IdScanner:
    def __cinit__(self):
        self.kept = ByteBuffer()
        self.name_len = -1

    cdef int feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        cdef Py_ssize_t i, start = 0
        cdef char c
        for i in range(n):
            c = p[i]
            if self.quoted:
                if c == 10:
                    self.quoted = self.escaped = False           # no string has a line end: it was none
                elif self.escaped:
                    self.escaped = False
                elif c == 92:
                    self.escaped = True
                elif c == 34:
                    self.quoted = False
                    if self.keeps:
                        self.kept.append(p + start, i - start)
                        self._value(out)
                        start = i
                        continue
                if self.keeps:
                    if not self.quoted or self.kept.length + i - start > MAX_ID:
                        out.append(self.kept.data, self.kept.length)
                        self.kept.clear()
                        self.keeps = False
                        self.name_len = -1
                elif self.quoted and self.name_len >= 0:
                    if self.name_len < MAX_NAME:
                        self.name[self.name_len] = c
                        self.name_len += 1
                    else:
                        self.name_len = -1
                continue
            if c == 34:
                self.quoted = True
                self.keeps = self.names_id or self.in_list
                if self.keeps:
                    out.append(p + start, i + 1 - start)
                    start = i + 1
                    self.names_id = False
                self.name_len = 0
            elif c == 58:
                self.names_id = self.name_len > 0 and of_ids(self.name, self.name_len, self.google)
                self.name_len = -1
            elif c == 91:
                self.in_list = self.names_id
                self.names_id = False
            elif c == 93:
                self.in_list = False
            elif c == 123 or c == 125:
                self.names_id = self.in_list = False
            elif c == 44:
                self.names_id = False
        if self.keeps and self.quoted:
            return self.kept.append(p + start, n - start)
        return out.append(p + start, n - start)

    cdef int _value(self, ByteBuffer out) except -1:
        """Passes the string that was kept on, sealed if it is an id."""
        cdef bytes value = self.kept.data[:self.kept.length]
        cdef bytes sealed = self.ids.seal(value, self.place, self.origin)
        self.kept.clear()
        self.keeps = False
        if sealed is None:
            sealed = value
        elif self.origin is not None and sealed.startswith(self.origin):
            sealed = led(sealed, self.origin, self.prefix, self.strip)
        return out.append(sealed, len(sealed))

    cdef int end(self, ByteBuffer out) except -1:
        out.append(self.kept.data, self.kept.length)
        self.kept.clear()
        self.keeps = False
        return 0


cdef class IdTap(ResponseTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        if self.inner is not None and not self.inner.begin(ctx, head):
            self.inner = None
        if 200 <= head.status < 300:
            self._location(head)
            origin = origin_of(ctx)
            self._uploads(head, upload_url, len(upload_url), origin)
            self._uploads(head, control_url, len(control_url), origin)
            if (media_type_is(head, b"application/json", 16) or media_type_is(head, b"text/event-stream", 17)) and (
                    head.find_id(H_CONTENT_ENCODING, 0) < 0):
                self.scanner = IdScanner.__new__(IdScanner)
                self.scanner.ids, self.scanner.place, self.scanner.origin = self.ids, self.place, origin
                self.scanner.prefix, self.scanner.strip = self.prefix, self.strip
                self.scanner.google = GOOGLE.match(
                    ctx.head.data[ctx.target_off:ctx.target_off + ctx.target_len]) is not None
                self.piece = ByteBuffer()
                head.drop_id(H_CONTENT_LENGTH)
        self._mirror()
        return self.inner is not None or self.scanner is not None

    cdef int _location(self, MessageHead head) except -1:
        cdef bytes found, sealed
        if head.find(location, len(location), 0) < 0:
            return 0
        found = head.get("location").encode("latin-1")
        sealed = SEGMENT.sub(lambda one: self.ids.seal(one[0], self.place, None) or one[0], found)
        head.drop_field(location, len(location))
        return head.add_field(location, len(location), sealed, len(sealed))

    cdef int _uploads(self, MessageHead head, const char* name, Py_ssize_t n, bytes origin) except -1:
        """Leads what a client uploads in pieces through the gateway, to the same account."""
        cdef bytes found, sealed
        if head.find(name, n, 0) < 0:
            return 0
        found = head.get(name[:n].decode()).encode("latin-1")
        sealed = led(self.ids.upload(found, self.place, origin), origin, self.prefix, self.strip)
        head.drop_field(name, n)
        return head.add_field(name, n, sealed, len(sealed))

    cdef int _mirror(self) except -1:
        """Shows what the inner tap shows."""
        cdef ResponseTap inner = self.inner
        if inner is not None:
            self.rewrites, self.whole, self.streaming, self.limit = inner.rewrites, inner.whole, inner.streaming, inner.limit
            self.ready, self.refused, self.done, self.cut = inner.ready, inner.refused, inner.done, inner.cut
            self.fault, self.reply, self.waits = inner.fault, inner.reply, inner.waits
            self.spoken, self.shown = inner.spoken, inner.shown
        if self.scanner is not None:
            self.rewrites = True
        return 0

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        cdef bint changed
        if self.scanner is None:
            changed = self.inner.feed(p, n, out)
            self._mirror()
            return changed
        if self.inner is not None and self.inner.feed(p, n, self.piece):
            self.scanner.feed(self.piece.data, self.piece.length, out)
            self.piece.clear()
        else:
            self.scanner.feed(p, n, out)
        self._mirror()
        if self.done or self.cut or self.fault is not None:
            self.scanner.end(out)
        return True

    cdef int settle(self, object found, ByteBuffer out) except -1:
        if self.scanner is None:
            self.inner.settle(found, out)
        else:
            self.inner.settle(found, self.piece)
            self.scanner.feed(self.piece.data, self.piece.length, out)
            self.piece.clear()
        self._mirror()
        return 0

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        if self.scanner is None:
            self.inner.finish(ctx, out)
            self._mirror()
            return 0
        if self.inner is not None:
            self.inner.finish(ctx, self.piece)
            self.scanner.feed(self.piece.data, self.piece.length, out)
            self.piece.clear()
        self._mirror()
        return self.scanner.end(out) if self.waits is None else 0

    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1:
        cdef bint told
        if self.inner is None:
            return False
        if self.scanner is not None:
            self.scanner.end(out)
        told = self.inner.fail(ctx, detail, out)
        self._mirror()
        return told

    cdef Reply refusal(self, RequestContext ctx):
        return None if self.inner is None else self.inner.refusal(ctx)

    cdef int left(self) except -1:
        return 0 if self.inner is None else self.inner.left()
