"""Texts of streamed events; see stream_texts.pxd."""

from libc.stdint cimport uint8_t

from headgate_engine.guard.spans cimport K_STRING, items_at, members_at, unquoted
from headgate_engine.peek.delta cimport (
    DELTA_COMPLETIONS, DELTA_RESPONSES, SAYS_MORE, SAYS_TEXT, DeltaPeek, delta_peek)
from headgate_engine.peek.json cimport ObjectPeek
from headgate_engine.peek.scan cimport skip_blanks

from headgate_engine.peek.json import PeekError

cdef enum:
    # Choices with a text of their own. Further choices share one.
    MAX_CHOICES = 128


# Events and parts of a conversation, with their older names.
cdef frozenset TEXT_DELTAS = frozenset(("response.output_text.delta", "response.text.delta"))
cdef frozenset TEXT_ENDS = frozenset(("response.output_text.done", "response.text.done"))
cdef frozenset ITEM_EVENTS = frozenset(("response.output_item.done", "conversation.item.done",
                                        "conversation.item.created", "conversation.item.added",
                                        "conversation.item.retrieved"))
cdef frozenset OUTPUT_TEXTS = frozenset(("output_text", "text"))


cdef class TextPiece:
    pass


cdef class StreamFrame:
    pass


cdef class ChoiceText:
    pass


cdef dict fields(bytes data, Py_ssize_t at):
    """Return the members of an object: name -> (start, stop), the last one of each name."""
    cdef dict found = {}
    for name, start, stop in members_at(data, at):
        found[name] = (start, stop)
    return found


cdef inline bint is_string(bytes data, span):
    return span is not None and (<const unsigned char*><const char*>data)[<Py_ssize_t>span[0]] == K_STRING


cdef str word(bytes data, span):
    return unquoted(data, span[0], span[1]).decode("utf-8", "replace") if is_string(data, span) else ""


cdef bytes number(bytes data, span):
    """Return the bytes of a number, as a dictionary key."""
    return b"0" if span is None else data[span[0]:span[1]]


