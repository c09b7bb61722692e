"""Whatever a client sends: a connection hands out the same events however its bytes are cut, or ends with an error."""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

from harness import corpus, mutated, run  # noqa: E402

from headgate_drivers.http2 import Http2Peer  # noqa: E402
from headgate_engine.http2.faults import ConnectionFault  # noqa: E402
from headgate_engine.http2.frames import PREFACE  # noqa: E402
from headgate_engine.http2.limits import Http2Limits  # noqa: E402

PIECES = [
    b"\0\0\0\4\0\0\0\0\0", b"\0\0\0\4\1\0\0\0\0", b"\0\0\4\x08\0\0\0\0\1\0\0\0\1", b"\0\0\4\3\0\0\0\0\1\0\0\0\x08",
    b"\0\0\3\0\1\0\0\0\1abc", b"\0\0\1\0\0\0\0\0\3a", b"\0\0\x08\6\0\0\0\0\0abcdefgh", b"\0\0\5\1\5\0\0\0\3\x82\x86\x84\x41\x01a",
    b"\0\0\6\4\0\0\0\0\0\0\4\0\0\0\1", b"\0\0\x08\7\0\0\0\0\0\0\0\0\0\0\0\0\0",
]
LIMITS = Http2Limits(window=70000, max_window=140000, max_streams=8, resets=50, oddities=50)


def said(data: bytes, cuts: list[int]) -> tuple[list[object], dict[object, bytes]]:
    """Return the events of a server and the content of each stream."""
    peer = Http2Peer(True, LIMITS, extended=True)
    events: list[object] = []
    content: dict[object, bytes] = {}
    for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True):
        fault = None
        try:
            peer.receive(data[start:stop])
        except ConnectionFault as caught:
            fault = caught
        for event in peer.heard:
            if event[0] == "data":
                assert isinstance(event[2], bytes)
                content[event[1]] = content.get(event[1], b"") + event[2]
            else:
                events.append(event)
        if fault is not None:
            peer.fault(fault.code, str(fault))
            events.append(("fault", fault.code))
            break
        peer.output()
    for event in events:
        # Answers to all that has ended, whatever has become of it.
        if isinstance(event, tuple) and event[0] == "end":
            peer.respond(event[1], [(b":status", b"200")])
            peer.send(event[1], b"answer")
            peer.end(event[1])
    peer.output()
    return events, content


def check(data: bytes, source: random.Random) -> None:
    """One input: what follows the preface."""
    whole = PREFACE + data
    cuts = sorted(source.randint(0, len(whole)) for _ in range(source.randint(1, 6)))
    assert said(whole, []) == said(whole, cuts)


def main() -> None:
    known = corpus(__file__, "corpus_session")
    run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
