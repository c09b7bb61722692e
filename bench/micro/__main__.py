"""Each engine module against its oracle, on the same input. Usage: python -m bench.micro [--out FILE]"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import h11

from headgate_engine.http1.codec import SERVER, PythonCodec, bench_parse
from headgate_engine.limit.bucket import TokenBucket
from headgate_engine.peek.json import ChatPeek, UsagePeek
from headgate_engine.route.table import RouteRule, RouteTable
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.histogram import Histogram
from headgate_engine.shared.segment import Segment
from headgate_engine.sse.decode import SseDecoder

HEAD = (
    b"GET /some/path?x=1 HTTP/1.1\r\nHost: example.test\r\nUser-Agent: bench/1\r\nAccept: */*\r\n"
    b"Connection: keep-alive\r\n"
    + b"".join(b"X-Header-%d: value number %d\r\n" % (i, i) for i in range(6))
    + b"\r\n"
)
CHAT = json.dumps({"model": "gpt-4", "stream": True, "messages": [{"role": "user", "content": "x" * 940}]}).encode()
ANSWER = json.dumps({"choices": [{"message": {"content": "y" * 800}}], "usage": {"prompt_tokens": 9}}).encode()
EVENT = b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"text":"' + b"z" * 120 + b'"}}\n\n'
ROUTES = [(f"/team{i % 8}/service{i}", i) for i in range(10_000)]


def best(run: Callable[[], object], seconds: float = 0.15, rounds: int = 5) -> float:
    """Nanoseconds per call: the best of some rounds, each long enough to time."""
    count = 1
    while True:
        started = time.perf_counter()
        for _ in range(count):
            run()
        taken = time.perf_counter() - started
        if taken > seconds / 4:
            break
        count *= 4
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(count):
            run()
        found.append((time.perf_counter() - started) / count * 1e9)
    return min(found)


def h11_request() -> None:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(HEAD)
    connection.next_event()
    connection.next_event()


def our_request() -> None:
    codec = PythonCodec(SERVER)
    codec.receive(HEAD)
    codec.next_event()
    codec.next_event()


def linear(path: str) -> int | None:
    found = None
    for prefix, target in ROUTES:
        if path == prefix or path.startswith(prefix + "/"):
            found = target
    return found


SPLIT = re.compile(rb"\r\n\r\n|\n\n")


def naive_sse() -> list[bytes]:
    return [
        b"\n".join(line[6:] for line in block.split(b"\n") if line.startswith(b"data: "))
        for block in SPLIT.split(EVENT)
    ]


def cases() -> list[tuple[str, Callable[[], object], Callable[[], object] | None, float]]:
    """Name, ours, oracle, calls of ours per run."""
    segment = Segment.create()
    table = RouteTable([RouteRule(path=path, target=target) for path, target in ROUTES])
    chat, usage, decoder = ChatPeek(), UsagePeek(), SseDecoder()
    counter = Counter(segment, b"bench\0")
    histogram = Histogram(segment, b"bench_h\0", (0.001, 0.01, 0.1, 1, 10))
    bucket = TokenBucket(segment, b"bench", 1 << 40, 1, 10**9)
    return [
        ("request head, parser only (10 fields)", lambda: bench_parse(HEAD, 100), None, 100),
        ("request head, events in Python, against h11", our_request, h11_request, 1),
        ("route among 10,000 prefixes, against a list", lambda: table.match("a.test", "GET", "/team7/service9999/x"),
         lambda: linear("/team7/service9999/x"), 1),
        ("model of a 1 KiB chat body, against json", lambda: chat.peek(CHAT), lambda: json.loads(CHAT), 1),
        ("usage of a 1 KiB answer, against json", lambda: usage.peek(ANSWER), lambda: json.loads(ANSWER), 1),
        ("one server-sent event, against split()", lambda: decoder.decode(EVENT), naive_sse, 1),
        ("token bucket take", lambda: bucket.take_at(1, 10**12), None, 1),
        ("counter add", counter.add, None, 1),
        ("histogram observe", lambda: histogram.observe(0.02), None, 1),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    rows = []
    for name, ours, oracle, calls in cases():
        mine = best(ours) / calls
        other = None if oracle is None else best(oracle)
        rows.append({"name": name, "ns": round(mine, 1), "oracle_ns": None if other is None else round(other, 1)})
        times = "" if other is None else f"{other:>12.0f} ns  x{other / mine:.1f}"
        print(f"{name:48} {mine:>10.0f} ns {times}", flush=True)
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
