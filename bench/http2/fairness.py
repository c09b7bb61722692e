"""How evenly streams share a connection of HTTP/2: what the slowest gets beside the fastest, of this gateway and of nginx.

Usage: python -m bench.http2.fairness [--streams 100] [--kib 4096] [--rounds 3]

Needs nginx. All streams begin at once and get an answer of the same length. The client reads more slowly than the backend sends: were the
connection not what is scarce, the order in which the backend serves its own connections would be measured.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys
import tempfile
import time
from pathlib import Path

from hpack import Encoder
from hyperframe.frame import HeadersFrame, SettingsFrame, WindowUpdateFrame

from bench.http2.run import NGINX, OURS, PROXY, free_port, started

BACKEND = "  server {{ listen 127.0.0.1:{port}; root {folder}; }}"
FIELDS = [(":method", "GET"), (":scheme", "http"), (":authority", "bench.test"), (":path", "/large")]
MOST = 2**31 - 1
# The client's: bytes, and seconds before each read.
RECEIVE_BUFFER, PAUSE = 65536, 0.0005
DATA, SETTINGS, END_STREAM, ACK = 0, 4, 1, 1


def shares(port: int, streams: int) -> list[int]:
    """Bytes that each stream got from the time when all had begun to the first end of one behind that, in ascending order."""
    numbers = [2 * at + 1 for at in range(streams)]
    encoder = Encoder()
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        sock.settimeout(60)
        sock.connect(("127.0.0.1", port))
        out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SettingsFrame(0, settings={SettingsFrame.INITIAL_WINDOW_SIZE: MOST}).serialize()
        out += WindowUpdateFrame(0, window_increment=MOST - 65535).serialize()
        out += b"".join(HeadersFrame(number, data=encoder.encode(FIELDS), flags=["END_STREAM", "END_HEADERS"]).serialize() for number in numbers)
        sock.sendall(out)
        got, ended = dict.fromkeys(numbers, 0), set[int]()
        at_start: dict[int, int] = {}
        rest = bytearray()
        while True:
            time.sleep(PAUSE)
            piece = sock.recv(1 << 16)
            if not piece:
                raise RuntimeError("the connection was ended")
            rest += piece
            at = 0
            while len(rest) - at >= 9:
                size, kind, flags = int.from_bytes(rest[at : at + 3], "big"), rest[at + 3], rest[at + 4]
                number = int.from_bytes(rest[at + 5 : at + 9], "big")
                if len(rest) - at < 9 + size:
                    break
                at += 9 + size
                if kind == SETTINGS and not flags & ACK:
                    sock.sendall(SettingsFrame(0, flags=["ACK"]).serialize())
                if kind != DATA:
                    continue
                got[number] += size
                if flags & END_STREAM:
                    ended.add(number)
                    if number in at_start:
                        return sorted(got[one] - start for one, start in at_start.items())
                if not at_start and all(got.values()):
                    at_start = {one: size for one, size in got.items() if one not in ended}
            del rest[:at]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--kib", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    backend, nginx, ours = free_port(), free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        Path(folder).chmod(0o755)
        Path(folder, "large").write_bytes(b"x" * options.kib * 1024)
        for name, port, servers in (("backend", backend, BACKEND), ("proxy", nginx, PROXY)):
            text = NGINX.format(folder=folder, name=name, servers=servers.format(port=port, backend=backend, folder=folder))
            Path(folder, f"{name}.conf").write_text(text)
        Path(folder, "ours.yaml").write_text(OURS.format(port=ours, backend=backend))
        stack.enter_context(started(["nginx", "-c", f"{folder}/backend.conf"], backend))
        stack.enter_context(started(["nginx", "-c", f"{folder}/proxy.conf"], nginx))
        stack.enter_context(started([sys.executable, "-m", "bench.instructions.serve", f"{folder}/ours.yaml"], ours))
        for name, port in (("nginx", nginx), ("headgate", ours)):
            for _ in range(options.rounds):
                found = shares(port, options.streams)
                print(f"{name}: {len(found)} streams, {found[0]:,} to {found[-1]:,} bytes, {found[-1] / max(1, found[0]):.2f} x")


if __name__ == "__main__":
    main()
