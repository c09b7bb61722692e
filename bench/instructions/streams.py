"""Counts the instructions that one event of a streamed reply costs in the modules that read it (callgrind).

Usage: python -m bench.instructions.streams [--only WORD] [--events 400] [--profile FOLDER]

Each event is a text delta that comes as a piece of its own. Cases: native replies, each pair of formats, guarded replies
(masks: all built-in scanners; pattern: these and a pattern, open: one that may always go on; judged: a judge that passes every
window), and translated replies behind guards; `calls`: each event brings a piece of a tool call's arguments. The connections
and the request around the stream are not part of the figures; bench.instructions.run has them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.micro.llm_translate import REQUESTS
from headgate.backend.llm.guards.stream import GuardedStream, machine
from headgate.dialect.llm import pairs
from headgate_drivers.llm import tap_stream
from headgate_engine.guard.scan import BUILTIN_NAMES, Scanner
from headgate_engine.llm.eventstream import encode_frame

Feed = Callable[[bytes], object]
Run = Callable[[list[bytes]], None]
WARM_EVENTS = 50
MARK = b"%d"
EVENTS = {
    "completions": b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
                   b'"delta":{"content":"token %d "},"finish_reason":null}]}\n\n',
    "messages": b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
                b'"text":"token %d "}}\n\n',
    "responses": b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":9,'
                 b'"item_id":"msg_1","output_index":0,"content_index":0,"delta":"token %d "}\n\n',
    "gemini": b'data: {"candidates":[{"content":{"parts":[{"text":"token %d "}],"role":"model"},"index":0}],"usageMetadata":'
              b'{"promptTokenCount":5,"totalTokenCount":5},"modelVersion":"m","responseId":"r"}\r\n\r\n',
}  # fmt: skip
NATIVE = ("completions", "messages", "responses", "gemini")
CONVERSE = b'{"contentBlockIndex":0,"delta":{"text":"token %d "},"p":"abcdefgh"}'
# Pieces of a tool call's arguments, and the events that open the call.
CHUNK = b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,' \
        b'"finish_reason":null}]}\n\n'
CALLS = {
    "completions": CHUNK % b'{"tool_calls":[{"index":0,"function":{"arguments":"token %d "}}]}',
    "messages": b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta",'
                b'"partial_json":"token %d "}}\n\n',
    "responses": b'event: response.function_call_arguments.delta\ndata: {"type":"response.function_call_arguments.delta",'
                 b'"sequence_number":9,"item_id":"fc_1","output_index":0,"delta":"token %d "}\n\n',
    "converse": b'{"contentBlockIndex":0,"delta":{"toolUse":{"input":"token %d "}},"p":"abcdefgh"}',
}  # fmt: skip
OPENINGS = {
    "completions": CHUNK % b'{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function",'
                           b'"function":{"name":"find","arguments":""}}]}',
    "messages": b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use",'
                b'"id":"toolu_1","name":"find","input":{}}}\n\n',
    "responses": b'event: response.output_item.added\ndata: {"type":"response.output_item.added","output_index":0,"item":'
                 b'{"type":"function_call","id":"fc_1","call_id":"call_1","name":"find","arguments":""}}\n\n',
}  # fmt: skip


def frame(event: str, payload: bytes) -> bytes:
    return encode_frame({":event-type": event, ":content-type": "application/json", ":message-type": "event"}, payload)


OPENINGS["converse"] = frame("contentBlockStart", b'{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t1","name":"find"}}}')


def events(form: str, count: int, calls: bool = False) -> list[bytes]:
    """Return so many deltas of a format, of text or of a call's arguments."""
    if form == "converse":
        payload = CALLS[form] if calls else CONVERSE
        found = [frame("contentBlockDelta", payload % number) for number in range(count)]
    else:
        found = [(CALLS if calls else EVENTS)[form].replace(MARK, b"%d" % number) for number in range(count)]
    return [OPENINGS[form], *found] if calls else found


def fed(feed: Feed) -> Run:
    """Return what feeds events one by one."""

    def run(pieces: list[bytes]) -> None:
        for piece in pieces:
            feed(piece)

    return run


def native(form: str) -> Run:
    return lambda pieces: void(tap_stream(pieces, form, lambda detail: detail.encode()))


def void(_found: object) -> None:
    """Drop a result."""


