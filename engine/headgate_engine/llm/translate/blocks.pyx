"""The clients' halves of stream translation whose replies are lists of blocks: Messages and Responses."""

from headgate_engine.llm.translate.counts cimport Usage
from headgate_engine.llm.translate.stops cimport write_stop
from headgate_engine.llm.translate.writers cimport Tool, Writer, dumps

from headgate_engine.llm.translate.writers import messages_usage_of, responses_usage_of

# Types of errors that clients of the Messages API know.
ERROR_TYPES = frozenset((
    "invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error",
    "request_too_large", "rate_limit_error", "timeout_error", "api_error", "overloaded_error",
))
# What other formats call the same; any other type is api_error.
cdef dict error_types = {"rate_limit_exceeded": "rate_limit_error", "insufficient_quota": "rate_limit_error",
                         "invalid_api_key": "authentication_error", "model_not_found": "not_found_error",
                         "context_length_exceeded": "invalid_request_error"}
LATE = "arguments of a tool call that had ended"


cdef class BlockWriter(Writer):
    """One block at a time: what begins another one ends it."""

    cdef int _open(self, str kind) except -1:
        raise NotImplementedError

    cdef int _close(self) except -1:
        raise NotImplementedError

    cdef int _close_tool(self, Tool tool) except -1:
        raise NotImplementedError

    cdef int close(self, object key) except -1:
        cdef Tool tool = None if key is None else self.tools.get(key)
        if tool is None:
            return self._close()
        if not tool.closed:
            if not tool.any:
                self.arguments(key, "{}")
            tool.closed = True
            self._close_tool(tool)
        return 0

    cdef int _close_all(self) except -1:
        self._close()
        for key in list(self.tools):
            self.close(key)
        return 0


