"""CPU profiles of the whole process tree: one py-spy for each process, merged into one profile.

py-spy reads the memory of the profiled process and stops it for each sample. Nothing is loaded into the gateway, so
profiling costs nothing while it is off.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import math
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from headgate.admin.running import ProfileError
from headgate.dialect.pprof import CPU, Profile, StackFrame

# A process that serves nobody is sampled less often, and each of its samples counts for more: every look of py-spy
# takes CPU time, whether there is something to see or not.
SELDOM: Final = 10
# Beyond the time of the capture: py-spy reads the symbols of all libraries first.
START_SECONDS: Final = 60.0
# For py-spy to end when it is asked to.
STOP_SECONDS: Final = 5.0
PR_SET_PTRACER: Final = 0x59616D61
# The kernel's clock of the CPU time of a process: the lowest bits of a clock's number (clock_getcpuclockid(3)).
CPUCLOCK_SCHED: Final = 2
FRAME: Final = re.compile(r"(.*) \((.*?)(?::(\d+))?\)")
DENIED: Final = re.compile(r"permission denied|operation not permitted|EPERM|\(os error 1\)|\(os error 13\)", re.I)
# Waits until it may look at its target: py-spy ends at once when it may not. No shell: an image may have none.
GATE: Final = "import os, sys; os.read(0, 1) and os.execv(sys.argv[1], sys.argv[1:])"
HELP: Final = (
    "profiling needs to trace the gateway's processes (ptrace), which is not permitted here. Give the container "
    "CAP_SYS_PTRACE (docker run --cap-add SYS_PTRACE; Kubernetes securityContext.capabilities.add: [SYS_PTRACE]), "
    "and on a kernel before 4.8 a seccomp profile that lets ptrace and process_vm_readv through"
)


class ProfiledProcess(NamedTuple):
    """A process to profile. `permit(pid)` allows process `pid` to trace it; permit(0) revokes that. `seldom`: every
    SELDOM-th sample suffices."""

    label: str
    pid: int
    permit: Callable[[int], Awaitable[None]]
    seldom: bool = False

    def rate(self, frequency: int) -> int:
        """Return the samples per second of this process in a profile of that frequency."""
        return max(1, round(frequency / SELDOM)) if self.seldom else frequency


def permit(pid: int) -> None:
    """Allow process `pid` to trace this one where the Yama security module allows only parents; 0 revokes that."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)


async def permit_here(pid: int) -> None:
    """Call permit() for the current process."""
    permit(pid)


class CpuProfiler:
    """Makes one profile at a time."""

    def __init__(self) -> None:
        self._running = False

    async def profile(self, targets: list[ProfiledProcess], seconds: int, frequency: int) -> bytes:
        """Profile the processes for the given time, with `frequency` samples per second. Return a profile.proto
        message. Raises ProfileError."""
        if self._running:
            raise ProfileError("a profile is already running")
        self._running = True
        try:
            return await _profile(targets, seconds, frequency)
        finally:
            self._running = False


async def _profile(targets: list[ProfiledProcess], seconds: int, frequency: int) -> bytes:
    program = sampler()
    found = Profile(CPU, ("cpu", "nanoseconds"), 1_000_000_000 // frequency, time.time_ns())
    began = time.monotonic_ns()
    taken = [cpu_seconds(target.pid) for target in targets]
    with tempfile.TemporaryDirectory(prefix="headgate-profile-") as folder:
        words = [program, "record", "--duration", str(seconds), "--native", "--format", "raw", "--full-filenames"]
        jobs = [
            _record(
                [*words, "--rate", str(target.rate(frequency)), "--output", f"{folder}/{index}",
                 "--pid", str(target.pid)], target, seconds, place,
            )
            for index, (target, place) in enumerate(zip(targets, places(targets), strict=True))
        ]  # fmt: skip
        errors = [error for error in await asyncio.gather(*jobs) if error]
        spent = {target.label: _since(before, target.pid) for target, before in zip(targets, taken, strict=True)}
        files = [(target, Path(folder, str(index))) for index, target in enumerate(targets)]
        texts = [(target, file.read_text(errors="replace")) for target, file in files if file.exists()]
    denied = [error for error in errors if DENIED.search(error)]
    if denied or not texts:
        raise ProfileError(f"{HELP} ({denied[0]})" if denied else "; ".join(errors) or "py-spy wrote nothing")
    for target, text in texts:
        for stack, weight in weighed(list(stacks(text)), target.rate(frequency), frequency, spent[target.label]):
            found.add(stack, (weight,), (("process", target.label),))
    found.duration_ns = time.monotonic_ns() - began
    return found.encode()


def cpu_seconds(pid: int) -> float | None:
    """Return the CPU time of a process in seconds. Returns None if the process has ended or the kernel does not report
    it."""
    try:
        return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED)
    except OSError:
        return None