def translated(client: str, upstream: str) -> Callable[[bytes], bytes]:
    pair = pairs.PAIRS[client, upstream]
    return pair.stream(pair.request({**REQUESTS[client], "stream": True}, pairs.Options())).feed


def guarded(form: str, judged: bool, *patterns: str) -> Feed:
    rules = [("builtin", name) for name in BUILTIN_NAMES] + [("pattern", pattern) for pattern in patterns]
    scanner = None if judged else Scanner(rules)
    guard = machine(form, judged, scanner, (1024, 256))
    return GuardedStream(guard, lambda _texts: None, str, lambda: None).feed


def behind(first: Callable[[bytes], bytes], second: Feed) -> Feed:
    def feed(piece: bytes) -> object:
        told = first(piece)
        return second(told) if told else b""

    return feed


def cases() -> Iterator[tuple[str, str, Run]]:
    """Name, format of the provider's events, and what reads them."""
    for form in NATIVE:
        yield f"native {form}", form, native(form)
    for client, upstream in pairs.PAIRS:
        if pairs.PAIRS[client, upstream].streams and client in REQUESTS:
            yield f"{upstream} to {client}", upstream, fed(translated(client, upstream))
            if upstream in CALLS:
                yield f"calls {upstream} to {client}", upstream, fed(translated(client, upstream))
    for form in NATIVE:
        yield f"masks {form}", form, fed(guarded(form, judged=False))
        yield f"judged {form}", form, fed(guarded(form, judged=True))
        yield f"pattern {form}", form, fed(guarded(form, False, r"(?i)blue heron"))
        yield f"pattern open {form}", form, fed(guarded(form, False, r"[a-z0-9 ]+:[0-9]+"))
        if form in CALLS:
            yield f"calls masks {form}", form, fed(guarded(form, judged=False))
    for client, upstream in (("messages", "completions"), ("completions", "messages"), ("responses", "completions")):
        both = translated(client, upstream)
        yield f"masks {upstream} to {client}", upstream, fed(behind(both, guarded(client, judged=False)))
        both = translated(client, upstream)
        yield f"judged {upstream} to {client}", upstream, fed(behind(both, guarded(client, judged=True)))


def child(only: str, count: int) -> None:
    """Run each case when the parent says so; a case is warm when its name is printed."""
    for name, form, run in cases():
        if only in name:
            made = events(form, WARM_EVENTS + count, name.startswith("calls"))
            run(made[:WARM_EVENTS])
            print(name, flush=True)
            sys.stdin.readline()
            run(made[WARM_EVENTS:])
            print("done", flush=True)
            sys.stdin.readline()


def control(pid: int, *words: str) -> None:
    subprocess.run(["callgrind_control", *words, str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def totals(dump: Path) -> int:
    """Return the instructions that a file of callgrind counts."""
    for line in dump.read_text().splitlines():
        if line.startswith("totals:"):
            return int(line.split()[1])
    raise ValueError(f"{dump} has no totals")


def main(arguments: list[str] | None = None) -> None:
    """Count and print, one line per case."""
    parser = argparse.ArgumentParser(prog="python -m bench.instructions.streams", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--only", default="", help="only cases whose names contain this")
    parser.add_argument("--events", type=int, default=400)
    parser.add_argument("--profile", default="", help="folder for callgrind's files")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        child(options.only, options.events)
        return
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
        words = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out", sys.executable,
                 "-m", "bench.instructions.streams", "--child", "--only", options.only, "--events", str(options.events)]
        popen = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert popen.stdin is not None
        assert popen.stdout is not None
        try:
            for number, line in enumerate(popen.stdout, 1):
                if line.strip() == "done":
                    continue
                control(popen.pid, "-i", "on")
                popen.stdin.write("\n")
                popen.stdin.flush()
                popen.stdout.readline()
                control(popen.pid, "-i", "off")
                control(popen.pid, "-d")
                dump = max(Path(folder).glob("out.*"), key=lambda path: int(path.name.rsplit(".", 1)[1]))
                print(f"{line.strip():36} {totals(dump) / options.events:9,.0f} instructions", flush=True)
                if options.profile:
                    Path(options.profile).mkdir(parents=True, exist_ok=True)
                    shutil.copy(dump, Path(options.profile) / f"{number}-{line.strip().replace(' ', '-')}.callgrind")
                popen.stdin.write("\n")
                popen.stdin.flush()
        finally:
            popen.stdin.close()
            popen.wait()


if __name__ == "__main__":
    main()