cdef class MessagesWriter(BlockWriter):
    """Events of the Messages API."""

    cdef int start(self, str id, str model) except -1:
        if self.started:
            return 0
        self.started = True
        self.answered = model or None
        self.kind = ""
        self.id = id if id else "msg_" + self.ident
        message = {
            "id": self.id, "type": "message", "role": "assistant", "model": model if model else self.model,
            "content": [], "stop_reason": None, "stop_sequence": None, "usage": self._counted(),
        }
        self.out.append(b'event: message_start\ndata: {"type":"message_start","message":' + dumps(message) + b"}\n\n")
        return 0

    cdef dict _counted(self):
        return messages_usage_of(Usage() if self.usage is None else self.usage)

    cdef int _open(self, str kind) except -1:
        if not self.started:
            self.start("", "")
        if self.kind == kind:
            return 0
        self._close_all()
        self.kind = kind
        self.index = self.count
        self.count += 1
        self.out.append(b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":'
                        % self.index)
        self.out.append(b'{"type":"text","text":""}}\n\n' if kind == "text" else
                        b'{"type":"thinking","thinking":"","signature":""}}\n\n')
        return 0

    cdef int _close(self) except -1:
        if self.started and self.kind:
            self.kind = ""
            self.out.append(b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
                            % self.index)
        return 0

    cdef int _block_delta(self, Py_ssize_t index, bytes kind, bytes member, str delta) except -1:
        self.out.append(b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"'
                        % index)
        self.out.append(kind)
        self.out.append(member)
        self.out.append(dumps(delta))
        self.out.append(b"}}\n\n")
        return 0

    cdef int text(self, str delta) except -1:
        if delta:
            self._open("text")
            self._block_delta(self.index, b"text_delta", b'","text":', delta)
        return 0

    cdef int refusal(self, str delta) except -1:
        self.refused = self.refused or bool(delta)
        return self.text(delta)

    cdef int thinking(self, str delta) except -1:
        if delta:
            self._open("thinking")
            self._block_delta(self.index, b"thinking_delta", b'","thinking":', delta)
        return 0

    cdef int signature(self, str delta) except -1:
        if delta:
            self._open("thinking")
            self._block_delta(self.index, b"signature_delta", b'","signature":', delta)
        return 0

    cdef int redacted(self, str data) except -1:
        if not self.started:
            self.start("", "")
        self._close_all()
        block = {"type": "content_block_start", "index": self.count,
                 "content_block": {"type": "redacted_thinking", "data": data}}
        self.out.append(b"event: content_block_start\ndata: " + dumps(block) + b"\n\n")
        self.out.append(b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n' % self.count)
        self.count += 1
        return 0

    cdef bint tool(self, object key, str id, str name) except -1:
        cdef Tool tool
        if not self.started:
            self.start("", "")
        if key in self.tools:
            return False
        self._close_all()
        tool = self._new_tool(key, id, name)
        tool.index = self.count
        self.count += 1
        block = {"type": "content_block_start", "index": tool.index,
                 "content_block": {"type": "tool_use", "id": tool.id, "name": tool.name, "input": {}}}
        self.out.append(b"event: content_block_start\ndata: " + dumps(block) + b"\n\n")
        return True

    cdef int arguments(self, object key, str delta) except -1:
        cdef Tool tool = self.tools.get(key)
        if tool is not None and delta:
            if tool.closed:
                raise ValueError(LATE)
            tool.any = True
            self._block_delta(tool.index, b"input_json_delta", b'","partial_json":', delta)
        return 0

    cdef int _close_tool(self, Tool tool) except -1:
        self.out.append(b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n' % tool.index)
        return 0

    cdef int finish(self) except -1:
        if self.finished:
            return 0
        if not self.started:
            self.start("", "")
        self._close_all()
        ended = self._ended()
        if ended == "end" and self.refused:
            ended = "filter"
        end = {"type": "message_delta",
               "delta": {"stop_reason": write_stop("messages", ended), "stop_sequence": self.sequence},
               "usage": self._counted()}
        self.out.append(b"event: message_delta\ndata: " + dumps(end) + b"\n\n")
        self.out.append(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
        self.finished = True
        return 0

    cdef int fault(self, str kind, str message) except -1:
        if self.finished:
            return 0
        self.finished = True
        self.fault_message = message
        known = kind if kind in ERROR_TYPES else error_types.get(kind, "api_error")
        error = {"type": "error", "error": {"type": known, "message": message}}
        self.out.append(b"event: error\ndata: " + dumps(error) + b"\n\n")
        return 0


cdef class ResponsesWriter(BlockWriter):
    """Events of the Responses API."""

    def __cinit__(self):
        self.items = []
        self.parts = []

    cdef int configure(self, dict extra) except -1:
        self.echo = extra
        return 0

    cdef int _event(self, str kind, dict members) except -1:
        event = {"type": kind, **members, "sequence_number": self.sequence_number}
        self.sequence_number += 1
        self.out.append(b"event: " + kind.encode() + b"\ndata: " + dumps(event) + b"\n\n")
        return 0

    cdef dict _response(self, str status):
        return {**self.echo, "id": self.id, "object": "response", "created_at": self.created, "status": status,
                "error": None, "incomplete_details": None, "output": [], "usage": None}

    cdef int start(self, str id, str model) except -1:
        if self.started:
            return 0
        self.started = True
        self.answered = model or None
        self.kind = ""
        self.id = id if id.startswith("resp_") else "resp_" + self.ident
        self._event("response.created", {"response": self._response("in_progress")})
        self._event("response.in_progress", {"response": self._response("in_progress")})
        return 0

    cdef int _open(self, str kind) except -1:
        if not self.started:
            self.start("", "")
        if self.kind == kind:
            return 0
        self._close_all()
        self.kind = kind
        self.index = self.count
        self.count += 1
        self.items.append(None)
        if kind == "thinking":
            self.item = f"rs_{self.ident}_{self.index}"
            item = {"id": self.item, "type": "reasoning", "summary": []}
            self._event("response.output_item.added", {"output_index": self.index, "item": item})
            self._event("response.reasoning_summary_part.added",
                        {"item_id": self.item, "output_index": self.index, "summary_index": 0,
                         "part": {"type": "summary_text", "text": ""}})
            return 0
        self.item = f"msg_{self.ident}_{self.index}"
        item = {"id": self.item, "type": "message", "status": "in_progress", "role": "assistant", "content": []}
        self._event("response.output_item.added", {"output_index": self.index, "item": item})
        part = {"type": "refusal", "refusal": ""} if kind == "refusal" else {
            "type": "output_text", "text": "", "annotations": [], "logprobs": []}
        self._event("response.content_part.added",
                    {"item_id": self.item, "output_index": self.index, "content_index": 0, "part": part})
        return 0

    cdef int _delta(self, bytes kind, str delta) except -1:
        """One delta of the block being written."""
        self.parts.append(delta)
        self.out.append(b"event: " + kind + b'\ndata: {"type":"' + kind + b'","item_id":"' + self.item.encode())
        self.out.append(b'","output_index":%d,' % self.index)
        self.out.append(b'"summary_index":0,"delta":' if self.kind == "thinking" else
                        b'"content_index":0,"logprobs":[],"delta":' if self.kind == "text" else
                        b'"content_index":0,"delta":')
        self.out.append(dumps(delta))
        self.out.append(b',"sequence_number":%d}\n\n' % self.sequence_number)
        self.sequence_number += 1
        return 0

    cdef int text(self, str delta) except -1:
        if delta:
            self._open("text")
            self._delta(b"response.output_text.delta", delta)
        return 0

    cdef int refusal(self, str delta) except -1:
        if delta:
            self._open("refusal")
            self._delta(b"response.refusal.delta", delta)
        return 0

    cdef int thinking(self, str delta) except -1:
        if delta:
            self._open("thinking")
            self._delta(b"response.reasoning_summary_text.delta", delta)
        return 0

    cdef int _close(self) except -1:
        if not self.started or not self.kind:
            return 0
        kind, self.kind = self.kind, ""
        text = "".join(self.parts)
        self.parts.clear()
        place = {"item_id": self.item, "output_index": self.index}
        if kind == "thinking":
            place["summary_index"] = 0
            part = {"type": "summary_text", "text": text}
            self._event("response.reasoning_summary_text.done", {**place, "text": text})
            self._event("response.reasoning_summary_part.done", {**place, "part": part})
            item = {"id": self.item, "type": "reasoning", "summary": [part]}
        else:
            place["content_index"] = 0
            if kind == "refusal":
                part = {"type": "refusal", "refusal": text}
                self._event("response.refusal.done", {**place, "refusal": text})
            else:
                part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
                self._event("response.output_text.done", {**place, "text": text, "logprobs": []})
            self._event("response.content_part.done", {**place, "part": part})
            item = {"id": self.item, "type": "message", "status": "completed", "role": "assistant", "content": [part]}
        self.items[self.index] = item
        self._event("response.output_item.done", {"output_index": self.index, "item": item})
        return 0

    cdef bint tool(self, object key, str id, str name) except -1:
        cdef Tool tool
        if not self.started:
            self.start("", "")
        if key in self.tools:
            return False
        self._close_all()
        tool = self._new_tool(key, id, name)
        tool.index = self.count
        self.count += 1
        self.items.append(None)
        tool.item = f"fc_{self.ident}_{tool.index}"
        self._event("response.output_item.added", {"output_index": tool.index, "item": {
            "id": tool.item, "type": "function_call", "status": "in_progress", "call_id": tool.id,
            "name": tool.name, "arguments": ""}})
        return True

    cdef int arguments(self, object key, str delta) except -1:
        cdef Tool tool = self.tools.get(key)
        if tool is not None and delta:
            if tool.closed:
                raise ValueError(LATE)
            tool.any = True
            tool.parts.append(delta)
            self._event("response.function_call_arguments.delta",
                        {"item_id": tool.item, "output_index": tool.index, "delta": delta})
        return 0

    cdef int _close_tool(self, Tool tool) except -1:
        arguments = "".join(tool.parts)
        self._event("response.function_call_arguments.done",
                    {"item_id": tool.item, "output_index": tool.index, "name": tool.name, "arguments": arguments})
        item = {"id": tool.item, "type": "function_call", "status": "completed", "call_id": tool.id,
                "name": tool.name, "arguments": arguments}
        self.items[tool.index] = item
        self._event("response.output_item.done", {"output_index": tool.index, "item": item})
        return 0

    cdef int finish(self) except -1:
        if self.finished:
            return 0
        if not self.started:
            self.start("", "")
        self._close_all()
        ended = self._ended()
        status = write_stop("responses", ended)
        response = self._response(status)
        response["output"] = [item for item in self.items if item is not None]
        if status == "incomplete":
            response["incomplete_details"] = {"reason": "content_filter" if ended == "filter" else "max_output_tokens"}
        if self.usage is not None:
            response["usage"] = responses_usage_of(self.usage)
        self._event("response." + status, {"response": response})
        self.finished = True
        return 0

    cdef int fault(self, str kind, str message) except -1:
        if self.finished:
            return 0
        self.finished = True
        self.fault_message = message
        if not self.started:
            self._event("error", {"code": kind, "message": message, "param": None})
            return 0
        response = self._response("failed")
        response["output"] = [item for item in self.items if item is not None]
        response["error"] = {"code": "rate_limit_exceeded" if kind == "rate_limit_error" else "server_error",
                             "message": message}
        self._event("response.failed", {"response": response})
        return 0
