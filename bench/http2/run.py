"""CPU that one worker spends on GETs over HTTP/2 to a backend that speaks HTTP/1.1, beside nginx's own proxying.

Usage: python -m bench.http2.run [--requests 30000] [--rounds 3] [--load h2load]

Needs nginx and h2load; with `--load headgate` the load comes from the generator of `headgate bench` for two seconds, as a cross-check.
 Both proxies write an access log to /dev/null; their turns alternate. The CPU is that of the worker
process, user and kernel, from /proc, in microseconds for each request.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

NGINX = """
worker_processes 1; daemon off; pid {folder}/{name}.pid; error_log /dev/null; events {{ worker_connections 4096; }}
http {{
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi; keepalive_requests 100000000; access_log off;
  log_format line '$remote_addr $request_method $host $uri $status $request_time';
  {servers}
}}
"""
BACKEND = """
  server {{ listen 127.0.0.1:{port}; location / {{ default_type text/plain; return 200 'a small answer of a backend'; }} }}
"""
PROXY = """
  upstream backend {{ server 127.0.0.1:{backend}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port} http2; access_log /dev/null line buffer=4k;
    location / {{ proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection ''; }}
  }}
"""
OURS = """
binds:
- port: {port}
  listeners: [{{routes: [{{backends: [{{host: "127.0.0.1:{backend}", policies: {{http: {{version: HTTP/1.1}}}}}}]}}]}}]
"""
# Connections, and streams at a time on each.
LOADS = ((8, 10), (1, 100), (32, 1))
# Of a load by our own generator.
SECONDS = 2
TICKS = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def worker_of(pid: int) -> int:
    """Return the only child of a process; itself without one."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else pid


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextlib.contextmanager
def started(words: list[str], port: int) -> Iterator[int]:
    """Run a server; its process id once it listens."""
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def loaded(port: int, requests: int, connections: int, streams: int) -> int:
    """Load a port with h2load; return how many requests were answered."""
    words = ["h2load", "-n", str(requests), "-c", str(connections), "-m", str(streams), f"http://127.0.0.1:{port}/a"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    if f"{requests} succeeded" not in done.stdout:
        raise RuntimeError(done.stdout)
    return requests


def loaded_by_ours(port: int, connections: int, streams: int) -> int:
    """The same with our own generator."""
    from bench.macro.cases import Case
    from bench.macro.load import run_headgate

    made = run_headgate(Case("get", "", "", ("/a",), None, (), ()), port, {}, connections, SECONDS, streams)
    if made.errors or not made.requests:
        raise RuntimeError(f"{made.errors} of {made.requests} requests failed")
    return made.requests


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--load", choices=("h2load", "headgate"), default="h2load", help="who sends the requests")
    options = parser.parse_args(arguments)
    needed = ("nginx", "h2load") if options.load == "h2load" else ("nginx",)
    missing = [name for name in needed if shutil.which(name) is None]
    if missing:
        sys.exit(f"needs {' and '.join(missing)}")
    backend, nginx, ours = free_port(), free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for name, port, servers in (("backend", backend, BACKEND), ("proxy", nginx, PROXY)):
            text = NGINX.format(folder=folder, name=name, servers=servers.format(port=port, backend=backend))
            Path(folder, f"{name}.conf").write_text(text)
        Path(folder, "ours.yaml").write_text(OURS.format(port=ours, backend=backend))
        stack.enter_context(started(["nginx", "-c", f"{folder}/backend.conf"], backend))
        theirs = stack.enter_context(started(["nginx", "-c", f"{folder}/proxy.conf"], nginx))
        own = stack.enter_context(started([sys.executable, "-m", "bench.instructions.serve", f"{folder}/ours.yaml"], ours))
        servers_ = (("nginx", nginx, worker_of(theirs)), ("headgate", ours, own))
        for connections, streams in LOADS:
            best: dict[str, float] = {}
            for _ in range(options.rounds):
                for name, port, pid in servers_:
                    before = cpu_seconds(pid)
                    if options.load == "h2load":
                        made = loaded(port, options.requests, connections, streams)
                    else:
                        made = loaded_by_ours(port, connections, streams)
                    spent = (cpu_seconds(pid) - before) / made * 1e6
                    best[name] = min(spent, best.get(name, spent))
            print(f"{connections:3} x {streams:3}: " + ", ".join(f"{name} {us:.1f} us" for name, us in best.items()),
                  f"= {best['headgate'] / best['nginx']:.2f} x")


if __name__ == "__main__":
    main()
