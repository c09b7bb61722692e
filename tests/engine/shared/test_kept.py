"""The part of the shared memory that outlives all processes: one place for a key, whichever process asks first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate_drivers.account import spend
from headgate_engine.limit.account import SpendCell
from headgate_engine.limit.spending import uncarried
from headgate_engine.shared.kept import LEAST_BYTES, keep, lay_out_file
from headgate_engine.shared.segment import Segment


def laid_out(path: Path, size: int) -> Segment:
    file = os.open(path, os.O_CREAT | os.O_RDWR)
    os.ftruncate(file, size)
    return lay_out_file(file)


def names(number: int) -> tuple[str, str, str, str]:
    return f"k{number}", "", "m", "2028-02-28"


def test_what_is_kept_is_in_the_file_after_all_objects_are_gone(tmp_path: Path) -> None:
    segment = Segment.create(state_bytes=1 << 20)
    keep(segment, laid_out(tmp_path / "file", 1 << 20))
    assert segment.kept is not None
    other = Segment.attach(os.dup(segment.fd), 1, os.dup(segment.kept.fd))
    first, second = SpendCell(segment, names(1)), SpendCell(other, names(1))
    spend(first, 1, 2, 3)
    spend(second, 1, 2, 3)
    assert len(segment.descriptors) == 2
    assert not [key for key, _, _ in segment.entries() if key.startswith(b"spend")]
    # As after a kill: nothing was given back.
    data = (tmp_path / "file").read_bytes()
    del first, second, other, segment
    (tmp_path / "copy").write_bytes(data)
    found = Segment.attach(os.open(tmp_path / "copy", os.O_RDWR))
    [value] = [value for key, _, value in found.entries() if key.startswith(b"spend")]
    assert uncarried(value, 0) == (0, 2, 2, 4, 6)


def test_what_has_no_room_there_lies_in_memory_for_all_processes(tmp_path: Path) -> None:
    segment = Segment.create(state_bytes=1 << 22)
    keep(segment, laid_out(tmp_path / "file", LEAST_BYTES))
    assert segment.kept is not None
    other = Segment.attach(os.dup(segment.fd), 1, os.dup(segment.kept.fd))
    cells = [SpendCell(segment, names(number)) for number in range(2000)]
    for number, cell in enumerate(cells):
        spend(cell, 1, 1, 1)
        spend(SpendCell(other, names(number)), 1, 1, 1)
    inside, outside = (len([key for key, _, _ in one.entries() if key.startswith(b"spend")]) for one in (segment.kept, segment))
    assert min(inside, outside) > 100
    assert inside + outside == 2000
    # One that finds room there again stays where it was first made.
    last, cells[:1000] = cells[-1], []
    spend(SpendCell(other, names(1999)), 1, 1, 1)
    assert last.take(1)[1] == 3


def test_odd_files_are_refused(tmp_path: Path) -> None:
    for size in (0, LEAST_BYTES - 64, LEAST_BYTES + 1):
        with pytest.raises(ValueError):
            laid_out(tmp_path / f"file{size}", size)
    segment = Segment.create(state_bytes=1 << 20)
    kept = laid_out(tmp_path / "file", 1 << 20)
    with pytest.raises(ValueError):
        keep(segment, segment)
    keep(segment, kept)
    with pytest.raises(ValueError):
        keep(segment, kept)
    with pytest.raises(ValueError):
        lay_out_file(os.open(tmp_path / "file", os.O_RDWR))


def test_a_file_that_was_spoiled_does_not_lead_beyond_its_end(tmp_path: Path) -> None:
    """Whatever stands in it: no entry is read outside of it."""
    segment = laid_out(tmp_path / "file", LEAST_BYTES)
    holder = Segment.create(state_bytes=1 << 20)
    keep(holder, segment)
    cells = [SpendCell(holder, names(number)) for number in range(3)]
    data = (tmp_path / "file").read_bytes()
    assert cells
    seen = 0
    for at in range(0, 2048, 8):
        spoiled = data[:at] + b"\xff" * 7 + b"\x7f" + data[at + 8 :]
        (tmp_path / "spoiled").write_bytes(spoiled)
        file = os.open(tmp_path / "spoiled", os.O_RDWR)
        try:
            found = Segment.attach(file)
        except ValueError:
            os.close(file)
            continue
        seen += len(found.entries())
    assert seen
