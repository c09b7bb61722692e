"""headgate_engine.guard.scan against one pass of `re` per pattern."""

from __future__ import annotations

from collections.abc import Iterator

from tests.oracles import re_guard

from bench.micro.timing import Row, compare, same, show
from headgate_engine.guard.scan import BUILTIN_NAMES, Scanner

PROMPT = (
    "Summarise the minutes of the meeting of 2026-03-14 for everybody who could not be there; item 12 was put off. "
    "Keep names, leave out figures below 4.5 percent, and say in two sentences what was decided. "
) * 90
CLEAN = PROMPT.encode()[:16384]
MIXED = CLEAN[:8000] + b" mail jo@ex.io, card 4111 1111 1111 1111, ssn 219-09-9999 " + CLEAN[8058:]


def with_re(text: bytes) -> int:
    """How much the oracle finds."""
    return sum(len(find(text)) for find in (re_guard.emails, re_guard.ssns, re_guard.sins, re_guard.cards))


def patterns_only(text: bytes) -> int:
    """What `re` takes without any check of the numbers."""
    kinds = (re_guard.EMAIL, re_guard.SSN, re_guard.SIN, re_guard.CARD)
    return sum(1 for kind in kinds for _ in kind.finditer(text))


def rows() -> Iterator[Row]:
    builtins = [("builtin", name) for name in BUILTIN_NAMES]
    scanner = Scanner(builtins)
    words = Scanner([("pattern", rf"(?i)project[ -]{name}\b") for name in ("heron", "osprey", "kestrel", "merlin")])
    for name, text in (("nothing to find", CLEAN), ("three to find", MIXED)):
        same(len(scanner.edits(text)), with_re(text))
        yield compare(f"guard: 16 KiB, 5 built-ins, {name}", lambda t=text: scanner.edits(t),  # type: ignore[misc]
                      lambda t=text: patterns_only(t), against="re")  # type: ignore[misc]  # fmt: skip
    yield compare("guard: 16 KiB, 4 patterns", lambda: words.edits(CLEAN))


if __name__ == "__main__":
    show(rows())
