"""Counts what a proxy spends on a request: instructions in user space (callgrind) and system calls (strace).

Usage: python -m bench.instructions.run [--cases a,b] [--peers nginx,headgate] [--requests 400] [--connections 8]
                                        [--profile FOLDER] [--no-calls]

Neither depends on what else the machine does. Instructions of the kernel are not counted: that is what the system calls
are for. All connections send a request, then all answers are read, and so on: a proxy finds several events at a time,
as under load. --profile keeps callgrind's files, for callgrind_annotate.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.macro import check, peers, settings
from bench.macro.cases import BY_NAME, CASES, Case

PEERS = ("nginx", "headgate")
WARM_REQUESTS = 200
LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
COUNTED = re.compile(r"^([0-9,]+).*PROGRAM TOTALS", re.M)
# A line of strace -c: per cent, seconds, microseconds per call, calls, perhaps errors, name.
CALL = re.compile(r"^ *[0-9.]+ +[0-9.]+ +[0-9]+ +([0-9]+)(?: +[0-9]+)? +([a-z_0-9]+)$", re.M)


class Client:
    """Connections that ask in step. Raises WrongAnswer for a status other than 200."""

    def __init__(self, port: int, case: Case, headers: dict[str, str], connections: int) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        size = "" if case.body is None else f"content-length: {len(case.body)}\r\n"
        method = "GET" if case.body is None else "POST"
        self._requests = [
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{lines}{size}\r\n".encode() + (case.body or b"")
            for path in case.paths
        ]
        self._at = 0
        self._sockets = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(connections)]

    def ask(self, requests: int) -> int:
        """Make at least so many requests; how many it were."""
        made = 0
        while made < requests:
            for one in self._sockets:
                one.sendall(self._requests[self._at % len(self._requests)])
                self._at += 1
            for one in self._sockets:
                self._answer(one)
            made += len(self._sockets)
        return made

    @staticmethod
    def _answer(one: socket.socket) -> None:
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            more = one.recv(65536)
            if not more:
                raise check.WrongAnswer("the connection was closed")
            data += more
        if not data.startswith(b"HTTP/1.1 200 "):
            raise check.WrongAnswer(repr(data[:80]))
        found = LENGTH.search(data, 0, end + 2)
        chunked = CHUNKED.search(data, 0, end + 2) is not None
        while not (data.endswith(b"0\r\n\r\n") if chunked else len(data) - end - 4 >= int(found[1] if found else 0)):
            data += one.recv(65536)

    def close(self) -> None:
        for one in self._sockets:
            one.close()


def command(peer: str, case: Case, folder: Path, port: int, backend: int) -> list[str]:
    """How to start a peer as one process."""
    if peer == "nginx":
        path = settings.nginx(folder, case.setting, port, backend)
        path.write_text("master_process off;\n" + path.read_text())
        return [shutil.which("nginx") or "nginx", "-e", "/dev/null", "-c", str(path), "-p", str(folder)]
    path = settings.headgate(folder, case.setting, port, backend)
    return [sys.executable, "-m", "bench.instructions.serve", str(path)]


@contextlib.contextmanager
def running(words: list[str], folder: Path) -> Iterator[int]:
    """A process for the time of the block; its id."""
    with (folder / "stderr").open("wb") as errors:
        popen = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, cwd=peers.ROOT)
    try:
        yield popen.pid
    finally:
        popen.terminate()
        try:
            popen.wait(peers.STOP_SECONDS)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()


class Job(NamedTuple):
    """What is counted, and how."""

    peer: str
    case: Case
    backend: int
    folder: Path
    options: argparse.Namespace

    def place(self, what: str) -> Path:
        path = self.folder / f"{self.peer}-{self.case.name}-{what}"
        path.mkdir()
        return path

    def client(self, port: int) -> Client:
        ready = check.wait(port, self.case, 120.0)
        client = Client(port, self.case, ready.headers, self.options.connections)
        client.ask(max(WARM_REQUESTS, len(self.case.paths)))
        return client

    def instructions(self) -> float:
        """Instructions in user space per request."""
        folder, port = self.place("callgrind"), peers.free_port()
        out = folder / "callgrind.out"
        words = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        with running(words + command(self.peer, self.case, folder, port, self.backend), folder) as pid:
            client = self.client(port)
            self._control(pid, "-i", "on")
            made = client.ask(self.options.requests)
            self._control(pid, "-i", "off")
            self._control(pid, "-d")
            client.close()
        (dump,) = folder.glob("callgrind.out.*")
        if self.options.profile:
            Path(self.options.profile).mkdir(parents=True, exist_ok=True)
            shutil.copy(dump, Path(self.options.profile) / f"{self.peer}-{self.case.name}.callgrind")
        text = subprocess.run(["callgrind_annotate", str(dump)], capture_output=True, text=True, check=True).stdout
        found = COUNTED.search(text)
        assert found is not None
        return int(found[1].replace(",", "")) / made

    @staticmethod
    def _control(pid: int, *words: str) -> None:
        subprocess.run(["callgrind_control", *words, str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    def calls(self) -> dict[str, float]:
        """System calls per request by name, without those that hardly any request makes."""
        folder, port = self.place("strace"), peers.free_port()
        out = folder / "calls"
        with running(command(self.peer, self.case, folder, port, self.backend), folder) as pid:
            client = self.client(port)
            strace = subprocess.Popen(["strace", "-c", "-f", "-o", str(out), "-p", str(pid)], stderr=subprocess.PIPE)
            assert strace.stderr is not None
            strace.stderr.readline()            # it is attached
            made = client.ask(10 * self.options.requests)
            strace.terminate()
            strace.wait()
            strace.stderr.close()
            client.close()
        found = {name: int(count) / made for count, name in CALL.findall(out.read_text()) if name != "total"}
        return {name: count for name, count in found.items() if count > 0.005}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.instructions.run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--cases", default="get-small,post-1k,post-16k,edits", help="of " + ", ".join(BY_NAME))
    parser.add_argument("--peers", default=",".join(PEERS), help="of " + ", ".join(PEERS))
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--profile", default="", help="folder for callgrind's files")
    parser.add_argument("--no-calls", action="store_true", help="leave out system calls")
    options = parser.parse_args(arguments)
    wanted = options.cases.split(",")
    for word in wanted:
        if word not in BY_NAME:
            parser.error(f"no case {word!r}")
    options.cases = [case for case in CASES if case.name in wanted]
    options.peers = options.peers.split(",")
    return options


def main(arguments: list[str] | None = None) -> None:
    """Count and print, one line per case and peer."""
    options = parse(arguments)
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        for kind in sorted({peers.BACKEND_OF[case.setting] for case in options.cases}):
            place = folder / f"backend-{kind}"
            place.mkdir()
            backend = peers.start_backend(kind, place)
            try:
                for case in (one for one in options.cases if peers.BACKEND_OF[one.setting] == kind):
                    for peer in (one for one in options.peers if one in case.peers):
                        job = Job(peer, case, backend.port, folder, options)
                        started = time.monotonic()
                        counted = job.instructions()
                        calls = {} if options.no_calls else job.calls()
                        shown = ", ".join(f"{key} {count:.2f}" for key, count in calls.items())
                        print(f"{case.name:14} {peer:9} {counted:9.0f} instructions  {sum(calls.values()):5.2f} calls: {shown}"
                              f"  ({time.monotonic() - started:.0f} s)", flush=True)  # fmt: skip
            finally:
                backend.stop()


if __name__ == "__main__":
    main()
