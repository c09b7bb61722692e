"""Credentials of LLM providers; see provider.pxd. Reference: `llm.md` 2.1."""

from headgate_engine.context.headers cimport SPAN_SENSITIVE, MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.plan.step cimport CONTINUE, Step


cdef class ProviderStep(Step):
    def __init__(self, header=None, *, starting="", sparing="", formats=None, missing=()):
        self.name = "providerAuth"
        self.header = None if header is None else header.lower().encode("ascii")
        self.starting, self.sparing = starting.encode(), sparing.encode()
        self.formats = None if formats is None else frozenset(formats)
        self.missing = tuple((name.lower().encode("ascii"), value.encode("latin-1")) for name, value in missing)

    cdef int run(self, RequestContext ctx) except -1:
        cdef MessageHead head = ctx.head
        cdef bytes name, value
        if self.header is not None and (self.formats is None or ctx.llm is None
                                        or (<LlmCall>ctx.llm).lane.upstream in self.formats):
            self._move(head)
        for name, value in self.missing:
            if head.find(name, len(name), 0) < 0:
                head.add_field(name, len(name), value, len(value))
        return CONTINUE

    def _move(self, MessageHead head):
        cdef int at = head.find(b"authorization", 13, 0)
        cdef bytes told
        if at < 0:
            return
        told = head.data[head.spans[at].value_off:head.spans[at].value_off + head.spans[at].value_len]
        if told[:7].lower() != b"bearer ":
            return
        told = told[7:].strip()
        if self.sparing and told.startswith(self.sparing):
            head.drop_field(self.header, len(self.header))
            return
        if not told or not told.startswith(self.starting):
            return
        head.drop_field(b"authorization", 13)
        head.drop_field(self.header, len(self.header))
        head.add_field(self.header, len(self.header), told, len(told))
        head.spans[head.count - 1].flags |= SPAN_SENSITIVE
