"""The client's half of stream translation for generateContent (https://ai.google.dev/api/generate-content)."""

from headgate_engine.llm.translate.counts cimport UsageCounts
from headgate_engine.llm.translate.evidence cimport Citation, RanTool
from headgate_engine.llm.translate.fault_kinds cimport kind_of
from headgate_engine.llm.translate.readers cimport loads
from headgate_engine.llm.translate.stops cimport write_stop
from headgate_engine.llm.translate.writers cimport (
    BLOCK_SIGNATURE, BLOCK_TEXT, BLOCK_THINKING, BlockKind, OpenTool, Writer, dumps)
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.llm.translate.probs import gemini_result

# Stands between the id of a tool call and the signature of the thought that led to it (dialect.llm.idents).
cdef str THOUGHT = "__thought__"
cdef str CODE = "code_execution"
cdef frozenset RUNS = frozenset((CODE, "bash_code_execution"))
cdef str SEARCH = "web_search"
# Google's status words for kinds of errors, with their numbers; any other kind is INTERNAL.
cdef dict STATUSES = {
    "invalid_request_error": (400, "INVALID_ARGUMENT"), "authentication_error": (401, "UNAUTHENTICATED"),
    "permission_error": (403, "PERMISSION_DENIED"), "not_found_error": (404, "NOT_FOUND"),
    "request_too_large": (400, "INVALID_ARGUMENT"), "rate_limit_error": (429, "RESOURCE_EXHAUSTED"),
    "overloaded_error": (503, "UNAVAILABLE"), "timeout_error": (504, "DEADLINE_EXCEEDED"),
}


def gemini_usage_of(UsageCounts usage not None):
    """`usageMetadata` of a response."""
    found = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": max(usage.output - usage.reasoning, 0),
        "totalTokenCount": max(usage.total, usage.input + usage.output),
    }
    if usage.cached:
        found["cachedContentTokenCount"] = usage.cached
    if usage.reasoning:
        found["thoughtsTokenCount"] = usage.reasoning
    return found


def function_call(str id not None, str name not None, str arguments not None):
    """The part of a tool call."""
    cdef dict part
    ident, _, signature = id.partition(THOUGHT)
    given = {}
    if arguments.strip():
        try:
            given = loads(arguments)
        except ValueError:
            given = {"input": arguments}
        if not isinstance(given, dict):
            given = {"input": given}
    part = {"functionCall": {"id": ident, "name": name, "args": given}}
    if signature:
        part["thoughtSignature"] = signature
    return part


