"""The clients' halves of stream translation whose replies are lists of blocks: Messages and Responses."""

import orjson

from headgate_engine.llm.translate.counts cimport UsageCounts
from headgate_engine.llm.translate.evidence cimport Citation, RanTool
from headgate_engine.llm.translate.fault_kinds cimport kind_of
from headgate_engine.llm.translate.stops cimport write_stop
from headgate_engine.llm.translate.writers cimport (
    BLOCK_REFUSAL, BLOCK_SIGNATURE, BLOCK_TEXT, BLOCK_THINKING, BlockKind, OpenTool, Writer, dumps)
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.llm.translate.evidence import (
    messages_blocks, messages_citation_of, responses_annotation, responses_item)
from headgate_engine.llm.translate.stops import TIERS_FOR_MESSAGES
from headgate_engine.llm.translate.writers import messages_usage_of, responses_usage_of

cdef object fast_loads = orjson.loads

# Codes of a failed response for kinds of errors; others are `server_error`.
cdef dict response_codes = {"rate_limit_error": "rate_limit_exceeded", "invalid_request_error": "invalid_prompt"}


cdef bint is_whole(OpenTool tool) except -1:
    """Whether the arguments of a call are all there."""
    if tool.custom or tool.free:
        return tool.input is not None and tool.input.is_whole()
    if not tool.any:
        return False
    try:
        fast_loads("".join(tool.parts))
    except ValueError:
        return False
    return True


