"""What every fuzz target shares: its options, its loop, and how bytes are spoilt. A fault names its seed and its input."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

Input = TypeVar("Input")


def corpus(target: str) -> list[bytes]:
    """Return the inputs in the folder `corpus` beside that target."""
    return [path.read_bytes() for path in sorted((Path(target).parent / "corpus").glob("*"))]


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
) -> None:
    """Check the `first` inputs, then made ones until the time is over; what `check` raises ends the program."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    source = random.Random(seed)
    for found in first:
        _one(found, check, source, seed)
    deadline = time.monotonic() + options.seconds
    runs = 0
    while time.monotonic() < deadline:
        _one(make(source), check, source, seed)
        runs += 1
    print(f"{runs} inputs, seed {seed}, nothing found")


def _one(found: Input, check: Callable[[Input, random.Random], None], source: random.Random, seed: int) -> None:
    try:
        check(found, source)
    except BaseException:
        print(f"seed {seed}, input {found!r}", file=sys.stderr)
        raise
