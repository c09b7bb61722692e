"""Profiles in the format of pprof, written without a protobuf library.

Source: https://github.com/google/pprof/blob/main/proto/profile.proto.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final, NamedTuple

from headgate.dialect.protobuf_wire import message, number, packed
from headgate.document.lazy_dataclass import dataclass

CPU: Final = (("cpu", "count"),)
HEAP: Final = (
    ("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"),
)  # fmt: skip


class StackFrame(NamedTuple):
    """One frame of a call stack. `line` 0 means unknown."""

    name: str
    file: str
    line: int


@dataclass(slots=True)
class Profile:
    """A profile under construction. `sample_types` and `period_type` are (type, unit) pairs. `period`: from one
    sample to the next, in the unit of `period_type`.
    """

    sample_types: tuple[tuple[str, str], ...]
    period_type: tuple[str, str]
    period: int
    time_ns: int = 0
    duration_ns: int = 0
    _samples: dict[tuple[tuple[int, ...], tuple[tuple[str, str], ...]], list[int]] = field(default_factory=dict)
    _frames: dict[StackFrame, int] = field(default_factory=dict)
    _strings: dict[str, int] = field(default_factory=lambda: {"": 0})

    def add(self, stack: Iterable[StackFrame], values: Sequence[int], labels: tuple[tuple[str, str], ...] = ()) -> None:
        """Add a sample with one value per sample type. `stack` begins with the leaf.

        Samples with equal stack and labels are added up.
        """
        ids = tuple(self._frames.setdefault(frame, len(self._frames) + 1) for frame in stack)
        found = self._samples.setdefault((ids, labels), [0] * len(self.sample_types))
        for index, value in enumerate(values):
            found[index] += value

    @property
    def total(self) -> list[int]:
        """The sums of all samples, one per sample type."""
        return [sum(values[index] for values in self._samples.values()) for index in range(len(self.sample_types))]

    def encode(self) -> bytes:
        """Return the encoded message, not compressed."""
        out = bytearray()
        for pair in self.sample_types:
            out += message(1, self._pair(pair))
        for (ids, labels), values in self._samples.items():
            sample = packed(1, ids) + packed(2, values)
            for key, text in labels:
                sample += message(3, number(1, self._string(key)) + number(2, self._string(text)))
            out += message(2, sample)
        functions = bytearray()
        for frame, place in self._frames.items():
            line = number(1, place) + number(2, frame.line)
            out += message(4, number(1, place) + message(4, line))
            name = self._string(frame.name)
            functions += message(
                5, number(1, place) + number(2, name) + number(3, name) + number(4, self._string(frame.file))
            )
        out += functions
        # The string table must be written after everything that adds strings to it. Its order is that of the indexes.
        tail = message(11, self._pair(self.period_type)) + number(12, self.period)
        tail += number(14, self._string(self.sample_types[-1][0]))
        for text in self._strings:
            out += message(6, text.encode("utf-8", "replace"))
        return bytes(out + number(9, self.time_ns) + number(10, self.duration_ns) + tail)

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _pair(self, pair: tuple[str, str]) -> bytes:
        return number(1, self._string(pair[0])) + number(2, self._string(pair[1]))
