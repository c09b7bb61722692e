"""Whatever the text: what is read line by line is what libyaml's events come to, places included."""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

from harness import corpus, mutated, observed, run  # noqa: E402

with observed("headgate.document", "headgate_engine.document", "yaml"):
    from headgate.document.events import read_events
    from headgate.document.nodes import DocumentNode
    from headgate.document.read import read_plain

PIECES = [b"\n", b"  ", b" ", b"- ", b": ", b":", b"{", b"}", b"[", b"]", b", ", b'"', b"'", b"\\", b" #", b"#", b"&a ", b"*a", b"<<: ",
          b"!!str ", b"|\n", b">-\n", b"---", b"...", b"%", b"~", b"true", b"0x1f", b"1e3", b"${A}", b"$$", b"\t", b"\r\n",
          b"\xc3\xa9", b"\xc2\x85", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"? ", b"a: b\n", b"- a\n", b"@", b"`"]  # fmt: skip
ENVIRON = {"A": "1"}


def shown(node: DocumentNode) -> object:
    value = node.value
    inner: object = repr(value)
    if isinstance(value, list):
        inner = [shown(item) for item in value]
    elif isinstance(value, dict):
        inner = [(key, entry.line, entry.column, shown(entry.node)) for key, entry in value.items()]
    return inner, node.line, node.column, node.loose, node.expanded


def check(data: bytes, _: random.Random) -> None:
    """One input."""
    text = data.decode("utf-8", "replace")
    quick = read_plain(text, ENVIRON)
    if quick is not None:
        whole = read_events(text, "x", ENVIRON)
        assert not whole.anchored
        assert shown(quick) == shown(whole.root)


def main() -> None:
    known = corpus(__file__) + [path.read_bytes() for path in sorted((ROOT / "examples").glob("*.yaml"))]
    run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