cdef class StreamTexts:
    def __cinit__(self, str format not None, bint judged):
        self.format = format
        self.judged = judged
        self.peek = delta_peek(format)
        self.choices = {}

    cdef int read(self, StreamFrame frame, Py_ssize_t at, Py_ssize_t n) except -1:
        """Read the JSON of `n` bytes at `at`."""
        cdef ObjectPeek peek
        cdef bytes data = frame.data
        if self._delta(frame, at, n):
            return 0
        if data[at:at + n].strip() == b"[DONE]":
            frame.ends = list(self.choices.values())
            return 0
        peek = ObjectPeek()
        try:
            peek.scan(<const char*>data + at, n)
        except PeekError:
            return 0
        top = fields(data, skip_blanks(<const uint8_t*><const char*>data, at, at + n))
        if self.format == "completions":
            self._read_completions(frame, top)
        elif self.format == "messages":
            self._read_messages(frame, top)
        elif self.format == "responses":
            self._read_responses(frame, top)
        elif self.format == "realtime":
            self._read_realtime(frame, top)
        elif self.format == "converse":
            self._read_converse(frame, top)
        else:
            self._read_gemini(frame, top)
        return 0

    cdef bint _delta(self, StreamFrame frame, Py_ssize_t at, Py_ssize_t n) except -1:
        """Read an event that is nothing but one delta. Return False for others."""
        cdef DeltaPeek peek = self.peek
        cdef bytes data = frame.data
        cdef bytes key
        cdef int says = SAYS_MORE if peek is None else peek.look(<const char*>data + at, n)
        if says == SAYS_MORE:
            return False
        # Thoughts and arguments are not guarded. In completions the text is complete at `tool_calls`, be it null.
        if says != SAYS_TEXT and not peek.calls:
            return True
        key = data[at + peek.index_start:at + peek.index_stop] if peek.index_stop else b"0"
        if peek.format == DELTA_RESPONSES:
            key += b"," + (data[at + peek.part_start:at + peek.part_stop] if peek.part_stop else b"0")
        if says == SAYS_TEXT:
            self._says(frame, key, at + peek.start, at + peek.stop)
        if peek.calls:
            self._ends(frame, key)
        if says != SAYS_TEXT:
            return True
        if peek.marks_stop:
            empty = b"null" if peek.format == DELTA_COMPLETIONS else b"[]" if peek.format == DELTA_RESPONSES else b"{}"
            frame.marks = [(at + peek.marks_start, at + peek.marks_stop, empty)]
        return True

    cdef ChoiceText _choice(self, object key):
        cdef ChoiceText choice = self.choices.get(key)
        if choice is None:
            if len(self.choices) >= MAX_CHOICES:
                key = None
                choice = self.choices.get(key)
                if choice is not None:
                    return choice
            choice = ChoiceText.__new__(ChoiceText)
            choice.tail = b""
            choice.fresh = []
            self.choices[key] = choice
        return choice

    cdef int _says(self, StreamFrame frame, object key, Py_ssize_t start, Py_ssize_t stop) except -1:
        cdef ChoiceText choice
        cdef TextPiece piece
        cdef bytes text = unquoted(frame.data, start, stop)
        if not text:
            return 0
        choice = self._choice(key)
        if frame.pieces is None:
            frame.pieces = []
        piece = TextPiece.__new__(TextPiece)
        piece.choice, piece.text = choice, text
        piece.start, piece.stop = start, stop
        piece.low = choice.length
        choice.length += len(text)
        piece.high = choice.length
        frame.pieces.append(piece)
        if self.judged:
            choice.fresh.append(text)
            self.fresh_bytes += len(text)
        return 0

    def _ends(self, StreamFrame frame, key):
        choice = self.choices.get(key)
        if choice is not None:
            frame.ends = [*(frame.ends or ()), choice]

    def _marks(self, StreamFrame frame, dict found, *names):
        for name, raw in names:
            span = found.get(name)
            if span is not None:
                frame.marks = [*(frame.marks or ()), (span[0], span[1], raw)]

    def _read_completions(self, StreamFrame frame, dict top):
        data = frame.data
        for start, _ in items_at(data, top.get("choices", (-1, -1))[0]):
            choice = fields(data, start)
            key = number(data, choice.get("index"))
            delta = fields(data, choice.get("delta", (-1, -1))[0])
            content = delta.get("content")
            if is_string(data, content):
                self._says(frame, key, content[0], content[1])
                self._marks(frame, choice, ("logprobs", b"null"))
            # The text is complete at a tool call and at the end.
            if "tool_calls" in delta or is_string(data, choice.get("finish_reason")):
                self._ends(frame, key)

    def _read_messages(self, StreamFrame frame, dict top):
        data = frame.data
        kind = word(data, top.get("type"))
        key = number(data, top.get("index"))
        if kind == "content_block_delta" or kind == "content_block_start":
            inner = top.get("delta" if kind == "content_block_delta" else "content_block", (-1, -1))
            block = fields(data, inner[0])
            if word(data, block.get("type")) in ("text_delta", "text") and is_string(data, block.get("text")):
                self._says(frame, key, block["text"][0], block["text"][1])
        elif kind == "content_block_stop":
            self._ends(frame, key)
        elif kind == "message_delta" or kind == "message_stop" or kind == "error":
            frame.ends = list(self.choices.values())

    def _read_responses(self, StreamFrame frame, dict top):
        data = frame.data
        kind = word(data, top.get("type"))
        if kind == "response.output_text.delta" or kind == "response.output_text.done":
            key = number(data, top.get("output_index")) + b"," + number(data, top.get("content_index"))
            span = top.get("delta" if kind == "response.output_text.delta" else "text")
            if is_string(data, span):
                # Without earlier deltas this event brings the text.
                if kind == "response.output_text.delta" or key not in self.choices:
                    self._says(frame, key, span[0], span[1])
                else:
                    frame.wholes = [span]
                self._marks(frame, top, ("logprobs", b"[]"))
            if kind == "response.output_text.done":
                self._ends(frame, key)
        elif kind == "response.content_part.done":
            self._whole_part(frame, top.get("part", (-1, -1))[0])
        elif kind == "response.output_item.done":
            self._whole_item(frame, top.get("item", (-1, -1))[0])
        elif kind in ("response.completed", "response.incomplete", "response.failed", "error"):
            inner = fields(data, top.get("response", (-1, -1))[0])
            for start, _ in items_at(data, inner.get("output", (-1, -1))[0]):
                self._whole_item(frame, start)
            frame.ends = list(self.choices.values())

    def _read_realtime(self, StreamFrame frame, dict top):
        """Read an event like those of responses, with other names for texts. Other events have no text."""
        data = frame.data
        kind = word(data, top.get("type"))
        if kind in TEXT_DELTAS or kind in TEXT_ENDS:
            key = (word(data, top.get("item_id")), number(data, top.get("content_index")))
            span = top.get("delta" if kind in TEXT_DELTAS else "text")
            if is_string(data, span):
                if kind in TEXT_DELTAS or key not in self.choices:
                    self._says(frame, key, span[0], span[1])
                else:
                    frame.wholes = [span]
            if kind in TEXT_ENDS:
                self._ends(frame, key)
        elif kind == "response.content_part.done":
            self._whole_part(frame, top.get("part", (-1, -1))[0])
        elif kind in ITEM_EVENTS:
            self._whole_item(frame, top.get("item", (-1, -1))[0])
        elif kind == "response.done":
            inner = fields(data, top.get("response", (-1, -1))[0])
            for start, _ in items_at(data, inner.get("output", (-1, -1))[0]):
                self._whole_item(frame, start)
            frame.ends = list(self.choices.values())
            frame.over = True

    def _whole_item(self, StreamFrame frame, Py_ssize_t at):
        item = fields(frame.data, at)
        if word(frame.data, item.get("type")) in ("message", ""):
            for start, _ in items_at(frame.data, item.get("content", (-1, -1))[0]):
                self._whole_part(frame, start)

    def _whole_part(self, StreamFrame frame, Py_ssize_t at):
        part = fields(frame.data, at)
        if is_string(frame.data, part.get("text")) and word(frame.data, part.get("type")) in OUTPUT_TEXTS:
            frame.wholes = [*(frame.wholes or ()), part["text"]]
            self._marks(frame, part, ("annotations", b"[]"), ("logprobs", b"[]"))

    def _read_converse(self, StreamFrame frame, dict top):
        """Read an event, which its members tell from others."""
        data = frame.data
        key = number(data, top.get("contentBlockIndex"))
        if "stopReason" in top or "usage" in top:
            frame.ends = list(self.choices.values())
        elif "delta" in top:
            delta = fields(data, top["delta"][0])
            if is_string(data, delta.get("text")):
                self._says(frame, key, delta["text"][0], delta["text"][1])
        elif "start" not in top and "contentBlockIndex" in top:
            self._ends(frame, key)

    def _read_gemini(self, StreamFrame frame, dict top):
        data = frame.data
        for start, _ in items_at(data, top.get("candidates", (-1, -1))[0]):
            candidate = fields(data, start)
            key = number(data, candidate.get("index"))
            content = fields(data, candidate.get("content", (-1, -1))[0])
            for part, _ in items_at(data, content.get("parts", (-1, -1))[0]):
                found = fields(data, part)
                thought = found.get("thought")
                if thought is not None and data[thought[0]:thought[1]] == b"true":
                    continue
                if is_string(data, found.get("text")):
                    self._says(frame, key, found["text"][0], found["text"][1])
                    self._marks(frame, candidate, ("logprobsResult", b"{}"))
                elif "functionCall" in found:
                    self._ends(frame, key)
            if is_string(data, candidate.get("finishReason")):
                self._ends(frame, key)
