"""Guards on streamed replies; see stream.pxd."""

from libc.stdint cimport uint8_t

from headgate_engine.guard.numbers cimport CONTEXT, walk
from headgate_engine.guard.scan cimport Scanner
from headgate_engine.guard.spans cimport unquoted
from headgate_engine.guard.stream_texts cimport (
    IN_A_FRAME, IN_A_MESSAGE, IN_LINES, IN_PLACE, ChoiceText, StreamFrame, StreamTexts, TextPiece)
from headgate_engine.llm.eventstream cimport FRAME_EVENT, EventStreamDecoder, reframed
from headgate_engine.sse.decode cimport SseDecoder

from headgate_engine.guard.spans import splice
from headgate_engine.websocket.frames import frame as websocket_frame

STREAMED = frozenset(("completions", "messages", "responses", "gemini", "converse"))
# The format of WebSocket conversations: its events are passed to message(), not to feed().
REALTIME = "realtime"
WINDOW = 1024
OVERLAP = 256
# Most bytes of events that wait.
LIMIT = 65536

cdef enum:
    # Most bytes of an unfinished match that wait. A longer match is masked before it is complete.
    LONG_MATCH = 4096
    # A text whose beginning is settled is cut off when that is so long.
    SCANNED = 512


cdef Py_ssize_t char_start(bytes text, Py_ssize_t at):
    """Return the start of the UTF-8 character that contains `at`."""
    cdef const unsigned char* p = text
    cdef Py_ssize_t n = len(text)
    while 0 < at < n and p[at] & 0xC0 == 0x80:
        at -= 1
    return at


