"""The halves of stream translation for the clouds' own formats: Gemini and Bedrock Converse."""

from libc.string cimport memchr, memcmp

from headgate_engine.llm.translate.counts cimport converse_usage, gemini_usage
from headgate_engine.llm.translate.readers cimport (
    EventReader, a_key, a_list, a_text, an_object, error_text, first_number, is_first, loads, text_or_none)
from headgate_engine.llm.translate.fault_kinds cimport kind_of
from headgate_engine.llm.translate.stops cimport read_stop
from headgate_engine.llm.translate.writers cimport Writer, dumps
from headgate_engine.peek.delta cimport delta_peek
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.llm.translate.evidence import code_ran, converse_citation, grounding_of
from headgate_engine.llm.translate.readers import PROVIDER_ERROR, Garbage
from headgate_engine.llm.translate.probs import gemini_probs

# Searches that Bedrock runs itself.
cdef frozenset SEARCHES = frozenset(("web_search", "nova_grounding"))

cdef extern from "<string.h>" nogil:
    void* memmem(const void* haystack, size_t n, const void* needle, size_t m)


cdef class GeminiReader(EventReader):
    """streamGenerateContent."""

    def __cinit__(self):
        self.peek = delta_peek("gemini")
        self.spoken = ByteBuffer()
        self.last_usage = ByteBuffer()

    cdef bint _first(self, const char* data) noexcept:
        return first_number(data, self.peek)

    cdef bint _plain(self, const char* name, Py_ssize_t name_len, const char* data, Py_ssize_t n) except -1:
        if not EventReader._plain(self, name, name_len, data, n):
            return False
        self._spoke(data + self.peek.start, self.peek.stop - self.peek.start)
        if self.peek.usage_stop:
            self._counts(data + self.peek.usage_start, self.peek.usage_stop - self.peek.usage_start)
        return True

    cdef int _spoke(self, const char* p, Py_ssize_t n) except -1:
        """Keep a text that is a JSON string, quotes included."""
        cdef bytes text
        if memchr(p, 92, n) == NULL:
            return self.spoken.append(p + 1, n - 2)
        text = (<str>loads(p[:n])).encode("utf-8", "replace")
        return self.spoken.append(text, len(text))

    cdef int _counts(self, const char* p, Py_ssize_t n) except -1:
        """Counts grow along the stream: the last ones are the totals, and those alone are read."""
        if memmem(p, n, b'TokenCount"', 11) != NULL:
            self.last_usage.clear()
            self.last_usage.append(p, n)
        return 0

    cdef int count(self) except -1:
        if self.last_usage.length:
            self._count(loads(self.last_usage.take()))
        return 0

    cdef int _count(self, object usage) except -1:
        self.writer.usage = gemini_usage(usage) or self.writer.usage
        return 0

    cdef int _event(self, str name, object event) except -1:
        cdef Writer out = self.writer
        self.count()
        if name == "[DONE]":
            return out.finish()
        if isinstance(event, list) and len(event) == 1:
            event = event[0]
        if not isinstance(event, dict):
            raise Garbage("an event is not an object")
        if event.get("error") is not None:
            error = event["error"]
            word = text_or_none(error, "status") or None
            code = error.get("code") if isinstance(error, dict) else None
            return self._failed(kind_of(word, None, 0), code if word is None and type(code) is int else word,
                                error_text(error, PROVIDER_ERROR))
        usage = event.get("usageMetadata")
        if usage is not None:
            self._count(usage)
        if not out.started:
            self.response_id = text_or_none(event, "responseId")
            out.start(self.response_id, text_or_none(event, "modelVersion"))
        candidates = a_list(event, "candidates")
        if not candidates:
            if text_or_none(event.get("promptFeedback"), "blockReason"):
                self.stopped = True
                out.stop("filter", None)
            return 0
        candidate = candidates[0]
        if not isinstance(candidate, dict):
            raise Garbage("a candidate is not an object")
        if not is_first(candidate):
            return 0
        content = an_object(candidate, "content")
        parts = None if content is None else a_list(content, "parts")
        if parts is not None:
            for part in parts:
                if not isinstance(part, dict):
                    raise Garbage("a part is not an object")
                self._part(part)
        if "groundingMetadata" in candidate or "citationMetadata" in candidate:
            self._ground(candidate)
        if out.probs_wanted and "logprobsResult" in candidate:
            out.probs(gemini_probs(candidate["logprobsResult"]))
        reason = candidate.get("finishReason")
        if isinstance(reason, str) and reason:
            self.stopped = True
            self._tell_code(None)
            out.stop(read_stop("gemini", reason), None)
        return 0

    cdef int _tell_code(self, dict result) except -1:
        """Tell of code that has run."""
        if self.code is not None:
            self.writer.ran(code_ran("", text_or_none(self.code, "language"), text_or_none(self.code, "code"), result))
            self.code = None
        return 0

    cdef int _ground(self, dict candidate) except -1:
        """Tell what the text rests on, once: some chunks repeat it."""
        cdef Writer out = self.writer
        if self.grounded:
            return 0
        citations, search = grounding_of(candidate, self.spoken.data[:self.spoken.length], "")
        self.grounded = bool(citations)
        for citation in citations:
            out.cite(citation)
        if self.grounded:
            out.ran(search)
        return 0

    cdef int _part(self, dict part) except -1:
        cdef Writer out = self.writer
        cdef str text = a_text(part, "text")
        if text:
            if part.get("thought") is True:
                out.thinking(text)
            else:
                spoken = text.encode("utf-8", "replace")
                self.spoken.append(spoken, len(spoken))
                out.text(text)
        shown = part.get("inlineData")
        if shown is not None:
            kind = text_or_none(shown, "mimeType")
            if kind.startswith("image/"):
                out.image(f"data:{kind};base64,{text_or_none(shown, 'data')}")
            elif kind.startswith("audio/"):
                out.sound(kind, text_or_none(shown, "data"))
            else:
                out.untold = True
        if "executableCode" in part:
            self._tell_code(None)
            self.code = an_object(part, "executableCode")
        if "codeExecutionResult" in part:
            self._tell_code(an_object(part, "codeExecutionResult"))
        call = an_object(part, "functionCall")
        if call is not None:
            id = text_or_none(call, "id") or f"call_{self.response_id or out.ident}_{self.calls}"
            signature = text_or_none(part, "thoughtSignature")
            if signature:
                # The client sends the id back, and with it what the provider wants to see again.
                id = f"{id}__thought__{signature}"
            out.tool(self.calls, id, a_text(call, "name") or "")
            out.arguments(self.calls, dumps(call.get("args") or {}).decode())
            out.close(self.calls)
            self.calls += 1
        return 0


