"""Whatever the text: a configuration is loaded, or refused with ConfigErrors and nothing else."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

from harness import corpus, mutated, observed, run  # noqa: E402

with observed("headgate.config", "headgate.document", "yaml"):
    from headgate.config.load import TextSource, load
    from headgate.config.shape.root import ROOT as SHAPE

from headgate.errors import ConfigError, ConfigErrors  # noqa: E402

KEYS = ("binds", "port", "listeners", "routes", "matches", "backends", "policies", "host", "ai", "mcp", "name", "config")
PIECES = [f"{key}: ".encode() for key in KEYS]
PIECES += [b"\n", b"  ", b"- ", b": ", b"{", b"}", b"[", b"]", b",", b'"', b"'", b"&a ", b"*a", b"<<: ", b"!!str ", b"!!binary ",
           b"|\n", b">-\n", b"---\n", b"...\n", b"%YAML 1.1\n", b"# ", b"null", b"~", b"true", b"yes", b"0x1f", b"1_0", b"1e3",
           b".inf", b"-1", b"65536", b"1s", b"$HOME", b"${A}", b"${A:-b}", b"\t", b"\0", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"? ",
           b"2001-01-01", b"10.0.0.0/8", b"a.test:80", b"request.path == '/'", b"99999999999999999999"]  # fmt: skip
ENVIRON = {"HOME": "/nowhere", "A": "1"}
assert SHAPE is not None


def check(data: bytes, _: random.Random) -> None:
    """One input."""
    text = data.decode("utf-8", "replace")
    faults: tuple[ConfigError, ...]
    try:
        load(TextSource(text), environ=ENVIRON)
    except ConfigErrors as errors:
        faults = errors.errors
    else:
        return
    assert faults
    assert all(str(fault) for fault in faults)


def main() -> None:
    known = corpus(__file__) + [path.read_bytes() for path in sorted((ROOT / "examples").glob("*.yaml"))]
    # Relative names of files lead to an empty folder.
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.abspath(sys.argv[0])
        os.chdir(folder)
        sys.argv[0] = target
        run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
