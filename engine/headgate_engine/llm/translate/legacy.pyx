"""The client's half of stream translation for legacy text completions
(https://platform.openai.com/docs/api-reference/completions). What is no text has no place there.
"""

from headgate_engine.llm.translate.stops cimport write_stop
from headgate_engine.llm.translate.writers cimport BLOCK_REFUSAL, BLOCK_TEXT, BlockKind, OpenTool, Writer, dumps
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.llm.translate.writers import completions_usage_of
from headgate_engine.llm.translate.probs import text_probs


cdef class TextWriter(Writer):
    """text_completion chunks."""

    cdef int configure(self, dict extra) except -1:
        self.include_usage = bool(extra.get("include_usage"))
        self.echoed = extra.get("echo") or ""
        self.offset = len(self.echoed)
        return 0

    cdef int _begin(self, str id, str model) except -1:
        cdef bytes told
        self.id = id if id else "cmpl-" + self.ident
        encoded = dumps({"id": self.id, "object": "text_completion", "created": self.created, "model": model})
        self.head = b"data: " + encoded[:len(encoded) - 1] + b',"choices":['
        if self.echoed:
            told = dumps(self.echoed)
            self._text(told, len(told))
        return 0

    cdef int _text(self, const char* p, Py_ssize_t n) except -1:
        cdef ByteBuffer out = self.out
        self._put(self.head)
        out.append(b'{"text":', 8)
        out.append(p, n)
        return out.append(b',"index":0,"logprobs":null,"finish_reason":null}]}\n\n', 52)

    cdef int _say(self, BlockKind kind, const char* p, Py_ssize_t n, str delta) except -1:
        self._ensure_started()
        return self._text(p, n) if kind == BLOCK_TEXT or kind == BLOCK_REFUSAL else 0

    cdef int _probs(self, list tokens) except -1:
        told = text_probs(tokens, self.offset)
        self.offset += sum([len(one["token"]) for one in tokens])
        self._put(self.head)
        return self._put(b'{"text":"","index":0,"logprobs":' + dumps(told) + b',"finish_reason":null}]}\n\n')

    cdef int _open_tool(self, OpenTool tool) except -1:
        return 0

    cdef int _add_arguments(self, OpenTool tool, str delta, const char* p, Py_ssize_t n) except -1:
        return 0

    cdef int _end(self, str stop) except -1:
        self._put(self.head)
        self._put(b'{"text":"","index":0,"logprobs":null,"finish_reason":"' + write_stop("text", stop).encode() + b'"}]}\n\n')
        if self.include_usage and self.usage is not None:
            self._put(self.head)
            self._put(b'],"usage":' + dumps(completions_usage_of(self.usage)) + b"}\n\n")
        return self._put(b"data: [DONE]\n\n")

    cdef int _tell_fault(self, str kind, str message) except -1:
        error = {"error": {"message": message, "type": kind, "param": None, "code": self.fault_code}}
        return self._put(b"data: " + dumps(error) + b"\n\n")