cdef class ConverseReader(EventReader):
    """ConverseStream."""

    def __cinit__(self):
        self.peek = delta_peek("converse")
        self.cited = []

    cdef bint _plain(self, const char* name, Py_ssize_t name_len, const char* data, Py_ssize_t n) except -1:
        if name_len != 17 or memcmp(name, b"contentBlockDelta", 17) != 0:
            return False
        return EventReader._plain(self, name, name_len, data, n)

    cdef int _event(self, str name, object event) except -1:
        cdef Writer out = self.writer
        if not isinstance(event, dict):
            raise Garbage("an event is not an object")
        if name == "contentBlockDelta":
            return self._delta(event)
        if name == "contentBlockStart":
            start = an_object(event, "start") or {}
            tool = an_object(start, "toolUse")
            # Tools of another type are the vendor's own, which it runs itself.
            if tool is not None and tool.get("type") is None:
                out.tool(a_key(event, "contentBlockIndex"), a_text(tool, "toolUseId"), a_text(tool, "name") or "")
            elif tool is not None and text_or_none(tool, "name") not in SEARCHES:
                out.untold = True
            return 0
        if name == "contentBlockStop":
            for citation in self.cited:
                out.cite(converse_citation(citation, self.block_from, out.said))
            self.cited.clear()
            self.block_from = out.said
            return out.close(a_key(event, "contentBlockIndex"))
        if name == "messageStart":
            return out.start("", "")
        if name == "messageStop":
            self.stopped = True
            return out.stop(read_stop("converse", event.get("stopReason")), None)
        if name == "metadata":
            out.usage = converse_usage(event.get("usage")) or out.usage
            out.service_tier = text_or_none(an_object(event, "serviceTier"), "type") or None
            # It is the last event of the stream.
            return out.finish() if self.stopped else 0
        if name is not None and (name.endswith("Exception") or "message" in event):
            return self._failed(kind_of(name, None, 0), name, text_or_none(event, "message") or name)
        return 0

    cdef int _delta(self, dict event) except -1:
        cdef Writer out = self.writer
        cdef dict delta = an_object(event, "delta")
        if delta is None:
            raise Garbage("a delta is missing")
        if "text" in delta:
            return out.text(a_text(delta, "text"))
        if "toolUse" in delta:
            return out.arguments(a_key(event, "contentBlockIndex"), a_text(an_object(delta, "toolUse") or {}, "input"))
        if "citation" in delta:
            self.cited.append(delta["citation"])
            return 0
        reasoning = an_object(delta, "reasoningContent")
        if reasoning is not None:
            out.thinking(a_text(reasoning, "text"))
            out.signature(a_text(reasoning, "signature"))
            if reasoning.get("redactedContent") is not None:
                out.redacted(a_text(reasoning, "redactedContent"))
        return 0