def _since(before: float | None, pid: int) -> float:
    """Return the seconds of CPU time since `before`; without an end where they are not known."""
    after = cpu_seconds(pid)
    return math.inf if before is None or after is None else after - before


def weighed(
    found: list[tuple[list[StackFrame], int]], rate: int, frequency: int, spent: float
) -> Iterator[tuple[list[StackFrame], int]]:
    """Yield each stack with its number of samples in a profile of `frequency`, from those that py-spy took at `rate`.

    Together they never stand for more than `spent`, the seconds of CPU time that the process took. To py-spy a
    process that waits for a processor is as busy as one that runs; and where all processors are busy, py-spy is late
    for a sample, makes up for it with the next at once, and finds a process that was asleep not asleep again yet.
    What rounding takes from one stack goes to the next, so the sum stays true.
    """
    total = sum(count for _, count in found)
    factor = min(frequency / rate, spent * frequency / total) if total else 0.0
    seen = given = 0
    for stack, count in found:
        seen += count
        weight = round(seen * factor) - given
        given += weight
        if weight:
            yield stack, weight


async def _record(words: list[str], target: ProfiledProcess, seconds: int, place: set[int]) -> str | None:
    """Run py-spy for one process, pinned to these processors. Return the error text, if any."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", GATE, *words,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        # At the priority of its target: it must not wait for a processor while the target stands still.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(process.pid, place)
        await target.permit(process.pid)
        async with asyncio.timeout(seconds + START_SECONDS):
            _, told = await process.communicate(b"\n")
    except TimeoutError:
        return f"{target.label}: py-spy did not end in time"
    finally:
        if process.returncode is None:
            await _stop(process)
        await target.permit(0)
    if process.returncode == 0:
        return None
    return f"{target.label}: " + " ".join(told.decode(errors="replace").partition("Stack backtrace")[0].split())


def places(targets: list[ProfiledProcess]) -> list[set[int]]:
    """Return the processors for the py-spy of each target.

    Where the workers leave none free, each py-spy stays on one: moved about between busy processors, a sample takes it
    half as long again, with the target standing still. Else the kernel finds it a free one.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if sum(not target.seldom for target in targets) + 1 < len(allowed):
        return [set(allowed)] * len(targets)
    busy_first = sorted(targets, key=lambda target: target.seldom)
    return [{allowed[busy_first.index(target) % len(allowed)]} for target in targets]


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Stop py-spy, with SIGINT first: if killed during a sample, it could leave its target stopped."""
    for ask in (process.send_signal, lambda _signal: process.kill()):
        with contextlib.suppress(ProcessLookupError, TimeoutError):
            ask(signal.SIGINT)
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
                return


def sampler() -> str:
    """Return the path of py-spy. Raises ProfileError if it is not installed."""
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise ProfileError("py-spy is not installed")
    return found


def stacks(text: str) -> Iterator[tuple[list[StackFrame], int]]:
    """Yield the stacks of py-spy's `raw` format, leaf first, each with its number of samples."""
    for line in text.splitlines():
        path, _, count = line.rpartition(" ")
        if path and count.isdigit():
            yield [frame(word) for word in reversed(path.split(";"))], int(count)


def frame(text: str) -> StackFrame:
    """Return a frame of `name (file:line)` or `name (library)`."""
    found = FRAME.fullmatch(text)
    if found is None:
        return StackFrame(text, "", 0)
    return StackFrame(found[1], found[2], int(found[3] or 0))
