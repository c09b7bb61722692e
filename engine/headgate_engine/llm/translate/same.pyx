"""Streams that stay in their format; see same.pxd."""

from headgate_engine.llm.translate.counts cimport completions_usage
from headgate_engine.llm.translate.readers cimport CompletionsReader, a_list, text_or_none
from headgate_engine.llm.translate.writers cimport Writer, dumps

from headgate_engine.llm.translate.readers import Garbage

cdef bytes DONE = b"data: [DONE]\n\n"


cdef bint says(object choice) except -1:
    """Whether a choice of an event has words, thoughts or calls."""
    if not isinstance(choice, dict):
        raise Garbage("a choice is not an object")
    delta = (<dict>choice).get("delta")
    if isinstance(delta, dict):
        for name, value in (<dict>delta).items():
            if name != "role" and value:
                return True
    return bool((<dict>choice).get("text"))


cdef class SameReader(CompletionsReader):
    def __cinit__(self):
        self.peek = None                     # every event is decoded

    cdef int _event(self, str name, object event) except -1:
        cdef Writer out = self.writer
        if name == "[DONE]":
            self.stopped = True
            return self.close(None)
        if not isinstance(event, dict) or event.get("error") is not None:
            return CompletionsReader._event(self, name, event)
        usage = event.get("usage")
        choices = a_list(event, "choices") or []
        if usage is not None:
            out.usage = completions_usage(usage) or out.usage
            if not self.include_usage:
                if not choices:
                    return 0
                event = {**event, "usage": None}
        out.started = True
        out.answered = text_or_none(event, "model") or out.answered
        for choice in choices:
            out.spoke = says(choice) or out.spoke
            if isinstance(choice.get("finish_reason"), str):
                self.stopped = True
        return out._put(b"data: " + dumps(event) + b"\n\n")

    cdef int close(self, str fault) except -1:
        cdef Writer out = self.writer
        if fault is not None or not self.stopped or out.finished:
            return CompletionsReader.close(self, fault)
        out.finished = True
        return out._put(DONE)
