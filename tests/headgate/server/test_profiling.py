"""CPU profiles by py-spy."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys

import pytest

from headgate.admin.running import ProfileError
from headgate.dialect.pprof import Frame
from headgate.server import profiling
from headgate.server.profiling import DENIED, CpuProfiler, Target, frame, permit_here, stacks

SLEEPER = """
import ctypes, sys
ctypes.CDLL(None).prctl(4, int(sys.argv[1]), 0, 0, 0)      # PR_SET_DUMPABLE
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("run (asyncio/runners.py:118)", Frame("run", "asyncio/runners.py", 118)),
        ("epoll_pwait (libc.so.6)", Frame("epoll_pwait", "libc.so.6", 0)),
        ("<module> (/a b/(c)/x.py:1)", Frame("<module>", "/a b/(c)/x.py", 1)),
        ("operator()(int) (lib.so)", Frame("operator()(int)", "lib.so", 0)),
        ("0x7f00", Frame("0x7f00", "", 0)),
    ],
)
def test_frames(text: str, found: Frame) -> None:
    assert frame(text) == found


def test_stacks_are_leaf_first() -> None:
    text = "main (m.py:1);call (c.py:2) 12\n\nbroken\nmain (m.py:1) x\nmain (m.py:3) 1\n"
    main, call = Frame("main", "m.py", 1), Frame("call", "c.py", 2)
    assert list(stacks(text)) == [([call, main], 12), ([Frame("main", "m.py", 3)], 1)]


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
            asyncio.run(CpuProfiler().profile([Target("worker 0", child.pid, permit_here)], 1, 100))
        child.communicate("")
    assert "worker 0: " in str(caught.value)
    assert "backtrace" not in str(caught.value)


def test_a_process_that_is_gone_is_an_error_only_if_it_is_the_only_one(tmp_path) -> None:
    async def main() -> None:
        gone = subprocess.Popen([sys.executable, "-c", ""])  # noqa: ASYNC220
        gone.wait()
        target = Target("worker 1", gone.pid, permit_here)
        with pytest.raises(ProfileError, match="worker 1: "):
            await CpuProfiler().profile([target], 1, 100)
        own = Target("own", os.getpid(), permit_here)
        assert await CpuProfiler().profile([target, own], 1, 100)

    asyncio.run(main())


def test_one_profile_at_a_time() -> None:
    async def main() -> None:
        profiler = CpuProfiler()
        first = asyncio.ensure_future(profiler.profile([Target("own", os.getpid(), permit_here)], 1, 100))  # noqa: TID251
        await asyncio.sleep(0)
        with pytest.raises(ProfileError, match="already running"):
            await profiler.profile([], 1, 100)
        assert await first
        with pytest.raises(ProfileError, match="wrote nothing"):
            await profiler.profile([], 1, 100)

    asyncio.run(main())
