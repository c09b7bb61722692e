"""Changes of the texts in a body. All other bytes of the body are kept."""

from __future__ import annotations

from binascii import b2a_base64
from bisect import bisect_right
from collections.abc import Sequence

from headgate.dialect.llm.transcript.contract import NOWHERE, Piece, piece_text
from headgate_engine.guard.spans import check, splice

Edit = tuple[int, int, bytes]


class Changes:
    """Collects changes of one body, which `done()` applies."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._spans: dict[tuple[int, int], bytes] = {}
        self._raw = False

    def __bool__(self) -> bool:
        return bool(self._spans)

    def text(self, pieces: Sequence[Piece], joiner: bytes, edits: Sequence[Edit]) -> None:
        """Apply edits to the text of `pieces`, joined by `joiner`. The edits must be ascending and must not overlap.

        If an edit covers several pieces, the last one gets the replacement and the others lose the covered text. A
        piece without remaining text is removed if its item can be removed.
        """
        texts = [piece_text(self.body, piece) for piece in pieces]
        local: list[list[Edit]] = [[] for _ in pieces]
        lows = []
        at = 0
        for text in texts:
            lows.append(at)
            at += len(text) + len(joiner)
        first = 0
        for start, stop, replacement in edits:
            # Pieces and edits are ascending, so a piece that ends before this edit is not covered by any later one.
            while first < len(lows) and lows[first] + len(texts[first]) <= start:
                first += 1
            last, touched = first, -1
            while last < len(lows) and lows[last] < stop:
                low, high = lows[last], lows[last] + len(texts[last])
                if max(start, low) < min(stop, high):
                    local[last].append((max(start - low, 0), min(stop - low, high - low), b""))
                    touched = last
                last += 1
            if touched >= 0:
                low, high, _ = local[touched][-1]
                local[touched][-1] = (low, high, replacement)
            elif pieces:
                # The edit lies in a joiner, or it is an insertion.
                i = max(bisect_right(lows, start) - 1, 0)
                place = min(start - lows[i], len(texts[i]))
                local[i].append((place, place, replacement))
        for piece, text, changes in zip(pieces, texts, local, strict=True):
            if changes:
                self._piece(piece, text, changes)

    def _piece(self, piece: Piece, text: bytes, edits: list[Edit]) -> None:
        gone = len(text) == sum(stop - start for start, stop, _ in edits) and not any(new for _, _, new in edits)
        if gone and piece.element != NOWHERE:
            self._spans[piece.element] = b""
            return
        if piece.coded:
            self._spans[piece.coded, piece.stop - 1] = b2a_base64(_edited(text, edits), newline=False)
        elif piece.raw:
            self._raw = True
            for start, stop, new in edits:
                self._spans[piece.start + start, piece.start + stop] = new
        else:
            self._spans[piece.start, piece.stop] = splice(self.body, piece.start, piece.stop, edits)
        for start, stop, new in piece.clears:
            self._spans[start, stop] = new

    def done(self) -> bytes:
        """Return the new body. Raises PeekError (a ValueError) if changes of raw JSON have made it invalid."""
        parts, at = [], 0
        for (start, stop), new in sorted(self._spans.items()):
            if start < at:
                continue                          # within an item that is removed
            parts.append(self.body[at:start])
            parts.append(new)
            at = stop
        parts.append(self.body[at:])
        found = b"".join(parts)
        if self._raw:
            check(found)
        return found


def _edited(text: bytes, edits: Sequence[Edit]) -> bytes:
    at = 0
    parts: list[bytes] = []
    for start, stop, new in edits:
        parts += (text[at:start], new)
        at = stop
    return b"".join((*parts, text[at:]))


def difference(old: bytes, new: bytes) -> list[Edit]:
    """Return the shortest single edit that turns `old` into `new`, [] if they are equal. Both are UTF-8."""
    if old == new:
        return []
    before, after = old.decode("utf-8", "replace"), new.decode("utf-8", "replace")
    head = _same(before, after)
    tail = _same(before[head:][::-1], after[head:][::-1])
    start = len(before[:head].encode())
    stop = len(before[: len(before) - tail].encode())
    return [(start, stop, after[head : len(after) - tail].encode())]


def _same(one: str, other: str) -> int:
    """Return the length of the common prefix in characters."""
    # By halves, so that texts of megabytes are compared as memory.
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
