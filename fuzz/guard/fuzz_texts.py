"""Whatever the body: its texts are those that the readers in Python find, and masks leave JSON that says the rest unchanged."""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "fuzz")]

from harness import corpus, mutated, run  # noqa: E402
from tests.oracles.transcripts.table import reply_texts, request_texts  # noqa: E402

from headgate_engine.guard.readers import FORMATS, read_texts  # noqa: E402
from headgate_engine.guard.scan import BUILTIN_NAMES, ScanBudget, Scanner  # noqa: E402
from headgate_engine.guard.search import masked  # noqa: E402
from headgate_engine.guard.spans import check as checked  # noqa: E402

NAMES = ("messages", "role", "content", "text", "type", "tool_calls", "function", "arguments", "input", "contents", "parts",
         "choices", "message", "candidates", "output", "system", "source", "data", "thought", "item", "query",
         "file", "file_data", "image_url", "url", "images", "inlineData", "mimeType", "media_type")  # fmt: skip
PIECES = [f'"{name}":'.encode() for name in NAMES]
PIECES += [b"{", b"}", b"[", b"]", b",", b'"', b"\\u0040", b"a@b.co", b'"tool_result"', b'"text"', b"null", b" ", b"219-09-9999", b'"data:text/plain;base64\\u002cYUBiLmNv"']
MASKS = Scanner([("builtin", name) for name in BUILTIN_NAMES])


def check(data: bytes, _: random.Random) -> None:
    """One body in each format."""
    for form in sorted(FORMATS):
        for reply in (False, True):
            try:
                oracle = (reply_texts if reply else request_texts)(data, form)
            except ValueError:
                oracle = None
            try:
                found = read_texts(data, form, reply=reply)
            except ValueError:
                assert oracle is None
                continue
            assert oracle is not None
            assert [found.text(index) for index in range(len(found))] == [run.text(data) for run in oracle.runs]
            new = masked(MASKS, found, ("systemPrompt", "messages"), ScanBudget())
            assert new is None or checked(new) == 123


def main() -> None:
    known = corpus(__file__, "corpus_texts")
    run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
