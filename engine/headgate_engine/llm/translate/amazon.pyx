"""The client's half of stream translation for Bedrock's ConverseStream
(https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html).

Only blocks of tools and pictures have a start; deltas of other blocks begin them.
"""

from headgate_engine.llm.eventstream cimport append_frame
from headgate_engine.llm.translate.counts cimport UsageCounts
from headgate_engine.llm.translate.evidence cimport Citation
from headgate_engine.llm.translate.fault_kinds cimport kind_of
from headgate_engine.llm.translate.stops cimport write_stop
from headgate_engine.llm.translate.writers cimport (
    BLOCK_TEXT, BLOCK_THINKING, BlockKind, OpenTool, dumps)
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.llm.eventstream import header_block
from headgate_engine.llm.translate.evidence import converse_citation_of

# Exceptions by the kind of an error; others are `internalServerException`.
cdef dict EXCEPTIONS = {
    "rate_limit_error": "throttlingException",
    "overloaded_error": "serviceUnavailableException",
    **dict.fromkeys(("invalid_request_error", "authentication_error", "permission_error", "not_found_error",
                     "request_too_large", "billing_error"), "validationException"),
}
# What clients get when the provider's stream breaks.
BROKEN = "modelStreamErrorException"
# Formats of pictures that the vendor's clients know.
PICTURES = frozenset(("png", "jpeg", "gif", "webp"))
TIERS = frozenset(("priority", "default", "flex"))


cdef bytes event_head(str name):
    return header_block({":event-type": name, ":content-type": "application/json", ":message-type": "event"})


cdef bytes MESSAGE_START = event_head("messageStart")
cdef bytes BLOCK_START = event_head("contentBlockStart")
cdef bytes BLOCK_DELTA = event_head("contentBlockDelta")
cdef bytes BLOCK_STOP = event_head("contentBlockStop")
cdef bytes MESSAGE_STOP = event_head("messageStop")
cdef bytes METADATA = event_head("metadata")


def converse_usage_of(UsageCounts usage not None):
    """`usage` of a reply, whose input leaves out what came from a cache or went into one."""
    fresh = usage.input - usage.cached - usage.written
    return {
        "inputTokens": fresh if fresh > 0 else 0,
        "outputTokens": usage.output,
        "totalTokens": max(usage.total, usage.input + usage.output),
        "cacheReadInputTokens": usage.cached,
        "cacheWriteInputTokens": usage.written,
    }


def exception_of(str kind, str code, int status):
    """The exception for an error."""
    if kind is None:
        return BROKEN
    if status == 503:
        return "serviceUnavailableException"
    if status == 502:
        return BROKEN
    return EXCEPTIONS.get(kind_of(kind, code, status), "internalServerException")


# By what is said: the block it stands in, and what stands around the delta.
cdef BlockKind[4] blocks
blocks[:] = [BLOCK_TEXT, BLOCK_TEXT, BLOCK_THINKING, BLOCK_THINKING]
cdef tuple deltas = ((b'{"text":', b"}"), (b'{"text":', b"}"), (b'{"reasoningContent":{"text":', b"}}"),
                     (b'{"reasoningContent":{"signature":', b"}}"))


cdef class ConverseWriter(BlockWriter):
    """Frames of ConverseStream."""

    def __cinit__(self):
        self.piece = ByteBuffer()

    cdef int configure(self, dict extra) except -1:
        self.latency = extra["latency"]
        self.mask = extra["mask"]
        return 0

    cdef int _frame(self, bytes head, object payload) except -1:
        cdef bytes told = dumps(payload)
        return append_frame(self.out, head, told, len(told))

    cdef int _begin(self, str id, str model) except -1:
        self.id = id if id else self.ident
        return self._frame(MESSAGE_START, {"role": "assistant"})

    cdef int _delta(self, Py_ssize_t index, bytes member, const char* p, Py_ssize_t n, bytes end) except -1:
        """Write a delta. p: its text, as JSON."""
        cdef ByteBuffer piece = self.piece
        piece.clear()
        piece.append(b'{"contentBlockIndex":', 21)
        piece.append_uint(<unsigned long long>index)
        piece.append(b',"delta":', 9)
        piece.append(member, len(member))
        piece.append(p, n)
        piece.append(end, len(end))
        piece.append_byte(125)
        return append_frame(self.out, BLOCK_DELTA, piece.data, piece.length)

    cdef int _say(self, BlockKind kind, const char* p, Py_ssize_t n, str delta) except -1:
        cdef tuple around = <tuple>deltas[<int>kind]
        self._open_block(blocks[<int>kind])
        return self._delta(self.index, <bytes>around[0], p, n, <bytes>around[1])

    cdef int _block_opened(self) except -1:
        return 0

    cdef int _block_closed(self) except -1:
        return self._stop_block(self.index)

    cdef int _stop_block(self, Py_ssize_t index) except -1:
        return self._frame(BLOCK_STOP, {"contentBlockIndex": index})

    cdef int _redact(self, str data) except -1:
        cdef bytes told = dumps(self.mask(data or ""))
        self._close_all()
        index = self._next()
        self._delta(index, b'{"reasoningContent":{"redactedContent":', told, len(told), b"}}")
        return self._stop_block(index)

    cdef int _cite(self, Citation citation) except -1:
        cdef bytes told
        # A citation stands for the text of its block.
        if not self.writing or self.kind != BLOCK_TEXT:
            return 0
        told = dumps(converse_citation_of(citation))
        return self._delta(self.index, b'{"citation":', told, len(told), b"}")

    cdef int _image(self, str url) except -1:
        cdef bytes told
        head, _, data = url.partition(";base64,")
        form = head.rpartition("/")[2]
        if not data or form not in PICTURES:
            self.untold = True
            return 0
        self._close_all()
        index = self._next()
        self._frame(BLOCK_START, {"contentBlockIndex": index, "start": {"image": {"format": form}}})
        told = dumps(data)
        self._delta(index, b'{"image":{"source":{"bytes":', told, len(told), b"}}}")
        return self._stop_block(index)

    cdef int _tool_opened(self, OpenTool tool) except -1:
        return self._frame(BLOCK_START, {
            "contentBlockIndex": tool.index, "start": {"toolUse": {"toolUseId": tool.id, "name": tool.name}}})

    cdef int _tell_arguments(self, OpenTool tool, const char* p, Py_ssize_t n) except -1:
        return self._delta(tool.index, b'{"toolUse":{"input":', p, n, b"}}")

    cdef int _tool_closed(self, OpenTool tool) except -1:
        return self._stop_block(tool.index)

    cdef int _end(self, str stop) except -1:
        if stop == "end" and self.refused:
            stop = "filter"
        self._frame(MESSAGE_STOP, {"stopReason": write_stop("converse", stop)})
        told = {"usage": converse_usage_of(UsageCounts() if self.usage is None else self.usage),
                "metrics": {"latencyMs": self.latency()}}
        if self.service_tier in TIERS:
            told["serviceTier"] = {"type": self.service_tier}
        return self._frame(METADATA, told)

    cdef int _tell_fault(self, str kind, str message) except -1:
        name = exception_of(self.fault_kind, self.fault_code, self.fault_status)
        head = header_block({":exception-type": name, ":content-type": "application/json", ":message-type": "exception"})
        return self._frame(head, {"message": message})
