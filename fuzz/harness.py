"""What every fuzz target shares: its options, its two ways of making inputs, and how bytes are spoilt.

By default inputs are the target's corpus, spoilt at random. With `--guided` libFuzzer makes them from what it sees of the
code that they reach; ci/fuzz_guided.sh runs a target so, over an engine that counts edges and checks memory.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import random
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

Input = TypeVar("Input")
ROOT = Path(__file__).resolve().parents[1]
# Drivers (engine/headgate_drivers) are not installed. At the end: an engine that is built elsewhere goes first.
sys.path.append(str(ROOT / "engine"))
GUIDED = "--guided" in sys.argv[1:]
# What libFuzzer finds worth keeping, and inputs that fail: by target, and not part of the repository.
WORK = ROOT / "build" / "fuzz"
MAX_LENGTH = 4096
# Of one process with its sanitizers, in MB; and how long one input may take, in seconds.
MAX_MEMORY = 4096
MAX_SECONDS = 20


def corpus(target: str, name: str = "corpus") -> list[bytes]:
    """Return the inputs in the folder `corpus` (or `name`) beside that target."""
    return [path.read_bytes() for path in sorted((Path(target).parent / name).glob("*"))]


def observed(*packages: str) -> contextlib.AbstractContextManager[None]:
    """Within it, modules of these packages are imported with their branches reported to libFuzzer (guided runs only)."""
    if not GUIDED:
        return contextlib.nullcontext()
    return _libfuzzer().instrument_imports(include=list(packages), enable_loader_override=False)  # type: ignore[no-any-return]


def _libfuzzer():  # type: ignore[no-untyped-def]
    try:
        return importlib.import_module("atheris")
    except ImportError:
        sys.exit("guided runs need atheris: pip install --group fuzz")


def mutated(data: bytes, pieces: list[bytes], source: random.Random) -> bytes:
    """Return the bytes with one to six places changed; `pieces` are words of the language that is tried."""
    found = bytearray(data)
    for _ in range(source.randint(1, 6)):
        at = source.randint(0, len(found))
        kind = source.randrange(5)
        if kind == 0:
            found[at:at] = source.choice(pieces)
        elif kind == 1:
            del found[at : at + source.randint(1, 8)]
        elif kind == 2 and found:
            found[at % len(found)] = source.randrange(256)
        elif kind == 3:
            other = source.randint(0, len(found))
            found[at:at] = found[min(at, other) : max(at, other)][:200]
        else:
            found[at : at + source.randint(1, 4)] = source.choice(pieces)
    return bytes(found)


def run(
    about: str | None,
    make: Callable[[random.Random], Input],
    check: Callable[[Input, random.Random], None],
    first: Iterable[Input] = (),
    read: Callable[[bytes], Input] | None = None,
) -> None:
    """Check the `first` inputs, then made ones until the time is over; what `check` raises ends the program.

    In a guided run libFuzzer makes bytes and `read` turns them into an input; without it the bytes are the input.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--guided", action="store_true", help="let libFuzzer make the inputs")
    parser.add_argument("inputs", nargs="*", type=Path, help="files to check instead (guided: one is run as it is)")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    if options.guided:
        _guided(check, list(first), read, options)
        return
    source = random.Random(seed)
    if options.inputs:
        first = [_read(path.read_bytes(), read) for path in options.inputs]
        options.seconds = 0
    for found in first:
        _one(found, check, source, seed)
    deadline = time.monotonic() + options.seconds
    runs = 0
    while time.monotonic() < deadline:
        _one(make(source), check, source, seed)
        runs += 1
    print(f"{runs} inputs, seed {seed}, nothing found")


def _read(data: bytes, read: Callable[[bytes], Input] | None) -> Input:
    return read(data) if read is not None else data  # type: ignore[return-value]


def _one(found: Input, check: Callable[[Input, random.Random], None], source: random.Random, seed: int) -> None:
    try:
        check(found, source)
    except BaseException:
        print(f"seed {seed}, input {found!r}", file=sys.stderr)
        raise


def _guided(
    check: Callable[[Input, random.Random], None],
    first: list[Input],
    read: Callable[[bytes], Input] | None,
    options: argparse.Namespace,
) -> None:
    """Hand the process over to libFuzzer, which ends it: with 0 when the time is over, else after it has told the fault."""
    target = Path(sys.argv[0]).resolve()
    work = WORK / f"{target.parent.name}-{target.stem.removeprefix('fuzz_')}"
    found = work / "corpus"
    found.mkdir(parents=True, exist_ok=True)
    for one in first if read is None else ():
        (found / f"{zlib.crc32(one):08x}").write_bytes(one)  # type: ignore[arg-type,call-overload]
    libfuzzer = _libfuzzer()

    def test_one_input(data: bytes) -> None:
        # Cuts are drawn from the input itself, so that a file repeats its fault.
        check(_read(data, read), random.Random(zlib.crc32(data)))

    arguments = [f"-max_total_time={int(options.seconds)}", f"-max_len={MAX_LENGTH}", f"-artifact_prefix={work}/",
                 f"-rss_limit_mb={MAX_MEMORY}", f"-timeout={MAX_SECONDS}", "-print_final_stats=1"]  # fmt: skip
    if options.seed is not None:
        arguments.append(f"-seed={options.seed}")
    places = [str(path) for path in options.inputs] or [str(found), *(str(p) for p in target.parent.glob("corpus*"))]
    libfuzzer.Setup([str(target), *arguments, *places], test_one_input)
    libfuzzer.Fuzz()
