"""CPU profiles by py-spy."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import subprocess
import sys
import time

import pytest

from headgate.admin.running import ProfileError
from headgate.dialect.pprof import StackFrame
from headgate.server import profiling
from headgate.server.profiling import DENIED, CpuProfiler, ProfiledProcess, frame, permit_here, places, stacks

# Fields of profile.proto.
SAMPLES, STRINGS = 2, 6
SLEEPER = """
import ctypes, sys
ctypes.CDLL(None).prctl(4, int(sys.argv[1]), 0, 0, 0)      # PR_SET_DUMPABLE
print("ready", flush=True)
sys.stdin.read()
"""

# Whoever wants may trace it.
SPINNER = """
import ctypes, time
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
print("ready", flush=True)
while True: pass
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("run (asyncio/runners.py:118)", StackFrame("run", "asyncio/runners.py", 118)),
        ("epoll_pwait (libc.so.6)", StackFrame("epoll_pwait", "libc.so.6", 0)),
        ("<module> (/a b/(c)/x.py:1)", StackFrame("<module>", "/a b/(c)/x.py", 1)),
        ("operator()(int) (lib.so)", StackFrame("operator()(int)", "lib.so", 0)),
        ("0x7f00", StackFrame("0x7f00", "", 0)),
    ],
)
def test_frames(text: str, found: StackFrame) -> None:
    assert frame(text) == found


def test_stacks_are_leaf_first() -> None:
    text = "main (m.py:1);call (c.py:2) 12\n\nbroken\nmain (m.py:1) x\nmain (m.py:3) 1\n"
    main, call = StackFrame("main", "m.py", 1), StackFrame("call", "c.py", 2)
    assert list(stacks(text)) == [([call, main], 12), ([StackFrame("main", "m.py", 3)], 1)]


@pytest.mark.parametrize(
    "text",
    [
        "Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'",
        "Caused by: 0: Permission denied (os error 13)",
        "ptrace: Operation not permitted (os error 1)",
    ],
)
def test_a_refusal_is_known_as_one(text: str) -> None:
    assert DENIED.search(text)


def test_what_is_not_a_refusal_is_not_taken_for_one() -> None:
    assert not DENIED.search("No such file or directory (os error 2)")
    assert not DENIED.search("Resource (os error 11)")


