"""Profiles, read back by another implementation of the format."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.headgate.dialect.pprof_rig import read

from headgate.dialect.pprof import CPU, HEAP, Profile, StackFrame

MAIN = StackFrame("main", "a/main.py", 3)
CALL = StackFrame("call;ü", "a/call.py", 0)




def test_samples_of_one_stack_are_summed_up() -> None:
    found = Profile(CPU, ("cpu", "nanoseconds"), 10_000_000)
    found.add([CALL, MAIN], [2])
    found.add([CALL, MAIN], [3])
    found.add([MAIN], [1], (("process", "worker 0"),))
    assert found.total == [6]


@pytest.mark.timeout(600)
def test_another_implementation_reads_every_field(tmp_path: Path) -> None:
    found = Profile(CPU, ("cpu", "nanoseconds"), 10_000_000, 1_700_000_000_000_000_000, 2_000_000_000)
    found.add([CALL, MAIN], [200], (("process", "worker 0"),))
    found.add([MAIN], [1 << 40])
    text = read(tmp_path, found.encode(), "-raw")
    assert "PeriodType: cpu nanoseconds" in text
    assert "Period: 10000000" in text
    assert "Duration: 2s" in text
    assert "cpu/count" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["200:", "1", "2"] in lines
    assert ["1099511627776:", "2"] in lines
    assert "process:[worker 0]" in text
    assert "call;ü a/call.py:0" in text
    assert "main a/main.py:3" in text


@pytest.mark.timeout(600)
def test_an_empty_profile_is_valid(tmp_path: Path) -> None:
    found = Profile(HEAP, ("space", "bytes"), 524288)
    text = read(tmp_path, found.encode(), "-raw")
    assert "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt]" in text
