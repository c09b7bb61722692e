"""Credentials of LLM providers; see provider.pxd."""

import json

from headgate_engine.context.headers cimport SPAN_SENSITIVE, MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.plan.step cimport CONTINUE, Step


# Types of content parts with pictures, in the formats of clients.
PICTURES = frozenset(("image", "image_url", "input_image", "computer_screenshot"))


def shows_pictures(bytes body not None):
    """Return whether a request of chat completions, Messages or Responses has pictures, also in tool results."""
    if b"image" not in body and b"screenshot" not in body:
        return False
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and (_pictured(told.get("messages")) or _pictured(told.get("input")))


cdef bint _pictured(object found) except -1:
    if isinstance(found, list):
        for one in <list>found:
            if _pictured(one):
                return True
    elif isinstance(found, dict):
        kind = (<dict>found).get("type")
        if isinstance(kind, str) and kind in PICTURES:
            return True
        return _pictured((<dict>found).get("content")) or _pictured((<dict>found).get("output"))
    return False


cdef tuple fields_of(pairs):
    return tuple((name.lower().encode("ascii"), value.encode("latin-1")) for name, value in pairs)


cdef class ProviderStep(Step):
    def __init__(self, header=None, *, starting="", sparing="", only=(None, None), missing=(), pictured=()):
        self.name = "providerAuth"
        self.header = None if header is None else header.lower().encode("ascii")
        self.starting, self.sparing = starting.encode(), sparing.encode()
        formats, spared_path = only
        self.formats = None if formats is None else frozenset(formats)
        self.spared_path = None if spared_path is None else spared_path.encode()
        self.missing, self.pictured = fields_of(missing), fields_of(pictured)

    cdef int run(self, RequestContext ctx) except -1:
        cdef MessageHead head = ctx.head
        cdef tuple fields = self.missing
        cdef bytes name, value
        if self.header is not None and (self.formats is None or ctx.llm is None
                                        or (<LlmCall>ctx.llm).format_route.upstream in self.formats) and (
                self.spared_path is None or self.spared_path not in head.data[head.target_off:head.target_off + head.path_len]):
            self._move(head)
        if self.pictured and ctx.body and shows_pictures(ctx.body):
            fields += self.pictured
        for name, value in fields:
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


cdef class SubprotocolKeyStep(Step):
    """The prefix is that of OpenAI's own clients (https://platform.openai.com/docs/guides/realtime-websocket)."""

    def __cinit__(self):
        self.name = "clientKey"

    cdef int run(self, RequestContext ctx) except -1:
        cdef MessageHead head = ctx.head
        cdef bytes name = b"sec-websocket-protocol"
        cdef int at
        at = head.find(name, len(name), 0)
        if at < 0:
            return CONTINUE
        offered = []
        while at >= 0:
            told = head.data[head.spans[at].value_off:head.spans[at].value_off + head.spans[at].value_len]
            offered += [word.strip() for word in told.split(b",")]
            at = head.find(name, len(name), at + 1)
        kept = [word for word in offered if not word.lower().startswith(b"openai-insecure-api-key.")]
        if len(kept) < len(offered):
            head.drop_field(name, len(name))
            value = b", ".join(word for word in kept if word)
            if value:
                head.add_field(name, len(name), value, len(value))
        return CONTINUE
