"""Answers to A2A calls; see answer.pxd. They go on as they come, whatever is in them; streams of events are not looked
at."""

from libc.stdint cimport int64_t

from headgate_engine.context.headers cimport H_CONTENT_ENCODING, MessageHead
from headgate_engine.context.media cimport media_type_is
from headgate_engine.context.request cimport RequestContext
from headgate_engine.peek.agent cimport OutcomePeek
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.steps.a2a cimport note
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.coding cimport coding_of, decoded

from headgate_engine.peek.json import PeekError
from headgate_engine.wire.coding import CodingError


cdef AnswerTap answer_tap(bint bare, int64_t limit):
    cdef AnswerTap tap = AnswerTap.__new__(AnswerTap)
    tap.bare, tap.limit = bare, limit
    return tap


cdef class AnswerTap(ResponseTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        if not (media_type_is(head, b"application/json", 16) or media_type_is(head, b"application/a2a+json", 20)
                or media_type_is(head, b"application/problem+json", 24)):
            return False
        if head.content_length > self.limit:
            return False
        if head.find_id(H_CONTENT_ENCODING, 0) >= 0:
            self.coding = coding_of(head.get("content-encoding"))
            if self.coding == "":
                return False
        self.failed = self.bare and head.status >= 400
        self.kept = ByteBuffer()
        return True

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        if self.kept is None:
            return False
        if self.kept.length + n > self.limit:
            self.kept = None
        else:
            self.kept.append(p, n)
        return False

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        cdef OutcomePeek peek
        cdef bytes text
        if self.kept is None:
            return 0
        text = self.kept.take()
        peek = OutcomePeek.__new__(OutcomePeek)
        peek.look(self.bare)
        try:
            if self.coding is not None:
                text = decoded(self.coding, text, self.limit)
            peek.scan(text, len(text))
        except (CodingError, PeekError):
            return 0                     # it is for the client to judge
        for key, value in peek.fields_of(self.failed):
            note(ctx, <str>key, value)
        return 0

    cdef int left(self) except -1:
        return 0
