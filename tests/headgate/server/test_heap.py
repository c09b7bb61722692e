"""From samples to a heap profile."""

from __future__ import annotations

import gzip
import json
import math
import os
from pathlib import Path

import pytest
from tests.headgate.dialect.pprof_rig import read

from headgate.server import heap


@pytest.fixture(autouse=True)
def off():
    yield
    heap.switch(0)


def allocate(count: int) -> list[bytes]:
    return [bytes(10_000) for _ in range(count)]


@pytest.mark.parametrize(
    ("text", "rate"), [(None, 0), ("", 0), ("0", 0), ("524288", 524288), ("4096", 4096), (str(1 << 30), 1 << 30)]
)
def test_the_environment_gives_the_rate(text: str | None, rate: int) -> None:
    assert heap.rate_of(text) == rate


@pytest.mark.parametrize("text", ["x", "-1", "1", "4095", str((1 << 30) + 1), "1k", "\u0664096"])
def test_another_rate_is_an_error_that_names_the_variable(text: str) -> None:
    with pytest.raises(ValueError, match="HEAP_PROFILE_RATE: expected"):
        heap.rate_of(text)


def test_samples_stand_for_more() -> None:
    assert heap.scaled((0, 0, 0, 0), 1024) == (0, 0, 0, 0)
    assert heap.scaled((3, 3 << 30, 1, 1 << 30), 1024) == (3, 3 << 30, 1, 1 << 30)
    objects, size, _, _ = heap.scaled((10, 1000, 0, 0), 1000)
    assert objects == round(10 / (1 - math.exp(-0.1)))
    assert size == round(1000 / (1 - math.exp(-0.1)))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("__pyx_f_15headgate_engine_4link_7forward_8Exchange_respond", "Exchange_respond"),
        ("__pyx_pw_15headgate_engine_4link_7forward_8Exchange_3resume", "Exchange_resume"),
        ("__pyx_f_15headgate_engine_7profile_4heap_capture", "heap_capture"),
        ("PyObject_Malloc", "PyObject_Malloc"),
        ("__pyx_tp_new_Thing", "__pyx_tp_new_Thing"),
        ("__pyx_f_9", "__pyx_f_9"),
        ("__pyx_f_99999x", "__pyx_f_99999x"),
    ],
)
def test_compiled_functions_have_readable_names(name: str, shown: str) -> None:
    assert heap.readable(name) == shown


def test_nothing_sampled_is_an_empty_report() -> None:
    assert json.loads(heap.report()) == {"rate": 0, "frames": [], "samples": []}
    assert heap.totals([heap.report()]) is None


@pytest.mark.timeout(600)
def test_a_profile_names_python_and_c_code(tmp_path: Path) -> None:
    heap.switch(20_000)
    kept = allocate(2000)
    data = heap.build([("worker 0", os.getpid(), heap.report())], 20_000)
    sums = heap.totals([heap.report()])
    assert sums is not None
    assert abs(sums["inuse_space_bytes"] / 20_000_000 - 1) < 0.3
    assert gzip.decompress(data)
    text = read(tmp_path, data, "-sample_index=inuse_space", "-traces")
    assert "allocate" in text or "<listcomp>" in text
    assert "bytes_new" in text
    assert "heap_" not in text
    del kept


def test_switching_to_the_rate_it_has_keeps_what_was_sampled() -> None:
    heap.switch(4096)
    kept = allocate(100)
    before = len(json.loads(heap.report())["samples"])
    heap.switch(4096)
    assert len(json.loads(heap.report())["samples"]) >= before > 0
    heap.switch(0)
    assert heap.current_rate() == 0
    del kept