def ran_parts(RanTool tool not None):
    """The parts of code that a vendor has run; commands of a shell are of no language that Google knows."""
    if tool.name not in RUNS:
        return []
    code = tool.input.get("code" if tool.name == CODE else "command")
    language = "PYTHON" if tool.name == CODE else "LANGUAGE_UNSPECIFIED"
    return [
        {"executableCode": {"language": language, "code": code if isinstance(code, str) else dumps(tool.input).decode()}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED" if tool.failed else "OUTCOME_OK", "output": tool.output}},
    ]


def grounding(citations, tools, str text not None):
    """`groundingMetadata` of a text."""
    cdef GeminiWriter writer = GeminiWriter("", "", 0, {}, {"wrap": None})
    writer.pieces.append(text)
    for tool in tools:
        writer._found(<RanTool?>tool)
    for citation in citations:
        writer._cited(<Citation?>citation)
    return writer._grounding()


cdef class GeminiWriter(Writer):
    """Events without names. A tool call is emitted when it is complete."""

    def __cinit__(self):
        self.chunks = []
        self.supports = []
        self.queries = []
        self.pieces = []
        self.places = {}
        self.tokens = []
        self.answering = ""

    cdef int configure(self, dict extra) except -1:
        self.wrap = extra["wrap"]
        return 0

    cdef int _begin(self, str id, str model) except -1:
        cdef bytes rest
        self.id = id if id else self.ident
        self.answering = model
        rest = dumps({"modelVersion": model, "responseId": self.id})
        self.rest = b'],"role":"model"},"index":0}],' + rest[1:] + b"\n\n"
        return 0

    cdef int _part(self, bytes part) except -1:
        self._ensure_started()
        self.out.append(b'data: {"candidates":[{"content":{"parts":[', 42)
        self._put(part)
        return self._put(self.rest)

    cdef int _say(self, BlockKind kind, const char* p, Py_ssize_t n, str delta) except -1:
        cdef ByteBuffer out = self.out
        self._ensure_started()
        if kind == BLOCK_SIGNATURE:
            return self._signed(self.wrap(delta))
        out.append(b'data: {"candidates":[{"content":{"parts":[{"text":', 50)
        out.append(p, n)
        if kind == BLOCK_THINKING:
            out.append(b',"thought":true}', 16)
        else:
            out.append_byte(125)
            if kind == BLOCK_TEXT:
                self.pieces.append(p[1:n - 1].decode("utf-8") if delta is None else delta)
        return self._put(self.rest)

    cdef int _signed(self, str signature) except -1:
        return self._part(dumps({"text": "", "thought": True, "thoughtSignature": signature}))

    cdef int _redact(self, str data) except -1:
        return self._signed(self.wrap(data or "", True))

    cdef int _probs(self, list tokens) except -1:
        self.tokens += tokens
        return 0

    cdef int _image(self, str url) except -1:
        head, _, data = url.partition(";base64,")
        if data:
            return self._part(dumps({"inlineData": {"mimeType": head[5:], "data": data}}))
        return self._part(dumps({"fileData": {"mimeType": "image/png", "fileUri": url}}))

    cdef int _sound(self, str media_type, str data) except -1:
        return self._part(dumps({"inlineData": {"mimeType": media_type, "data": data}}))

    cdef int _cite(self, Citation citation) except -1:
        return self._cited(citation)

    cdef int _cited(self, Citation citation) except -1:
        if citation.url:
            self.supports.append((citation.start, citation.end, citation.quoted,
                                  self._chunk_of(citation.url, citation.title)))
        return 0

    cdef int _chunk_of(self, str url, str title) except -1:
        cdef object known = self.places.get(url)
        if known is None:
            known = self.places[url] = len(self.chunks)
            self.chunks.append({"web": {"uri": url, "title": title}})
        return known

    cdef int _ran(self, RanTool tool) except -1:
        parts = ran_parts(tool)
        for part in parts:
            self._part(dumps(part))
        if not parts and tool.name != SEARCH:
            self.untold = True
        return self._found(tool)

    cdef int _found(self, RanTool tool) except -1:
        """Notes a search and what it found."""
        if tool.name != SEARCH:
            return 0
        query = tool.input.get("query")
        if isinstance(query, str) and query:
            self.queries.append(query)
        for url, title in tool.sources:
            self._chunk_of(url, title)
        return 0

    cdef dict _grounding(self):
        """`groundingMetadata`; {} for nothing. Places there are counted in bytes."""
        cdef dict found = {}
        cdef str text
        if self.queries:
            found["webSearchQueries"] = self.queries
        if self.chunks:
            found["groundingChunks"] = self.chunks
        if self.supports:
            text = "".join(self.pieces)
            found["groundingSupports"] = [
                {"segment": {"startIndex": len(text[:start].encode("utf-8", "replace")),
                             "endIndex": len(text[:end].encode("utf-8", "replace")), "text": quoted or text[start:end]},
                 "groundingChunkIndices": [index]}
                for start, end, quoted, index in self.supports]
        return found

    cdef int _open_tool(self, OpenTool tool) except -1:
        return 0

    cdef int _add_arguments(self, OpenTool tool, str delta, const char* p, Py_ssize_t n) except -1:
        tool.parts.append(p[1:n - 1].decode("utf-8") if delta is None else delta)
        return 0

    cdef int sign_tool(self, object key, str signature) except -1:
        cdef OpenTool tool = self.tools.get(key)
        if tool is not None and not tool.closed and signature and THOUGHT not in tool.id:
            tool.id += THOUGHT + signature
        return 0

    cdef int _close_tool(self, OpenTool tool) except -1:
        return self._part(dumps(function_call(tool.id, tool.name, "".join(tool.parts))))

    cdef int _end(self, str stop) except -1:
        if stop == "end" and self.refused:
            stop = "filter"
        candidate = {"content": {"parts": [{"text": ""}], "role": "model"}, "index": 0,
                     "finishReason": write_stop("gemini", stop)}
        found = self._grounding()
        if found:
            candidate["groundingMetadata"] = found
        if self.tokens:
            candidate["logprobsResult"] = gemini_result(self.tokens)
        event = {"candidates": [candidate]}
        if self.usage is not None:
            event["usageMetadata"] = gemini_usage_of(self.usage)
        self.out.append(b"data: ", 6)
        self._put(dumps({**event, "modelVersion": self.answering, "responseId": self.id}))
        return self.out.append(b"\n\n", 2)

    cdef int _tell_fault(self, str kind, str message) except -1:
        code, status = STATUSES.get(kind_of(kind, self.fault_code, self.fault_status), (500, "INTERNAL"))
        if self.fault_status == 503:
            code, status = 503, "UNAVAILABLE"
        self.out.append(b"data: ", 6)
        self._put(dumps({"error": {"code": code, "message": message, "status": status}}))
        return self.out.append(b"\n\n", 2)