@pytest.mark.skipif(shutil.which("setpriv") is None or os.geteuid() != 0, reason="needs setpriv and root")
def test_without_the_permission_the_answer_says_what_is_missing(tmp_path, monkeypatch) -> None:
    # A process that only CAP_SYS_PTRACE may look into, and a py-spy that has not got it.
    wrapper = tmp_path / "py-spy"
    wrapper.write_text(
        f'#!/bin/sh\nexec setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace {profiling.sampler()} "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setattr(profiling, "sampler", lambda: str(wrapper))
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPER, "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(ProfileError, match="CAP_SYS_PTRACE") as caught:
            asyncio.run(CpuProfiler().profile([ProfiledProcess("worker 0", child.pid, permit_here)], 1, 100))
        child.communicate("")
    assert "worker 0: " in str(caught.value)
    assert "backtrace" not in str(caught.value)


def test_a_process_that_is_gone_is_an_error_only_if_it_is_the_only_one(tmp_path) -> None:
    async def main() -> None:
        gone = subprocess.Popen([sys.executable, "-c", ""])  # noqa: ASYNC220
        gone.wait()
        target = ProfiledProcess("worker 1", gone.pid, permit_here)
        with pytest.raises(ProfileError, match="worker 1: "):
            await CpuProfiler().profile([target], 1, 100)
        own = ProfiledProcess("own", os.getpid(), permit_here)
        assert await CpuProfiler().profile([target, own], 1, 100)

    asyncio.run(main())


def test_one_profile_at_a_time() -> None:
    async def main() -> None:
        profiler = CpuProfiler()
        first = asyncio.ensure_future(profiler.profile([ProfiledProcess("own", os.getpid(), permit_here)], 1, 100))  # noqa: TID251
        await asyncio.sleep(0)
        with pytest.raises(ProfileError, match="already running"):
            await profiler.profile([], 1, 100)
        assert await first
        with pytest.raises(ProfileError, match="wrote nothing"):
            await profiler.profile([], 1, 100)

    asyncio.run(main())


@pytest.mark.parametrize(("frequency", "rate"), [(1, 1), (4, 1), (10, 1), (99, 10), (100, 10), (1000, 100)])
def test_a_process_that_serves_nobody_is_sampled_seldom(frequency: int, rate: int) -> None:
    assert ProfiledProcess("supervisor", 1, permit_here, seldom=True).rate(frequency) == rate
    assert ProfiledProcess("worker 0", 1, permit_here).rate(frequency) == frequency


def numbers(data: bytes) -> list[int]:
    """The varints of a text."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


def fields(data: bytes) -> list[tuple[int, bytes | int]]:
    """The fields of a message: those of a number, and those with a length."""
    found: list[tuple[int, bytes | int]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        begin = at
        while data[at] >= 0x80:
            at += 1
        at += 1
        return numbers(data[begin:at])[0]

    while at < len(data):
        key = varint()
        value = varint()
        if key & 7 == 2:
            found.append((key >> 3, data[at : at + value]))
            at += value
        else:
            found.append((key >> 3, value))
    return found


def values(data: bytes) -> dict[str, int]:
    """Sums of the samples of a profile by process."""
    strings = [value for tag, value in fields(data) if tag == STRINGS]
    found: dict[str, int] = {}
    for tag, sample in fields(data):
        if tag == SAMPLES:
            parts = dict(fields(sample))
            label = strings[dict(fields(parts[3]))[2]].decode()
            found[label] = found.get(label, 0) + numbers(parts[2])[0]
    return found


def test_a_sample_stands_for_the_time_between_two(tmp_path, monkeypatch) -> None:
    # A sampler that misses nothing: 2 s at the rate it is told.
    wrapper = tmp_path / "py-spy"
    wrapper.write_text(
        '#!/bin/sh\nwhile [ $# -gt 0 ]; do case "$1" in --rate) rate=$2;; --output) out=$2;; esac; shift; done\n'
        'echo "main (m.py:1);call (c.py:2) $((rate * 2))" > "$out"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setattr(profiling, "sampler", lambda: str(wrapper))
    monkeypatch.setattr(profiling, "cpu_seconds", lambda _pid: None)
    targets = [ProfiledProcess("supervisor", 1, permit_here, seldom=True), ProfiledProcess("worker 0", 1, permit_here)]
    for frequency in (4, 99, 100, 1000):
        data = asyncio.run(CpuProfiler().profile(targets, 2, frequency))
        assert values(data) == {"supervisor": 2 * frequency, "worker 0": 2 * frequency}


def test_samples_are_cpu_time_however_busy_the_machine() -> None:
    # One that waits for its processor looks busy, and one that py-spy let go just now looks awake.
    busy = [SPINNER] * len(os.sched_getaffinity(0))
    texts = (SPINNER, SPINNER, SPINNER.replace("pass", "time.sleep(600)"), *busy)
    children = [subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) for text in texts]
    try:
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        targets = [
            ProfiledProcess("often", children[0].pid, permit_here), ProfiledProcess("seldom", children[1].pid, permit_here, seldom=True),
            ProfiledProcess("idle", children[2].pid, permit_here, seldom=True),
        ]  # fmt: skip
        for _ in range(5):      # a machine may be too busy for a single look
            before = [profiling.cpu_seconds(child.pid) or 0 for child in children[:3]]
            found = values(asyncio.run(CpuProfiler().profile(targets, 2, 100)))
            after = [profiling.cpu_seconds(child.pid) or 0 for child in children[:3]]
            spent = [100 * (end - begin) for end, begin in zip(after, before, strict=True)]
            if {"often", "seldom"} <= found.keys():
                break
    finally:
        for child in children:
            child.kill()
            child.communicate()
    assert 0 < found["often"] <= min(220, spent[0] + 1)
    assert 0 < found["seldom"] <= min(220, spent[1] + 1)
    assert found.get("idle", 0) <= spent[2] + 1


def test_cpu_seconds() -> None:
    before = profiling.cpu_seconds(os.getpid())
    assert before is not None
    begin = time.process_time()
    while time.process_time() - begin < 0.05:
        pass
    after = profiling.cpu_seconds(os.getpid())
    assert after is not None
    assert after - before >= 0.05
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    assert profiling.cpu_seconds(child.pid) is None


STACKS = [([StackFrame(name, "", 0)], count) for name, count in (("a", 1), ("b", 7), ("c", 1), ("d", 1))]


@pytest.mark.parametrize(
    ("rate", "spent", "found"),
    [
        (100, math.inf, {"a": 1, "b": 7, "c": 1, "d": 1}),
        (10, math.inf, {"a": 10, "b": 70, "c": 10, "d": 10}),
        (10, 1.0, {"a": 10, "b": 70, "c": 10, "d": 10}),
        (10, 0.5, {"a": 5, "b": 35, "c": 5, "d": 5}),
        # Half of what they claim: no stack with one sample is sure of its half, and the sum is right.
        (100, 0.05, {"b": 4, "d": 1}),
        (100, 0.004, {}),
        (100, 0.0, {}),
    ],
)
def test_samples_never_stand_for_more_than_the_time_spent(rate: int, spent: float, found: dict[str, int]) -> None:
    given = {stack[0].name: weight for stack, weight in profiling.weighed(STACKS, rate, 100, spent)}
    assert given == found
    assert not list(profiling.weighed([], rate, 100, spent))


def of(*seldom: bool) -> list[ProfiledProcess]:
    return [ProfiledProcess(str(index), index, permit_here, one) for index, one in enumerate(seldom)]


@pytest.mark.parametrize(
    ("processors", "targets", "found"),
    [
        # There is one for py-spy.
        ({0, 1, 2}, of(True, False), [{0, 1, 2}, {0, 1, 2}]),
        ({0, 1}, of(True), [{0, 1}]),
        # There is none: the workers' are spread first.
        ({0, 1}, of(True, False), [{1}, {0}]),
        ({3, 5}, of(True, False, False, False), [{5}, {3}, {5}, {3}]),
        ({7}, of(True, False), [{7}, {7}]),
    ],
)
def test_py_spy_stays_on_one_processor_where_none_is_free(monkeypatch, processors, targets, found) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: processors)
    assert places(targets) == found


def test_a_sampler_runs_in_its_place_at_the_priority_of_its_target(tmp_path, monkeypatch) -> None:
    # Behind others on a full machine it would hold its target: the admin server stood still for seconds.
    wrapper = tmp_path / "py-spy"
    wrapper.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        "place, priority = sorted(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0)\n"
        "open(sys.argv[sys.argv.index('--output') + 1], 'w').write(f'at {place} priority {priority} 1\\n')\n"
    )
    wrapper.chmod(0o755)
    monkeypatch.setattr(profiling, "sampler", lambda: str(wrapper))
    monkeypatch.setattr(profiling, "cpu_seconds", lambda _pid: None)
    one = max(os.sched_getaffinity(0))
    monkeypatch.setattr(profiling, "places", lambda targets: [{one}] * len(targets))
    targets = [ProfiledProcess("supervisor", 1, permit_here, seldom=True), ProfiledProcess("worker 0", 1, permit_here)]
    data = asyncio.run(CpuProfiler().profile(targets, 1, 100))
    found = [value.decode() for tag, value in fields(data) if tag == STRINGS and isinstance(value, bytes)]
    assert f"at [{one}] priority {os.getpriority(os.PRIO_PROCESS, 0)}" in found
    assert sum(text.startswith("at [") for text in found) == 1
