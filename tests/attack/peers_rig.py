"""nginx and HAProxy before the same backend, with what their manuals give as settings of a plain reverse proxy."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.attack.recording_rig import PATIENCE
from tests.end_to_end.running import free_port

NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log /dev/null;
events {{ worker_connections 256; }}
http {{
  access_log off; keepalive_timeout 1s; client_header_timeout 1s; client_body_timeout 1s; lingering_timeout 1s; lingering_time 1s; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder};
  scgi_temp_path {folder};
  upstream backend {{ server 127.0.0.1:{backend}; keepalive 8; }}
  server {{
    listen 127.0.0.1:{port};
    location ~ ^/(a|x|smuggled|bystander) {{
      proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_ignore_client_abort on; proxy_request_buffering off;
      proxy_read_timeout 3s; proxy_send_timeout 3s;
    }}
    location /direct {{ return 200 direct; }}
    location / {{ return 404; }}
  }}
  server {{ listen 127.0.0.1:{port}; server_name blocked.test; return 200 blocked; }}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 2s
  timeout http-request 1s
  timeout http-keep-alive 1s
  timeout server 3s
  http-reuse always
frontend f
  bind 127.0.0.1:{port}
  http-request return status 200 content-type text/plain string blocked if {{ hdr(host) -i blocked.test }}
  http-request return status 200 content-type text/plain string direct if {{ path_beg /direct }}
  http-request return status 404 if !{{ path_beg /a /x /smuggled /bystander }}
  default_backend b
backend b
  server s 127.0.0.1:{backend}
"""
NAMES = ("nginx", "haproxy")


def version(name: str) -> str:
    """Of an installed peer; empty without one."""
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if program is None:
        return ""
    done = subprocess.run([program, "-v"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+\.\d+", done.stdout + done.stderr)
    return found[0] if found else ""


@contextlib.contextmanager
def peer(name: str, folder: Path, backend: int) -> Iterator[int]:
    """Start it; the port on which it listens."""
    port, path = free_port(), folder / f"{name}.conf"
    text = (NGINX if name == "nginx" else HAPROXY).format(folder=folder, port=port, backend=backend)
    path.write_text(text)
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin") or name
    words = ["-e", "/dev/null", "-p", str(folder), "-c", str(path)] if name == "nginx" else ["-db", "-q", "-f", str(path)]
    process = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL, stderr=(folder / f"{name}.log").open("wb"))
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, (folder / f"{name}.log").read_text()
            assert time.monotonic() < deadline, name
            time.sleep(0.02)
        yield port
    finally:
        process.terminate()
        process.wait(PATIENCE)