cdef class BlockWriter(Writer):
    """One block at a time: what begins another one ends it. A call of a tool whose arguments are not whole yet goes on,
    since some providers send those of parallel calls by turns: the next ones wait.
    """

    def __cinit__(self):
        self.waiting = []

    cdef int _open_block(self, BlockKind kind) except -1:
        self._ensure_started()
        if self.writing and self.kind == kind and not self.resting:
            return 0
        self._close_all()
        self.writing = True
        self.resting = False
        self.kind = kind
        self.index = self._next()
        return self._block_opened()

    cdef Py_ssize_t _next(self) except -1:
        self.count += 1
        return self.count - 1

    cdef int _close_block(self) except -1:
        if not self.writing:
            return 0
        self.writing = False
        return self._block_closed()

    cdef int _open_tool(self, OpenTool tool) except -1:
        if self.current is not None and not is_whole(self.current):
            tool.waits = True
            self.waiting.append(tool)
            return 0
        self._close_all()
        return self._begin_tool(tool)

    cdef int _begin_tool(self, OpenTool tool) except -1:
        tool.index = self._next()
        tool.waits = False
        self.current = tool
        return self._tool_opened(tool)

    cdef int _add_arguments(self, OpenTool tool, str delta, const char* p, Py_ssize_t n) except -1:
        tool.parts.append(p[1:n - 1].decode("utf-8") if delta is None else delta)
        if tool.waits:
            return 0
        self._tell_arguments(tool, p, n)
        return self._go_on() if self.waiting else 0

    cdef int _close_tool(self, OpenTool tool) except -1:
        if tool.waits:
            return 0
        self.current = None
        self._tool_closed(tool)
        return self._go_on()

    cdef int _go_on(self) except -1:
        """Writes the calls that wait, as far as those in front of them are whole."""
        cdef OpenTool tool
        cdef bytes encoded
        while self.waiting:
            tool = self.current
            if tool is not None:
                if not is_whole(tool):
                    return 0
                tool.closed = True
                self.current = None
                self._tool_closed(tool)
            tool = self.waiting.pop(0)
            self._begin_tool(tool)
            if tool.parts:
                encoded = dumps("".join(tool.parts))
                self._tell_arguments(tool, encoded, len(encoded))
            if tool.closed:
                self.current = None
                self._tool_closed(tool)
        return 0

    cdef int _block_opened(self) except -1:
        raise NotImplementedError

    cdef int _block_closed(self) except -1:
        raise NotImplementedError

    cdef int _tool_opened(self, OpenTool tool) except -1:
        raise NotImplementedError

    cdef int _tell_arguments(self, OpenTool tool, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError

    cdef int _tool_closed(self, OpenTool tool) except -1:
        raise NotImplementedError


# Of a Messages reply, by what is said: the block it stands in and the delta.
cdef BlockKind[4] message_blocks
message_blocks[:] = [BLOCK_TEXT, BLOCK_TEXT, BLOCK_THINKING, BLOCK_THINKING]
cdef tuple message_deltas = (b'text_delta","text":', b'text_delta","text":', b'thinking_delta","thinking":',
                             b'signature_delta","signature":')


cdef class MessagesWriter(BlockWriter):
    """Events of the Messages API."""

    cdef int _begin(self, str id, str model) except -1:
        self.id = id if id else "msg_" + self.ident
        return self._event("message_start", {"message": {
            "id": self.id, "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": None,
            "stop_sequence": None, "usage": self._counted()}})

    cdef dict _counted(self):
        made = messages_usage_of(UsageCounts() if self.usage is None else self.usage)
        tier = TIERS_FOR_MESSAGES.get(self.service_tier)
        if tier is not None:
            made["service_tier"] = tier
        return made

    cdef int _block_opened(self) except -1:
        return self._event("content_block_start", {"index": self.index, "content_block": (
            {"type": "text", "text": ""} if self.kind == BLOCK_TEXT else
            {"type": "thinking", "thinking": "", "signature": ""})})

    cdef int _block_closed(self) except -1:
        return self._stop_block(self.index)

    cdef int _stop_block(self, Py_ssize_t index) except -1:
        return self._event("content_block_stop", {"index": index})

    cdef int _block_delta(self, Py_ssize_t index, bytes member, const char* p, Py_ssize_t n) except -1:
        """Write a delta. p: its text, as JSON."""
        cdef ByteBuffer out = self.out
        out.append(b'event: content_block_delta\ndata: {"type":"content_block_delta","index":', 71)
        out.append_uint(<unsigned long long>index)
        out.append(b',"delta":{"type":"', 18)
        self._put(member)
        out.append(p, n)
        return out.append(b"}}\n\n", 4)

    cdef int _say(self, BlockKind kind, const char* p, Py_ssize_t n, str delta) except -1:
        self._open_block(message_blocks[<int>kind])
        return self._block_delta(self.index, <bytes>message_deltas[<int>kind], p, n)

    cdef int _redact(self, str data) except -1:
        self._close_all()
        index = self._next()
        self._event("content_block_start", {"index": index, "content_block": {
            "type": "redacted_thinking", "data": data}})
        return self._stop_block(index)

    cdef int _cite(self, Citation citation) except -1:
        # A citation stands for the text of its block.
        if not self.writing or self.kind != BLOCK_TEXT:
            return 0
        return self._event("content_block_delta", {"index": self.index, "delta": {
            "type": "citations_delta", "citation": messages_citation_of(citation)}})

    cdef int _ran(self, RanTool tool) except -1:
        cdef bytes told
        self._close_all()
        blocks = messages_blocks(tool, f"{self.ident}_{self.count}")
        if not blocks:
            self.untold = True
        for block in blocks:
            index = self._next()
            given = block.get("input")
            if given is not None:
                block = {**block, "input": {}}
            self._event("content_block_start", {"index": index, "content_block": block})
            if given:
                told = dumps(dumps(given).decode())
                self._block_delta(index, b'input_json_delta","partial_json":', told, len(told))
            self._stop_block(index)
        return 0

    cdef int _tool_opened(self, OpenTool tool) except -1:
        return self._event("content_block_start", {"index": tool.index, "content_block": {
            "type": "tool_use", "id": tool.id, "name": tool.name, "input": {}}})

    cdef int _tell_arguments(self, OpenTool tool, const char* p, Py_ssize_t n) except -1:
        return self._block_delta(tool.index, b'input_json_delta","partial_json":', p, n)

    cdef int _tool_closed(self, OpenTool tool) except -1:
        return self._stop_block(tool.index)

    cdef int _end(self, str stop) except -1:
        if stop == "end" and self.refused:
            stop = "filter"
        self._event("message_delta", {
            "delta": {"stop_reason": write_stop("messages", stop), "stop_sequence": self.sequence},
            "usage": self._counted()})
        return self._event("message_stop", {})

    cdef int _tell_fault(self, str kind, str message) except -1:
        known = kind_of(kind, self.fault_code, self.fault_status)
        return self._event("error", {"error": {"type": known, "message": message}})


# Of a Responses reply, by what is said: the event of a delta, and the members in front of it. Signatures are not told.
cdef tuple response_deltas = (
    (b"response.output_text.delta", b'"content_index":0,"logprobs":[],"delta":'),
    (b"response.refusal.delta", b'"content_index":0,"delta":'),
    (b"response.reasoning_summary_text.delta", b'"summary_index":0,"delta":'),
)


cdef class ResponsesWriter(BlockWriter):
    """Events of the Responses API."""

    def __cinit__(self):
        self.tells_customs = True
        self.items = {}
        self.parts = []
        self.annotations = []
        self.tokens = []

    cdef int configure(self, dict extra) except -1:
        self.echo = extra
        return 0

    cdef int _event(self, str name, dict members) except -1:
        members = {**members, "sequence_number": self.sequence_number}
        self.sequence_number += 1
        return Writer._event(self, name, members)

    cdef dict _response(self, str status):
        response = {**self.echo, "id": self.id, "object": "response", "created_at": self.created, "status": status,
                    "error": None, "incomplete_details": None, "output": self._output(), "usage": None}
        if self.answered is not None:
            response["model"] = self.answered
        if self.service_tier is not None:
            response["service_tier"] = self.service_tier
        return response

    cdef int _end_block(self) except -1:
        # Whether it is complete shows when something follows, or the stop.
        self.resting = self.writing
        return 0

    cdef str _item_status(self):
        """The status of what ends now: the last item of a reply that was cut is cut."""
        return "incomplete" if self.ending and write_stop("responses", self._ended()) == "incomplete" else "completed"

    cdef list _output(self):
        return [self.items[index] for index in sorted(self.items)]

    cdef int _begin(self, str id, str model) except -1:
        self.id = id if id.startswith("resp_") else "resp_" + self.ident
        self._event("response.created", {"response": self._response("in_progress")})
        return self._event("response.in_progress", {"response": self._response("in_progress")})

    cdef dict _part(self, str text):
        """The block being written, as a part with this text."""
        if self.kind == BLOCK_THINKING:
            return {"type": "summary_text", "text": text}
        if self.kind == BLOCK_REFUSAL:
            return {"type": "refusal", "refusal": text}
        return {"type": "output_text", "text": text, "annotations": list(self.annotations),
                "logprobs": list(self.tokens)}

    cdef int _block_opened(self) except -1:
        place = {"output_index": self.index}
        if self.kind == BLOCK_THINKING:
            self.item = f"rs_{self.ident}_{self.index}"
            item = {"id": self.item, "type": "reasoning", "summary": []}
            self._event("response.output_item.added", {**place, "item": item})
            return self._event("response.reasoning_summary_part.added", {
                "item_id": self.item, **place, "summary_index": 0, "part": self._part("")})
        self.annotations.clear()
        self.tokens.clear()
        self.base = self.said
        self.item = f"msg_{self.ident}_{self.index}"
        item = {"id": self.item, "type": "message", "status": "in_progress", "role": "assistant", "content": []}
        self._event("response.output_item.added", {**place, "item": item})
        return self._event("response.content_part.added", {
            "item_id": self.item, **place, "content_index": 0, "part": self._part("")})

    cdef int _say(self, BlockKind kind, const char* p, Py_ssize_t n, str delta) except -1:
        cdef bytes name, member
        if kind == BLOCK_SIGNATURE:
            if self.seal is not None:
                self._open_block(BLOCK_THINKING)
                self.sealed = self.seal(delta)
            return 0
        self._open_block(kind)
        self.parts.append(p[1:n - 1].decode("utf-8") if delta is None else delta)
        name, member = response_deltas[<int>kind]
        return self._told(name, self.item, self.index, member, p, n)

    cdef int _told(self, bytes name, str item, Py_ssize_t index, bytes member, const char* p, Py_ssize_t n) except -1:
        """Write the event of a delta. member: what stands between its place and the delta."""
        cdef ByteBuffer out = self.out
        out.append(b"event: ", 7)
        self._put(name)
        out.append(b'\ndata: {"type":"', 16)
        self._put(name)
        out.append(b'","item_id":"', 13)
        self._put(item.encode())
        out.append(b'","output_index":', 17)
        out.append_uint(<unsigned long long>index)
        out.append_byte(44)
        self._put(member)
        out.append(p, n)
        out.append(b',"sequence_number":', 19)
        out.append_uint(<unsigned long long>self.sequence_number)
        self.sequence_number += 1
        return out.append(b"}\n\n", 3)

    cdef int _block_closed(self) except -1:
        text = "".join(self.parts)
        self.parts.clear()
        part = self._part(text)
        place = {"item_id": self.item, "output_index": self.index}
        if self.kind == BLOCK_THINKING:
            place["summary_index"] = 0
            self._event("response.reasoning_summary_text.done", {**place, "text": text})
            self._event("response.reasoning_summary_part.done", {**place, "part": part})
            item = {"id": self.item, "type": "reasoning", "summary": [part]}
            if self.sealed is not None:
                item["encrypted_content"] = self.sealed
                self.sealed = None
            return self._item_done(self.index, item)
        place["content_index"] = 0
        if self.kind == BLOCK_REFUSAL:
            self._event("response.refusal.done", {**place, "refusal": text})
        else:
            self._event("response.output_text.done", {**place, "text": text, "logprobs": list(self.tokens)})
        self._event("response.content_part.done", {**place, "part": part})
        return self._item_done(self.index, {"id": self.item, "type": "message", "status": self._item_status(),
                                            "role": "assistant", "content": [part]})

    cdef int _item_done(self, Py_ssize_t index, dict item) except -1:
        self.items[index] = item
        return self._event("response.output_item.done", {"output_index": index, "item": item})

    cdef int _redact(self, str data) except -1:
        if self.seal is None:
            return 0
        self._close_all()
        index = self._next()
        item = {"id": f"rs_{self.ident}_{index}", "type": "reasoning", "summary": [],
                "encrypted_content": self.seal(data, True)}
        self._event("response.output_item.added", {"output_index": index, "item": item})
        return self._item_done(index, item)

    cdef int _probs(self, list tokens) except -1:
        # They are told with the text that they are of, when it is whole.
        self.tokens += tokens
        return 0

    cdef int _image(self, str url) except -1:
        head, _, data = url.partition(";base64,")
        if not data:
            self.untold = True
            return 0
        self._close_all()
        index = self._next()
        item = {"id": f"ig_{self.ident}_{index}", "type": "image_generation_call", "status": "completed",
                "result": data, "output_format": head.partition("/")[2]}
        place = {"item_id": item["id"], "output_index": index}
        self._event("response.output_item.added", {"output_index": index, "item": {
            **item, "status": "in_progress", "result": None}})
        self._event("response.image_generation_call.in_progress", place)
        self._event("response.image_generation_call.completed", place)
        return self._item_done(index, item)

    cdef int _cite(self, Citation citation) except -1:
        if not self.writing or self.kind != BLOCK_TEXT:
            return 0
        annotation = responses_annotation(citation, self.base)
        if annotation is None:
            return 0
        self.annotations.append(annotation)
        return self._event("response.output_text.annotation.added", {
            "item_id": self.item, "output_index": self.index, "content_index": 0,
            "annotation_index": len(self.annotations) - 1, "annotation": annotation})

    cdef int _ran(self, RanTool tool) except -1:
        item = responses_item(tool, f"{self.ident}_{self.count}")
        if item is None:
            self.untold = True
            return 0
        self._close_all()
        item["id"] = f"{item['id'].partition('_')[0]}_{self.ident}_{self.count}"
        index = self._next()
        place = {"item_id": item["id"], "output_index": index}
        self._event("response.output_item.added", {"output_index": index, "item": {**item, "status": "in_progress"}})
        self._event(f"response.{item['type']}.in_progress", place)
        if item["status"] == "completed":
            self._event(f"response.{item['type']}.completed", place)
        return self._item_done(index, item)

    cdef int _tool_opened(self, OpenTool tool) except -1:
        tool.item = f"{'ctc' if tool.custom else 'fc'}_{self.ident}_{tool.index}"
        if tool.custom:
            return self._event("response.output_item.added", {
                "output_index": tool.index, "item": self._custom_item(tool, "")})
        return self._event("response.output_item.added", {"output_index": tool.index, "item": {
            "id": tool.item, "type": "function_call", "status": "in_progress", "call_id": tool.id,
            "name": tool.name, "arguments": ""}})

    cdef int _tell_arguments(self, OpenTool tool, const char* p, Py_ssize_t n) except -1:
        if tool.custom:
            return self._told(b"response.custom_tool_call_input.delta", tool.item, tool.index, b'"delta":', p, n)
        return self._told(b"response.function_call_arguments.delta", tool.item, tool.index, b'"delta":', p, n)

    cdef int _tool_closed(self, OpenTool tool) except -1:
        arguments = "".join(tool.parts)
        if tool.custom:
            self._event("response.custom_tool_call_input.done",
                        {"item_id": tool.item, "output_index": tool.index, "input": arguments})
            return self._item_done(tool.index, self._custom_item(tool, arguments))
        self._event("response.function_call_arguments.done",
                    {"item_id": tool.item, "output_index": tool.index, "name": tool.name, "arguments": arguments})
        return self._item_done(tool.index, {
            "id": tool.item, "type": "function_call", "status": self._call_status(tool), "call_id": tool.id,
            "name": tool.name, "arguments": arguments})

    cdef dict _custom_item(self, OpenTool tool, str input):
        return {"id": tool.item, "type": "custom_tool_call", "call_id": tool.id, "name": tool.name, "input": input}

    cdef str _call_status(self, OpenTool tool):
        """The status of a call that ends: providers tell only behind it that the reply was cut."""
        if self.ending:
            return self._item_status()
        return "completed" if is_whole(tool) else "incomplete"

    cdef int _end(self, str stop) except -1:
        status = write_stop("responses", stop)
        response = self._response(status)
        if status == "incomplete":
            response["incomplete_details"] = {"reason": "content_filter" if stop == "filter" else "max_output_tokens"}
        if self.usage is not None:
            response["usage"] = responses_usage_of(self.usage)
        return self._event("response." + status, {"response": response})

    cdef int _tell_fault(self, str kind, str message) except -1:
        if not self.started:
            return self._event("error", {"code": kind, "message": message, "param": None})
        response = self._response("failed")
        known = kind_of(kind, self.fault_code, self.fault_status)
        response["error"] = {"code": response_codes.get(known, "server_error"), "message": message}
        return self._event("response.failed", {"response": response})
