"""Guards on streamed replies; see stream.pxd."""

from headgate_engine.guard.spans cimport K_STRING, items_at, members_at, unquoted
from headgate_engine.peek.json cimport ObjectPeek

from headgate_engine.guard.spans import splice
from headgate_engine.peek.json import PeekError
from headgate_engine.sse.decode import SseDecoder
from headgate_engine.websocket.frames import frame as websocket_frame

STREAMED = frozenset(("completions", "messages", "responses", "gemini"))
# The format of WebSocket conversations: its events are passed to message(), not to feed().
REALTIME = "realtime"
WINDOW = 1024
OVERLAP = 256
# Most bytes of events that wait.
LIMIT = 65536

cdef enum:
    # Choices with a text of their own. Further choices share one.
    MAX_CHOICES = 128
    # Most bytes of an unfinished match that wait. A longer match is masked before it is complete.
    LONG_MATCH = 4096
    # Values of Frame.data_at if the data is not one part of the frame's bytes.
    IN_LINES = -1
    IN_A_MESSAGE = -2


# Events and parts of a conversation, with their older names.
cdef frozenset TEXT_DELTAS = frozenset(("response.output_text.delta", "response.text.delta"))
cdef frozenset TEXT_ENDS = frozenset(("response.output_text.done", "response.text.done"))
cdef frozenset ITEM_EVENTS = frozenset(("response.output_item.done", "conversation.item.done",
                                        "conversation.item.created", "conversation.item.added",
                                        "conversation.item.retrieved"))
cdef frozenset OUTPUT_TEXTS = frozenset(("output_text", "text"))


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


cdef Py_ssize_t char_start(bytes text, Py_ssize_t at):
    """Return the start of the UTF-8 character that contains `at`."""
    cdef const unsigned char* p = text
    cdef Py_ssize_t n = len(text)
    while 0 < at < n and p[at] & 0xC0 == 0x80:
        at -= 1
    return at


