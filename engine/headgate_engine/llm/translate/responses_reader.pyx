"""The half of stream translation for providers that speak Responses; see readers.pyx."""

from headgate_engine.llm.translate.counts cimport responses_usage
from headgate_engine.llm.translate.readers cimport (
    EventReader, a_key, a_list, a_text, an_object, error_text, error_type, text_or_none)
from headgate_engine.llm.translate.writers cimport Writer
from headgate_engine.peek.delta cimport delta_peek

from headgate_engine.llm.translate.evidence import responses_ran, url_annotation
from headgate_engine.llm.translate.readers import PROVIDER_ERROR, Garbage
from headgate_engine.llm.translate.probs import chat_probs

# Items that may say nothing that is missed.
cdef frozenset QUIET = frozenset(("reasoning", "mcp_list_tools"))


cdef class ResponsesReader(EventReader):
    """Events of the Responses API."""

    def __cinit__(self):
        self.with_arguments = set()
        self.items = set()
        self.peek = delta_peek("responses")

    cdef object _call(self, const char* data):
        key = EventReader._call(self, data)
        if key is not None:
            self.with_arguments.add(key)
        return key

    cdef int _thinks(self) except -1:
        self.thought = True
        return 0

    cdef int _event(self, str name, object event) except -1:
        cdef Writer out = self.writer
        if name == "[DONE]":
            # Some vendors add it; it says nothing.
            return 0
        if not isinstance(event, dict):
            raise Garbage("an event is not an object")
        kind = event.get("type", name)
        if kind == "response.output_text.delta":
            out.text(a_text(event, "delta"))
            return out.probs(chat_probs(event.get("logprobs"))) if out.probs_wanted else 0
        if kind == "response.function_call_arguments.delta" or kind == "response.custom_tool_call_input.delta":
            key = a_key(event, "output_index")
            self.with_arguments.add(key)
            return out.arguments(key, a_text(event, "delta"))
        if kind == "response.function_call_arguments.done" or kind == "response.custom_tool_call_input.done":
            key = a_key(event, "output_index")
            if key not in self.with_arguments:
                self.with_arguments.add(key)
                out.arguments(key, a_text(event, "arguments") or a_text(event, "input"))
            return 0
        if kind == "response.refusal.delta":
            return out.refusal(a_text(event, "delta"))
        if kind == "response.reasoning_summary_text.delta" or kind == "response.reasoning_text.delta":
            self.thought = True
            return out.thinking(a_text(event, "delta"))
        # Some vendors tell texts only whole.
        if kind == "response.output_text.done":
            return self._rest(a_text(event, "text"), False)
        if kind == "response.refusal.done":
            return 0 if out.refused else self._rest(a_text(event, "refusal"), True)
        if kind == "response.content_part.added":
            self.part_base = out.said
            return 0
        if kind == "response.reasoning_summary_text.done" or kind == "response.reasoning_text.done":
            if not self.thought:
                out.thinking(a_text(event, "text"))
            self.thought = False
            return 0
        if kind == "response.output_text.annotation.added":
            return out.cite(url_annotation(event.get("annotation"), self.base))
        if kind == "response.created":
            response = an_object(event, "response") or {}
            out.service_tier = text_or_none(response, "service_tier") or None
            return out.start(text_or_none(response, "id"), text_or_none(response, "model"))
        if kind == "response.output_item.added":
            return self._item(event, False)
        if kind == "response.output_item.done":
            return self._item(event, True)
        if kind == "response.completed" or kind == "response.incomplete" or kind == "response.failed":
            return self._end(kind, event)
        if kind == "error":
            inner = event.get("error")
            code = text_or_none(event, "code") or text_or_none(inner, "code") or None
            return self._failed(error_type(inner) or code or "api_error", code,
                                text_or_none(event, "message") or error_text(inner, PROVIDER_ERROR))
        if "type" not in event and event.get("error") is not None:
            return self._refused(event["error"])
        return 0

    cdef int _rest(self, str text, bint refusal) except -1:
        """A text that has ended. It is emitted unless its deltas were."""
        cdef Writer out = self.writer
        if out.said == self.part_base:
            if refusal:
                out.refusal(text)
            else:
                out.text(text)
        self.part_base = out.said
        return 0

    cdef int _message(self, dict item) except -1:
        """Emit a message whose parts were not emitted one by one."""
        cdef Writer out = self.writer
        if out.said != self.base:
            return 0
        for part in a_list(item, "content") or ():
            if not isinstance(part, dict):
                raise Garbage("a content part is not an object")
            if part.get("type") == "output_text":
                text_from = out.said
                out.text(a_text(part, "text"))
                for annotation in a_list(part, "annotations") or ():
                    out.cite(url_annotation(annotation, text_from))
            elif part.get("type") == "refusal" and not out.refused:
                out.refusal(a_text(part, "refusal"))
        return 0

    cdef int _output(self, dict response) except -1:
        """Tell the items of a response that stand only in its end."""
        for index, item in enumerate(a_list(response, "output") or ()):
            if isinstance(item, dict) and index not in self.items and not (
                    item.get("type") == "message" and (self.writer.said or self.writer.refused)):
                self._item({"output_index": index, "item": item}, True)
        return 0

    cdef int _item(self, dict event, bint done) except -1:
        cdef Writer out = self.writer
        cdef dict item = an_object(event, "item") or {}
        key = a_key(event, "output_index")
        kind = item.get("type")
        self.items.add(key)
        if kind == "function_call":
            out.tool(key, a_text(item, "call_id"), a_text(item, "name") or "")
            if done:
                if key not in self.with_arguments:
                    out.arguments(key, a_text(item, "arguments"))
                out.close(key)
        elif kind == "custom_tool_call":
            out.custom_tool(key, a_text(item, "call_id"), a_text(item, "name") or "")
            if done:
                if key not in self.with_arguments:
                    out.arguments(key, a_text(item, "input"))
                out.close(key)
        elif kind == "message":
            if done:
                self._message(item)
                out.close(None)
            self.base = self.part_base = out.said
        elif done and kind == "reasoning" and isinstance(item.get("encrypted_content"), str):
            # headgate.dialect.llm.idents.sealed()
            out.redacted(f"headgate_sealed:{text_or_none(item, 'id')}:{item['encrypted_content']}")
        elif done and kind == "image_generation_call":
            if isinstance(item.get("result"), str):
                out.image(f"data:image/{text_or_none(item, 'output_format') or 'png'};base64,{item['result']}")
        elif done:
            ran = responses_ran(item)
            if ran is None and text_or_none(item, "type") not in QUIET:
                out.untold = True
            out.ran(ran)
        return 0

    cdef int _end(self, str kind, dict event) except -1:
        cdef Writer out = self.writer
        cdef dict response = an_object(event, "response") or {}
        out.usage = responses_usage(response.get("usage")) or out.usage
        if kind == "response.failed":
            error = response.get("error")
            code = text_or_none(error, "code") or None
            return self._failed(code or "api_error", code, error_text(error, "the provider's response failed"))
        self._output(response)
        out.service_tier = text_or_none(response, "service_tier") or out.service_tier
        if kind == "response.incomplete":
            reason = text_or_none(response.get("incomplete_details"), "reason")
            # Reasons other than the ones known are limits of some kind.
            out.stop("filter" if reason == "content_filter" else "context" if "context" in reason else "length", None)
        else:
            out.stop("end", None)
        return out.finish()
