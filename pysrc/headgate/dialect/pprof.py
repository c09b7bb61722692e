"""Profiles in the format of pprof: profile.proto of github.com/google/pprof, written without a protobuf library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

CPU: Final = (("cpu", "count"),)
HEAP: Final = (
    ("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"),
)  # fmt: skip


class Frame(NamedTuple):
    """One call. `line` 0: not known."""

    name: str
    file: str
    line: int


@dataclass(slots=True)
class Profile:
    """A profile under construction. `sample_types` and `period_type`: pairs of type and unit."""

    sample_types: tuple[tuple[str, str], ...]
    period_type: tuple[str, str]
    period: int
    time_ns: int = 0
    duration_ns: int = 0
    _samples: dict[tuple[tuple[int, ...], tuple[tuple[str, str], ...]], list[int]] = field(default_factory=dict)
    _frames: dict[Frame, int] = field(default_factory=dict)
    _strings: dict[str, int] = field(default_factory=lambda: {"": 0})

    def add(self, stack: Iterable[Frame], values: Sequence[int], labels: tuple[tuple[str, str], ...] = ()) -> None:
        """Add a sample; `stack` begins with the leaf. Samples of one stack and labels are summed up."""
        ids = tuple(self._frames.setdefault(frame, len(self._frames) + 1) for frame in stack)
        found = self._samples.setdefault((ids, labels), [0] * len(self.sample_types))
        for index, value in enumerate(values):
            found[index] += value

    @property
    def total(self) -> list[int]:
        """The sum of all samples by type."""
        return [sum(values[index] for values in self._samples.values()) for index in range(len(self.sample_types))]

    def encode(self) -> bytes:
        """Return the message."""
        out = bytearray()
        for pair in self.sample_types:
            out += _message(1, self._pair(pair))
        for (ids, labels), values in self._samples.items():
            sample = _packed(1, ids) + _packed(2, values)
            for key, text in labels:
                sample += _message(3, _number(1, self._string(key)) + _number(2, self._string(text)))
            out += _message(2, sample)
        functions = bytearray()
        for frame, number in self._frames.items():
            line = _number(1, number) + _number(2, frame.line)
            out += _message(4, _number(1, number) + _message(4, line))
            name = self._string(frame.name)
            functions += _message(
                5, _number(1, number) + _number(2, name) + _number(3, name) + _number(4, self._string(frame.file))
            )
        out += functions
        # Every string must be known before the table is written; the table's order is that of their numbers.
        tail = _message(11, self._pair(self.period_type)) + _number(12, self.period)
        tail += _number(14, self._string(self.sample_types[-1][0]))
        for text in self._strings:
            out += _message(6, text.encode("utf-8", "replace"))
        return bytes(out + _number(9, self.time_ns) + _number(10, self.duration_ns) + tail)

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _pair(self, pair: tuple[str, str]) -> bytes:
        return _number(1, self._string(pair[0])) + _number(2, self._string(pair[1]))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(tag: int, value: int) -> bytes:
    """A field with a number; zero is the default and is left out."""
    return _varint(tag << 3) + _varint(value) if value else b""


def _message(tag: int, body: bytes) -> bytes:
    return _varint(tag << 3 | 2) + _varint(len(body)) + body


def _packed(tag: int, values: Iterable[int]) -> bytes:
    return _message(tag, b"".join(_varint(value) for value in values))
