"""Symbols of ELF files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headgate.dialect.elf import Symbols
from headgate_engine.profile import heap

LIBRARY = Path(heap.__file__)


def known() -> list[tuple[str, int, int]]:
    """(name, offset in the file, size) of functions, as binutils sees them."""
    found = []
    text = subprocess.run(["readelf", "-sW", str(LIBRARY)], capture_output=True, text=True, check=True).stdout
    sections = subprocess.run(["readelf", "-SW", str(LIBRARY)], capture_output=True, text=True, check=True).stdout
    code = next(line.split("]")[1].split() for line in sections.splitlines() if " .text " in line)
    shift = int(code[2], 16) - int(code[3], 16)
    for line in text.splitlines():
        words = line.split()
        if len(words) == 8 and words[3] == "FUNC" and words[6].isdigit() and int(words[2]) > 16:
            found.append((words[7], int(words[1], 16) - shift, int(words[2])))
    return [entry for entry in found if entry[1] >= int(code[3], 16)]


def test_functions_have_the_names_that_binutils_gives_them() -> None:
    symbols = Symbols(LIBRARY.read_bytes())
    functions = known()
    assert any("samples" in name for name, _, _ in functions)
    names: dict[int, set[str]] = {}
    for name, start, _ in functions:
        names.setdefault(start, set()).add(name)
    for _, start, size in functions:
        assert symbols.name(start) in names[start]
        assert symbols.name(start + size - 1) in names[start]


def test_what_lies_in_no_function_has_no_name() -> None:
    symbols = Symbols(LIBRARY.read_bytes())
    assert symbols.name(0) is None
    assert symbols.name(1 << 40) is None


@pytest.mark.parametrize("cut", [0, 3, 10, 63, 64, 100, 5000, -1, -100])
def test_a_broken_file_has_no_functions_and_raises_nothing(cut: int) -> None:
    data = LIBRARY.read_bytes()
    Symbols(data[:cut]).name(5000)


def test_garbage_raises_nothing() -> None:
    head = LIBRARY.read_bytes()[:64]
    for fill in (b"\xff", b"\x00", b"\x02"):
        assert Symbols(head + fill * 4096).name(100) is None
    assert Symbols(b"\x7fELF\x02\x01" + b"\xff" * 4096).name(1) is None
    assert Symbols(b"#!/bin/sh\n").name(1) is None