cdef class StreamGuard:
    def __init__(self, str format, *, bint judged=False, scanner=None, Py_ssize_t window=WINDOW,
                 Py_ssize_t overlap=OVERLAP, Py_ssize_t limit=LIMIT):
        if format not in STREAMED and format != REALTIME:
            raise ValueError(f"no streams of format {format!r} are guarded")
        self.format = format
        self.judged = judged
        self.scanner = scanner
        self.window, self.overlap, self.limit = window, overlap, limit
        self.decoder = SseDecoder()
        self.choices = {}
        self.waiting, self.held, self.out = [], [], []
        self.judging = -1

    # -- bytes in ------------------------------------------------------------------------------------------------------
    def feed(self, bytes data not None):
        if self.blocked or self.ended:
            return
        for raw, event in self.decoder.split(data):
            self._event(raw, event)
        self._settle(False)

    def message(self, bytes raw not None, bytes data not None):
        """Take one event of a conversation. raw: the server's WebSocket frames. data: its JSON.

        An event without guarded text does not wait.
        """
        cdef StreamFrame frame = StreamFrame.__new__(StreamFrame)
        frame.raw, frame.data, frame.data_at = raw, data, IN_A_MESSAGE
        self._read(frame)
        if frame.pieces is None and frame.wholes is None and frame.ends is None:
            self.out.append(raw)
            return
        self._pass(frame)
        self._settle(False)
        if frame.over and not self.held:
            self.choices.clear()

    cdef int _event(self, bytes raw, object event) except -1:
        cdef StreamFrame frame = StreamFrame.__new__(StreamFrame)
        frame.raw = raw
        if event is not None:
            frame.data = event.data
            frame.data_at = raw.find(frame.data)
            self._read(frame)
        if self.judged and (frame.pieces is not None or self.waiting):
            self.waiting.append(frame)
            self.waiting_bytes += len(raw)
            return 0
        return self._pass(frame)

    def end(self):
        if self.ended or self.blocked:
            return
        self.ended = True
        rest = self.decoder.rest()
        if rest:
            # The last event may lack its blank line; clients may read it nevertheless.
            event = next((one for _, one in self.decoder.split(b"\n\n") if one is not None), None)
            self._event(rest, event)
        if not self.fresh_bytes and self.judging < 0:
            self._let_go(len(self.waiting))
        self._settle(self.judging < 0 and not self.waiting)

    # -- judging -------------------------------------------------------------------------------------------------------
    @property
    def due(self):
        if self.blocked or not self.judged or self.judging >= 0 or not self.fresh_bytes:
            return False
        return self.ended or self.fresh_bytes >= self.window or self.waiting_bytes >= self.limit

    def texts(self):
        cdef ChoiceText choice
        found = []
        for choice in self.choices.values():
            if choice.fresh:
                text = choice.tail + b"".join(choice.fresh)
                choice.fresh.clear()
                choice.tail = text[char_start(text, len(text) - self.overlap):] if len(text) > self.overlap else text
                found.append(text)
        self.fresh_bytes = 0
        self.judging = len(self.waiting)
        return found

    def passed(self):
        if self.judging < 0 or self.blocked:
            return
        count, self.judging = self.judging, -1
        self._let_go(count)
        while self.waiting and (<StreamFrame>self.waiting[0]).pieces is None:
            self._let_go(1)
        if self.ended and not self.fresh_bytes:
            self._let_go(len(self.waiting))
        self._settle(self.ended and not self.waiting)

    def _let_go(self, Py_ssize_t count):
        cdef StreamFrame frame
        for frame in self.waiting[:count]:
            self.waiting_bytes -= len(frame.raw)
            self._pass(frame)
        del self.waiting[:count]

    def block(self, bytes event not None):
        self.blocked = True
        self.waiting.clear()
        self.held.clear()
        self.choices.clear()
        self.out.append(event)

    def take(self):
        if len(self.out) == 1:
            return self.out.pop()
        found = b"".join(self.out)
        self.out.clear()
        return found

    # -- masking -------------------------------------------------------------------------------------------------------
    cdef int _pass(self, StreamFrame frame) except -1:
        """Pass a frame to the masks, or to the output without them."""
        cdef ChoiceText choice
        if self.scanner is None:
            self.out.append(frame.raw)
            return 0
        for choice, low, _high, start, stop in frame.pieces or ():
            if choice.text is None:
                choice.text, choice.edits = b"", []
                choice.base = choice.settled = low
            choice.text += unquoted(frame.data, start, stop)
            choice.changed = True
            choice.closed = False
        for choice in frame.ends or ():
            choice.closed = True
        self.held.append(frame)
        self.held_bytes += len(frame.raw)
        if frame.ends is not None:
            # If a choice continues after its end, it is a new text, no matter how the stream was split.
            self._settle(False)
        return 0

    cdef int _settle(self, bint all_of_it) except -1:
        cdef ChoiceText choice
        if self.scanner is None:
            return 0
        if self.held_bytes > self.limit:
            all_of_it = True
        for choice in self.choices.values():
            if choice.text is not None and (choice.changed or choice.closed or all_of_it):
                self._settle_one(choice, all_of_it or choice.closed)
        return self._release()

    cdef int _settle_one(self, ChoiceText choice, bint all_of_it) except -1:
        """Find the masks in the part of the text that later bytes cannot change."""
        cdef Py_ssize_t start, stop, safe
        cdef Py_ssize_t end = choice.base + len(choice.text)
        choice.changed = False
        if choice.settled >= end:
            return 0
        safe = end
        if not all_of_it:
            safe = choice.base + char_start(choice.text, len(choice.text) - self.overlap if len(choice.text) > self.overlap else 0)
            if safe <= choice.settled:
                return 0
        found = []
        for low, high, replacement, _rule in self.scanner.edits(choice.text):
            start, stop = choice.base + low, choice.base + high
            if stop <= choice.settled:
                continue                     # already masked; the text is only context for later matches
            if start >= safe:
                break
            if start < choice.settled:
                start = choice.settled
            if stop > safe:
                if stop - start <= LONG_MATCH:
                    safe = start             # the match may continue
                    break
                safe = stop
            found.append((start, stop, replacement))
        choice.edits += found
        self.masks += len(found)
        if safe > choice.settled:
            choice.settled = safe
            stop = safe - self.overlap
            if stop > choice.base:
                stop = char_start(choice.text, stop - choice.base)
                choice.text = choice.text[stop:]
                choice.base += stop
        return 0

    cdef int _release(self) except -1:
        cdef StreamFrame frame
        cdef ChoiceText choice
        cdef Py_ssize_t count = 0
        for frame in self.held:
            for choice, _low, high, _start, _stop in frame.pieces or ():
                if <Py_ssize_t>high > choice.settled:
                    break
            else:
                self.out.append(self._masked(frame))
                self.held_bytes -= len(frame.raw)
                count += 1
                continue
            break
        del self.held[:count]
        return 0

    cdef bytes _masked(self, StreamFrame frame):
        cdef ChoiceText choice
        cdef Py_ssize_t low, high
        cdef list changes = []
        for choice, low, high, start, stop in frame.pieces or ():
            edits = []
            kept = []
            for first, last, replacement in choice.edits:
                if first < high and last > low:
                    edits.append((max(first, low) - low, min(last, high) - low, replacement if last <= high else b""))
                if last > high:
                    kept.append((first, last, replacement))
            choice.edits = kept
            if edits:
                changes.append((start, stop, splice(frame.data, start, stop, edits)))
        for start, stop in frame.wholes or ():
            edits = self.scanner.edits(unquoted(frame.data, start, stop))
            if edits:
                changes.append((start, stop, splice(frame.data, start, stop, [edit[:3] for edit in edits])))
        if not changes:
            return frame.raw
        changes += frame.marks or ()
        parts = []
        at = 0
        for start, stop, new in sorted(changes):
            parts.append(frame.data[at:start])
            parts.append(new)
            at = stop
        parts.append(frame.data[at:])
        data = b"".join(parts)
        if frame.data_at >= 0:
            return frame.raw[:frame.data_at] + data + frame.raw[frame.data_at + len(frame.data):]
        return websocket_frame(data) if frame.data_at == IN_A_MESSAGE else several_lines(frame.raw, data)

    # -- texts of events -----------------------------------------------------------------------------------------------
    cdef int _read(self, StreamFrame frame) except -1:
        cdef ObjectPeek peek
        cdef bytes data = frame.data
        if data.strip() == b"[DONE]":
            frame.ends = list(self.choices.values())
            return 0
        peek = ObjectPeek()
        try:
            peek.scan(data, len(data))
        except PeekError:
            return 0
        at = len(data) - len(data.lstrip(b" \t\r\n"))
        top = fields(data, at)
        if self.format == "completions":
            self._read_completions(frame, top)
        elif self.format == "messages":
            self._read_messages(frame, top)
        elif self.format == "responses":
            self._read_responses(frame, top)
        elif self.format == "realtime":
            self._read_realtime(frame, top)
        else:
            self._read_gemini(frame, top)
        return 0

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
        cdef bytes text = unquoted(frame.data, start, stop)
        if not text:
            return 0
        choice = self._choice(key)
        if frame.pieces is None:
            frame.pieces = []
        frame.pieces.append((choice, choice.length, choice.length + len(text), start, stop))
        choice.length += len(text)
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


cdef bytes several_lines(bytes raw, bytes data):
    """Return the block with its data lines joined into one."""
    lines = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    kept = [line for line in lines if line and not line.startswith(b"data")]
    return b"\n".join([*kept, b"data: " + data.replace(b"\n", b" "), b"", b""])
