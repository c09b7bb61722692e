"""Function names from the symbol tables of 64-bit little-endian ELF files.

Source: https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html.
"""

from __future__ import annotations

import bisect
import struct
from typing import Final

HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT: Final = struct.Struct("<IIQQQQQQ")
SECTION: Final = struct.Struct("<IIQQQQIIQQ")
SYMBOL: Final = struct.Struct("<IBBHQQ")
PT_LOAD, SHT_SYMTAB, SHT_DYNSYM, STT_FUNC = 1, 2, 11, 2
MAGIC: Final = b"\x7fELF\x02\x01"


class Symbols:
    """The functions of one ELF file. A malformed file, or a file of another format, has no functions."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._segments: list[tuple[int, int, int]] = []
        functions: dict[int, tuple[int, str]] = {}
        try:
            if bytes(data[:6]) == MAGIC:
                self._read(data, functions)
        except (struct.error, IndexError, OverflowError, ValueError):
            functions.clear()
        self._starts = sorted(functions)
        self._functions = functions

    def _read(self, data: bytes | memoryview, functions: dict[int, tuple[int, str]]) -> None:
        head = HEADER.unpack_from(data)
        segments, sections, segment_size, segment_count = head[5], head[6], head[9], head[10]
        section_size, section_count = head[11], head[12]
        for index in range(segment_count):
            kind, _, offset, address, _, size, _, _ = SEGMENT.unpack_from(data, segments + index * segment_size)
            if kind == PT_LOAD:
                self._segments.append((offset, size, address))
        tables = [SECTION.unpack_from(data, sections + index * section_size) for index in range(section_count)]
        for table in tables:
            if table[1] in (SHT_SYMTAB, SHT_DYNSYM):
                names = tables[table[6]]
                text = bytes(data[names[4] : names[4] + names[5]])
                _functions(bytes(data[table[4] : table[4] + table[5]]), text, functions)

    def name(self, offset: int) -> str | None:
        """Return the name of the function whose code is at an offset of the file, or None."""
        address = next((a + offset - o for o, size, a in self._segments if o <= offset < o + size), None)
        if address is None:
            return None
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        start = self._starts[index]
        size, name = self._functions[start]
        return name if address < start + size or size == 0 else None


def _functions(table: bytes, names: bytes, found: dict[int, tuple[int, str]]) -> None:
    whole = len(table) - len(table) % SYMBOL.size
    for name, info, _, section, address, size in SYMBOL.iter_unpack(table[:whole]):
        if info & 15 == STT_FUNC and section and name:
            found.setdefault(address, (size, names[name : names.index(0, name)].decode("utf-8", "replace")))
