"""CPU time, memory and load."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.macro.cases import Case
from bench.macro.peers import OTHER_CORE

TICK = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for word in path.read_text().split():
            found += tree(int(word))
    return found


def cpu_us(pid: int) -> float:
    """User and system time of a process tree."""
    total = 0
    for each in tree(pid):
        try:
            words = Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += int(words[11]) + int(words[12])
    return total / TICK * 1e6


def memory_kb(pid: int) -> dict[str, int]:
    """Resident and proportional memory of a process tree."""
    rss = pss = 0
    for each in tree(pid):
        try:
            text = Path(f"/proc/{each}/smaps_rollup").read_text()
        except OSError:
            continue
        rss += int(re.search(r"^Rss:\s+(\d+)", text, re.M)[1])  # type: ignore[index]
        pss += int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1])  # type: ignore[index]
    return {"rss_kb": rss, "pss_kb": pss}


def request_bytes(case: Case) -> bytes:
    method = "GET" if case.body is None else "POST"
    lines = [f"{method} {case.path} HTTP/1.1", "host: bench.test", "connection: close"]
    lines += [f"{name}: {value}" for name, value in case.headers]
    if case.body is not None:
        lines.append(f"content-length: {len(case.body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (case.body or b"")


def answer(port: int, case: Case, seconds: float = 10.0) -> bytes:
    """One whole answer, to be sure that the right thing is measured."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as sock:
        sock.sendall(request_bytes(case))
        found = b""
        while EXPECTED[case.name] not in found and (piece := sock.recv(65536)):
            found += piece
    return found


EXPECTED = {
    "get-small": b"xxxxxx",
    "post-1k": b"x" * 1024,
    "post-16k": b"x" * 16384,
    "routes-10k": b"hello",
    "llm-chat-1k": b'"total_tokens":320',
    "sse-50": b"[DONE]",
    "mcp-call": b'"pong"',
}


def wait_right(port: int, case: Case, seconds: float = 30.0) -> float:
    """Wait for a right answer; the seconds that took. RuntimeError for a wrong one."""
    started = time.monotonic()
    found = b""
    while time.monotonic() - started < seconds:
        try:
            found = answer(port, case)
        except OSError:
            time.sleep(0.005)
            continue
        if b" 200 " in found[:20] and EXPECTED[case.name] in found:
            return time.monotonic() - started
        time.sleep(0.05)
    raise RuntimeError(f"{case.name} on port {port}: wrong answer {found[:300]!r}")


def lua(case: Case) -> str:
    body = "nil" if case.body is None else "[==[" + case.body.decode() + "]==]"
    fields = "".join(f'wrk.headers["{name}"] = "{value}"\n' for name, value in case.headers)
    return f'wrk.method = "{"GET" if case.body is None else "POST"}"\nwrk.body = {body}\n{fields}'


def load(case: Case, port: int, connections: int, seconds: float, folder: Path) -> dict[str, Any]:
    """Run wrk; what it says."""
    script = folder / "case.lua"
    script.write_text(lua(case))
    words = ["taskset", "-c", OTHER_CORE, "wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--latency"]
    done = subprocess.run(
        [*words, "-s", str(script), f"http://127.0.0.1:{port}{case.path}"], capture_output=True, text=True, check=False
    )
    text = done.stdout
    requests = re.search(r"(\d+) requests in", text)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    if requests is None or rate is None:
        raise RuntimeError(f"wrk failed: {text} {done.stderr}")
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    latency = {name: value for name, value in re.findall(r"^\s+(50|99)%\s+(\S+)", text, re.M)}
    return {
        "requests": int(requests[1]),
        "rps": float(rate[1]),
        "p50": latency.get("50"),
        "p99": latency.get("99"),
        "errors": (int(bad[1]) if bad else 0) + (sum(map(int, errors.groups())) if errors else 0),
    }


def idle_memory(pid: int, port: int, count: int) -> dict[str, Any]:
    """User memory of idle keep-alive connections, each after one request."""
    before = memory_kb(pid)
    sockets = []
    for _ in range(count):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.sendall(b"GET /small HTTP/1.1\r\nhost: bench.test\r\n\r\n")
        sock.recv(4096)
        sockets.append(sock)
    time.sleep(0.5)
    after = memory_kb(pid)
    for sock in sockets:
        sock.close()
    return {
        "connections": count,
        "before": before,
        "after": after,
        "bytes_per_connection": (after["rss_kb"] - before["rss_kb"]) * 1024 / count,
    }