cdef class StreamGuard:
    def __init__(self, str format, *, bint judged=False, Scanner scanner=None, Py_ssize_t window=WINDOW,
                 Py_ssize_t overlap=OVERLAP, Py_ssize_t limit=LIMIT):
        if format not in STREAMED and format != REALTIME:
            raise ValueError(f"no streams of format {format!r} are guarded")
        self.format = format
        self.judged = judged
        self.scanner = scanner
        self.window, self.overlap, self.limit = window, overlap, limit
        self.decoder = SseDecoder()
        if format == "converse":
            self.frames = EventStreamDecoder()
        self.content = StreamTexts(format, judged)
        self.waiting, self.held, self.out = [], [], []
        self.judging = -1

    # -- bytes in ------------------------------------------------------------------------------------------------------
    def feed(self, bytes data not None):
        if self.blocked or self.ended:
            return
        if self.frames is not None:
            self.frames.feed(data, len(data))
            while self.frames.next():
                self._take_block(self._framed())
        else:
            self.decoder.feed(data, len(data))
            while self.decoder.next():
                self._take_block(self._block())
        self._settle(False)

    def message(self, bytes raw not None, bytes data not None):
        """Take one event of a conversation. raw: the server's WebSocket frames. data: its JSON.

        An event without guarded text does not wait.
        """
        cdef StreamFrame frame = StreamFrame.__new__(StreamFrame)
        frame.raw, frame.data, frame.form = raw, data, IN_A_MESSAGE
        self.content.read(frame, 0, len(data))
        if frame.pieces is None and frame.wholes is None and frame.ends is None:
            self.out.append(raw)
            return
        self._pass(frame)
        self._settle(False)
        if frame.over and not self.held:
            self.content.choices.clear()

    cdef StreamFrame _framed(self):
        """Return the decoder's frame, with what it says."""
        cdef EventStreamDecoder frames = self.frames
        cdef StreamFrame frame = StreamFrame.__new__(StreamFrame)
        frame.raw = frames.raw[:frames.raw_len]
        if frames.kind == FRAME_EVENT:
            frame.data, frame.form = frames.data[:frames.data_len], IN_A_FRAME
            self.content.read(frame, 0, frames.data_len)
        else:
            frame.ends = list(self.content.choices.values())
        return frame

    cdef StreamFrame _block(self):
        """Return the decoder's block as a frame, with what it says."""
        cdef SseDecoder decoder = self.decoder
        cdef StreamFrame frame = StreamFrame.__new__(StreamFrame)
        frame.raw = decoder.raw[:decoder.raw_len]
        if not decoder.has_event:
            return frame
        if decoder.data_lines == 1:
            frame.data = frame.raw
            self.content.read(frame, decoder.data - decoder.raw, decoder.data_len)
        else:
            frame.data, frame.form = decoder.data[:decoder.data_len], IN_LINES
            self.content.read(frame, 0, decoder.data_len)
        return frame

    cdef int _take_block(self, StreamFrame frame) except -1:
        if self.judged and (frame.pieces is not None or self.waiting):
            self.waiting.append(frame)
            self.waiting_bytes += len(frame.raw)
            return 0
        return self._pass(frame)

    def end(self):
        if self.ended or self.blocked:
            return
        self.ended = True
        rest = self.decoder.rest() if self.frames is None else b""
        if rest:
            # The last event may lack its blank line; clients may read it nevertheless.
            self._take_block(self._last_block(rest))
        if not self.content.fresh_bytes and self.judging < 0:
            self._let_go(len(self.waiting))
        self._settle(self.judging < 0 and not self.waiting)

    def _last_block(self, bytes rest):
        """Return the frame of bytes without a blank line, which they do not get."""
        cdef StreamFrame frame = StreamFrame.__new__(StreamFrame)
        self.decoder.feed(b"\n\n", 2)
        while self.decoder.next():
            if self.decoder.has_event:
                frame = self._block()
                break
        if frame.form == IN_PLACE and frame.data is not None:
            frame.data = rest
        frame.raw = rest
        return frame

    # -- judging -------------------------------------------------------------------------------------------------------
    @property
    def due(self):
        if self.blocked or not self.judged or self.judging >= 0 or not self.content.fresh_bytes:
            return False
        return self.ended or self.content.fresh_bytes >= self.window or self.waiting_bytes >= self.limit

    def texts(self):
        cdef ChoiceText choice
        found = []
        for choice in self.content.choices.values():
            if choice.fresh:
                text = choice.tail + b"".join(choice.fresh)
                choice.fresh.clear()
                choice.tail = text[char_start(text, len(text) - self.overlap):] if len(text) > self.overlap else text
                found.append(text)
        self.content.fresh_bytes = 0
        self.judging = len(self.waiting)
        return found

    def passed(self):
        if self.judging < 0 or self.blocked:
            return
        count, self.judging = self.judging, -1
        self._let_go(count)
        while self.waiting and (<StreamFrame>self.waiting[0]).pieces is None:
            self._let_go(1)
        if self.ended and not self.content.fresh_bytes:
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
        self.content.choices.clear()
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
        cdef TextPiece piece
        if self.scanner is None:
            self.out.append(frame.raw)
            return 0
        if frame.pieces is not None:
            for piece in frame.pieces:
                choice = piece.choice
                if choice.text is None:
                    choice.text, choice.edits = b"", []
                    choice.base = choice.settled = piece.low
                choice.text = <bytes>choice.text + <bytes>piece.text
                piece.text = None
                choice.changed = True
                choice.closed = False
        if frame.ends is not None:
            for choice in frame.ends:
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
        for choice in self.content.choices.values():
            if choice.text is not None and (choice.changed or choice.closed or all_of_it):
                self._settle_one(choice, all_of_it or choice.closed)
        return self._release()

    cdef int _settle_one(self, ChoiceText choice, bint all_of_it) except -1:
        """Find the masks in the part of the text that later bytes cannot change."""
        cdef Py_ssize_t n = len(choice.text)
        cdef Py_ssize_t settled = choice.settled - choice.base
        cdef Py_ssize_t safe = n
        cdef bint by_cut = False
        choice.changed = False
        if settled >= n:
            return 0
        self._watch(choice, n)
        if not all_of_it:
            safe = self._behind(choice, n)
            by_cut = choice.clean.at >= safe
            if by_cut:
                safe = choice.clean.at
            if safe <= settled:
                return 0
        if self._find(choice, safe if by_cut else n, &safe, by_cut):
            # A mask has made a text that may go on behind the cut, so as much is kept as without one, and scanned again.
            safe = self._behind(choice, n)
            if safe > settled:
                self._find(choice, n, &safe, False)
        elif safe > settled:
            choice.start = self._next_start(choice, safe, by_cut, all_of_it)
        if safe > settled:
            choice.settled = choice.base + safe
            choice.start = max(choice.start, safe - self.overlap)
            self._cut_off(choice, safe)
        return 0

    cdef Py_ssize_t _behind(self, ChoiceText choice, Py_ssize_t n):
        """Return the position in a text after which everything may belong to an unfinished match."""
        return char_start(choice.text, n - self.overlap) if n > self.overlap else 0

    cdef int _watch(self, ChoiceText choice, Py_ssize_t n) except -1:
        """Look at the bytes that are new in a text."""
        cdef Scanner scanner = self.scanner
        cdef const uint8_t* p = <const uint8_t*><const char*>choice.text
        if not scanner.pattern_rules:
            walk(p, n, &choice.clean)
        elif scanner.watch is not None:
            scanner.watch.walk(p, n, &choice.clean, scanner.order.count > 0)
        else:
            choice.clean.matched = choice.clean.walked = n
        return 0

    cdef bint _find(self, ChoiceText choice, Py_ssize_t stop, Py_ssize_t* safe, bint by_cut) except -1:
        """Add the masks of the text in front of `stop` that begin in front of `safe`, and change `safe` if one goes on.

        Returns True, without a change, if `stop` is a cut in the text, but in none that the masks have made of it.
        """
        cdef Py_ssize_t low, high, settled = choice.settled - choice.base
        cdef Scanner scanner = self.scanner
        cdef list edits, found = [], steps = [] if by_cut and scanner.stages > 1 else None
        edits = scanner.edits_between(choice.text, choice.start, stop, choice.clean.matched > choice.start, steps)
        for text in steps or ():
            if scanner.watch is not None and scanner.watch.under_way(text, choice.start):
                return True
        for low, high, replacement, _rule in edits:
            if high <= settled:
                continue                     # already masked; the text is only context for later matches
            if low >= safe[0]:
                break
            if low < settled:
                low = settled
            if high > safe[0]:
                if high - low <= LONG_MATCH:
                    safe[0] = low            # the match may continue
                    break
                safe[0] = high
            found.append((choice.base + low, choice.base + high, replacement))
        if found:
            choice.edits += found
            choice.edited = found[len(found) - 1][1]
            self.masks += len(found)
        return False

    cdef Py_ssize_t _next_start(self, ChoiceText choice, Py_ssize_t safe, bint by_cut, bint all_of_it):
        """Return where the next scan of a text begins, which is settled up to `safe`.

        From a cut on it finds what a scan of the whole text finds. Without a cut that is so for patterns, as far as no match
        is longer than what was kept behind `safe`. Behind a mask the rules that follow see another text than the one that
        is kept, so the scan does not begin where they look back to it.
        """
        cdef Scanner scanner = self.scanner
        cdef bint numbers = scanner.order.count > 0
        cdef Py_ssize_t back = 0 if scanner.stages == 1 else CONTEXT if numbers else 1
        cdef Py_ssize_t start = choice.start
        if choice.clean.at <= safe:
            start = max(start, choice.clean.at)
        if not by_cut and not all_of_it and not numbers:
            start = safe
        return choice.start if choice.edited > choice.base + start - back else start

    cdef int _cut_off(self, ChoiceText choice, Py_ssize_t settled) except -1:
        """Let go of text that no later match needs."""
        cdef Py_ssize_t cut = choice.start - CONTEXT
        if cut <= 0 or settled < SCANNED:
            return 0                         # little is carried along more cheaply than it is copied
        cut = char_start(choice.text, cut)
        choice.text = choice.text[cut:]
        choice.base += cut
        choice.clean.at = max(choice.clean.at - cut, 0)
        choice.clean.walked -= cut
        choice.clean.matched = max(choice.clean.matched - cut, 0)
        choice.start -= cut
        return 0

    cdef int _release(self) except -1:
        cdef StreamFrame frame
        cdef TextPiece piece
        cdef Py_ssize_t count = 0
        for frame in self.held:
            if frame.pieces is not None:
                piece = None
                for piece in frame.pieces:
                    if piece.high > piece.choice.settled:
                        break
                if piece.high > piece.choice.settled:
                    break
            self.out.append(self._masked(frame))
            self.held_bytes -= len(frame.raw)
            count += 1
        if count:
            del self.held[:count]
        return 0

    cdef bytes _masked(self, StreamFrame frame):
        cdef TextPiece piece
        cdef Py_ssize_t at
        cdef list changes = []
        if frame.pieces is not None:
            for piece in frame.pieces:
                if piece.choice.edits:
                    self._mask_piece(frame, piece, changes)
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
        if frame.form == IN_PLACE:
            return data
        if frame.form == IN_A_FRAME:
            return reframed(frame.raw, data)
        return websocket_frame(data) if frame.form == IN_A_MESSAGE else several_lines(frame.raw, data)

    def _mask_piece(self, StreamFrame frame, TextPiece piece, list changes):
        """Apply the edits of a choice to its piece, and keep those that go on behind it."""
        cdef Py_ssize_t low = piece.low
        cdef Py_ssize_t high = piece.high
        edits = []
        kept = []
        for first, last, replacement in piece.choice.edits:
            if first < high and last > low:
                edits.append((max(first, low) - low, min(last, high) - low, replacement if last <= high else b""))
            if last > high:
                kept.append((first, last, replacement))
        piece.choice.edits = kept
        if edits:
            changes.append((piece.start, piece.stop, splice(frame.data, piece.start, piece.stop, edits)))

cdef bytes several_lines(bytes raw, bytes data):
    """Return the block with its data lines joined into one."""
    lines = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    kept = [line for line in lines if line and not line.startswith(b"data")]
    return b"\n".join([*kept, b"data: " + data.replace(b"\n", b" "), b"", b""])
