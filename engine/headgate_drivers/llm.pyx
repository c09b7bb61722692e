"""Requests and answers of models by their bytes."""

from urllib.parse import unquote

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.llm.content_capture cimport CapturedAnswer
from headgate_engine.llm.edit cimport edit_object
from headgate_engine.llm.estimate cimport prompt_tokens, tokens_in
from headgate_engine.llm.eventstream cimport EventStreamDecoder
from headgate_engine.llm.first_words cimport (
    END_DONE, END_REASON, END_RESPONSE, END_STOP, END_UNKNOWN, frame_shows_words, shows_words)
from headgate_engine.llm.formats cimport azure_target, model_span
from headgate_engine.llm.id_tap cimport IdScanner
from headgate_engine.llm.metered cimport generated_in, metered_tap
from headgate_engine.llm.native cimport NativeTap, usage_of
from headgate_engine.llm.pattern cimport ModelPattern
from headgate_engine.llm.prices cimport Cost, PriceList
from headgate_engine.llm.top_members cimport TopMembers
from headgate_engine.llm.translate.free_input cimport FreeInput
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.steps.virtual_key cimport KeyUse
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

from headgate_engine.llm import native
from headgate_engine.llm.metered import KINDS


def tokens_of(str text not None):
    """Of a text alone."""
    return tokens_in(text)


def generated_tokens(str format not None, bytes events not None):
    """Of output, in events of a stream in a client's format."""
    return generated_in(KINDS[format], events, len(events))


cdef class JudgedTap(ResponseTap):
    """A stream that guards look at: each piece goes on when they have answered, the last one at the end."""
    cdef bytes held

    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        self.rewrites = self.streaming = True
        return True

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        self.held = self.waits = p[:n]
        return True

    cdef int settle(self, object found, ByteBuffer out) except -1:
        self.waits = None
        out.append(self.held, len(self.held))
        return 0

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        out.append(self.held, len(self.held))
        return 0

    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1:
        return False


def judged_stream(str format not None, list pieces not None, KeyUse use not None, int64_t bound):
    """A stream of a request that has reserved `bound` tokens, and whose limits stop it."""
    cdef ByteBuffer out = ByteBuffer()
    cdef bytes piece
    cdef ResponseTap tap = metered_tap(JudgedTap.__new__(JudgedTap), format, use)
    cdef RequestContext ctx = RequestContext.__new__(RequestContext)
    use.bound, use.stops = bound, True
    tap.begin(ctx, MessageHead())
    for piece in pieces[:-1]:
        tap.feed(piece, len(piece), out)
        tap.settle(None, out)
        if tap.fault is not None:
            return out.take(), use.generated, tap.fault
    piece = pieces[-1]
    tap.feed(piece, len(piece), out)
    tap.finish(ctx, out)
    return out.take(), use.generated, tap.fault


def tokens_of_prompt(str format not None, bytes body not None):
    """Of a request in a client format."""
    return prompt_tokens(format, body)


def is_first_words(str format not None, bytes name not None, bytes data not None):
    """Whether an event shows words of the reply; `format` "bedrock": of a frame of that vendor."""
    endings = {"completions": END_DONE, "messages": END_STOP, "responses": END_RESPONSE, "gemini": END_REASON}
    if format == "bedrock":
        return frame_shows_words(name.decode(), data)
    return shows_words(endings[format], name, len(name), data, len(data))


def path_model(str path not None):
    raw = path.encode("utf-8", "surrogateescape")
    span = model_span(raw)
    return None if span is None else unquote(raw[span[0]:span[1]].decode("latin-1"))


def azure_path(bytes path not None, bytes query not None):
    return azure_target(path, query)


def sealed_text(pieces, object ids not None, bytes place not None, bytes origin=None, bint google=False, paths=(b"", b"")):
    cdef IdScanner scanner = IdScanner.__new__(IdScanner)
    cdef ByteBuffer out = ByteBuffer()
    cdef bytes piece
    scanner.ids, scanner.place, scanner.origin, scanner.google = ids, place, origin, google
    scanner.prefix, scanner.strip = paths
    for piece in pieces:
        scanner.feed(piece, len(piece), out)
    scanner.end(out)
    return out.take()


def tap_stream(pieces, str format not None, stream_error, *, bint strip=False):
    cdef NativeTap tap = NativeTap.__new__(NativeTap)
    cdef RequestContext ctx = RequestContext.__new__(RequestContext)
    cdef MessageHead head = MessageHead()
    cdef ByteBuffer out = ByteBuffer()
    cdef bytes piece
    head.status = 200
    head.add("content-type", "text/event-stream")
    tap.strip, tap.stream_error, tap.ending = strip, stream_error, native.ENDINGS.get(format, END_UNKNOWN)
    usage_of(tap, format, True)
    tap.begin(ctx, head)
    for piece in pieces:
        if tap.fault is None:
            tap.feed(piece, len(piece), out)
    if tap.fault is None:
        tap.finish(ctx, out)
    return out.take(), tap.fault, ctx.usage


def free_pieces(list deltas not None):
    cdef FreeInput reader = FreeInput()
    return [reader.feed(delta) for delta in deltas] + [reader.end()]


def price_of(PriceList prices not None, str provider not None, answered, asked, TokenUsage usage not None):
    """The look-up is counted."""
    cdef Cost cost = prices.price(provider.encode(), None if answered is None else answered.encode(),
                                  None if asked is None else asked.encode(), usage, True)
    return None if cost is None else cost.picos()


def add_body(CapturedAnswer answer not None, bytes body not None):
    """All of a whole answer."""
    answer.whole(body)


def add_event(CapturedAnswer answer not None, str name not None, bytes data not None):
    """One event of a stream."""
    answer.event(name, data)


def edit_known(bytes body not None, TopMembers members, dict sets not None, dict defaults not None, removes):
    return edit_object(body, sets, defaults, removes, members)


def common_pattern(ModelPattern one not None, ModelPattern other not None):
    if one.text is None or other.text is None:
        raise TypeError("a pattern has a text")
    return one.meet(other)


def rest_of_frames(EventStreamDecoder decoder not None):
    return decoder.buffer.data[decoder.at:decoder.buffer.length] if decoder.left() else b""
