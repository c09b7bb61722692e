"""Configuration files of the proxies, one function per product. Like for like: one worker, keep-alive to the backend,
no access log (the gateway's goes to /dev/null), no retries, default buffering (except that an event stream is not held back)."""

from __future__ import annotations

from pathlib import Path

from bench.macro.cases import ROUTES, route
from bench.macro.identity import ISSUER, key_set

# Descriptors a proxy may need for 10,000 clients and their upstream connections; below common hard limits.
CONNECTIONS = 11_000

NGINX = """\
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log crit; worker_rlimit_nofile 20000;
events {{ worker_connections {connections}; }}
http {{
  access_log {log}; keepalive_requests 1000000000; keepalive_timeout 3600s;
  client_body_buffer_size 64k; server_names_hash_bucket_size 128;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
{body}
}}
"""

HAPROXY = """\
global
  nbthread 1
  maxconn 9950
defaults
  mode http
  timeout connect 5s
  timeout client 3600s
  timeout server 60s
  timeout http-keep-alive 3600s
  http-reuse always
frontend front
  bind 127.0.0.1:{port} backlog 4096
  {choice}
backend back
  server only 127.0.0.1:{backend}
"""

ENVOY = """\
static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: front
          route_config:
            virtual_hosts:
            - {{name: all, domains: ["*"], routes: [{{match: {{prefix: "/"}}, route: {{cluster: back}}}}]}}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
  clusters:
  - name: back
    type: STATIC
    circuit_breakers: {{thresholds: [{{max_connections: 10000, max_pending_requests: 10000, max_requests: 10000}}]}}
    load_assignment:
      cluster_name: back
      endpoints:
      - lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {backend}}}}}}}}}]
"""

# The ten edits of the setting `edits`. A location with fields of its own does not inherit that of the server.
NGINX_EDITS = """proxy_set_header Connection ""; proxy_set_header x-team bench; proxy_set_header x-old new;
  proxy_set_header accept text/plain; proxy_set_header x-added-1 one; proxy_set_header x-added-2 two;
  proxy_set_header x-drop-me ""; proxy_set_header user-agent "";
  add_header x-served-by bench; add_header cache-control no-store; proxy_hide_header server;"""
EDITS = """  policies:
    requestHeaderModifier:
      set: {x-team: bench, x-old: new, accept: text/plain}
      add: {x-added-1: one, x-added-2: two}
      remove: [x-drop-me, user-agent]
    responseHeaderModifier:
      set: {x-served-by: bench, cache-control: no-store}
      remove: [server]
"""

# Of the models of an LLM setting.
PROVIDERS = {"llm": "openai", "llm-anthropic": "anthropic"}

HEADGATE = """\
config:
  workerThreads: 1
  adminAddr: "off"
  statsAddr: "off"
  readinessAddr: "off"
  logging: {{level: {level}, format: {log}}}
gateways:
  default: {{port: {port}}}
"""


# Spans are posted to the backend, which reads them and answers 200.
SPANS = """\
frontendPolicies: {{{{tracing: {{{{host: "127.0.0.1:{{backend}}", protocol: http, path: /small, randomSampling: {share}}}}}}}}}
"""
OBSERVED = {
    "ids": "frontendPolicies: {{http: {{requestId: generate}}}}\n",
    "traced-1": SPANS.format(share=0.01),
    "traced": SPANS.format(share=1),
}


def _nginx(folder: Path, body: str, log: str = "off") -> Path:
    path = folder / "nginx.conf"
    path.write_text(NGINX.format(folder=folder, body=body, log=log, connections=CONNECTIONS))
    return path


def web_backend(folder: Path, port: int) -> Path:
    """Canned answers; a request body is read and thrown away, and the connection kept."""
    # nginx takes no parameter longer than 4 KiB: the long answer is put together.
    block = "x" * 1024
    answers = {"small": "x" * 6, "1k": block, "16k": "$k" * 16, "length": "$content_length"}
    places = "".join(
        f'location = /{name} {{ set $k "{block}"; return 200 "{text}"; }}\n' for name, text in answers.items()
    )
    return _nginx(folder, f'server {{ listen 127.0.0.1:{port} backlog=4096; {places} '
                          f'location / {{ return 200 "hello\\n"; }} }}')  # fmt: skip


def nginx(folder: Path, setting: str, port: int, backend: int, log: str = "off") -> Path:
    """A reverse proxy with a pool of idle upstream connections. log: arguments of access_log."""
    head = 'proxy_http_version 1.1; proxy_set_header Connection "";'
    if setting == "llm":
        head += " proxy_buffering off;"  # an event has to leave when it came, as at the gateway
    places = f"location / {{ {NGINX_EDITS if setting == 'edits' else ''} proxy_pass http://back; }}"
    if setting == "routes":
        places += "".join(f"location {route(number)} {{ proxy_pass http://back; }}\n" for number in range(ROUTES))
    return _nginx(
        folder,
        f"""upstream back {{ server 127.0.0.1:{backend}; keepalive 600; keepalive_requests 1000000000;
  keepalive_timeout 3600s; }}
server {{ listen 127.0.0.1:{port} backlog=4096; {head} {places} }}""",
        log,
    )


def haproxy(folder: Path, setting: str, port: int, backend: int) -> Path:
    """A reverse proxy with one thread."""
    choice = "default_backend back"
    if setting == "routes":
        prefixes = folder / "routes.map"
        prefixes.write_text("".join(f"{route(number)} back\n" for number in range(ROUTES)))
        choice = f"use_backend %[path,map_beg({prefixes},back)]"
    path = folder / "haproxy.cfg"
    path.write_text(HAPROXY.format(port=port, backend=backend, choice=choice))
    return path


def envoy(folder: Path, setting: str, port: int, backend: int) -> Path:
    """A reverse proxy; only the plain setting (its route list is searched from the top)."""
    if setting != "plain":
        raise ValueError(f"envoy has no setting {setting}")
    path = folder / "envoy.yaml"
    path.write_text(ENVOY.format(port=port, backend=backend))
    return path


def guarded(backend: int) -> str:
    """A hundred routes by host and path, each with identity, a rule, a limit and a header change; the log in JSON."""
    policies = f"""  policies:
    jwtAuth: {{issuer: "{ISSUER}", jwks: '{key_set()}'}}
    authorization: {{rules: ['"admin" in jwt.groups && request.path.startsWith("/v1")']}}
    localRateLimit: [{{maxTokens: 4000000000, tokensPerFill: 1, fillInterval: 1s}}]
    requestHeaderModifier: {{set: {{x-team: bench}}}}
"""
    routes = "".join(
        f"- name: r{number}\n  hostnames: [127.0.0.1, '*.bench.test']\n"
        f"  matches: [{{path: {{pathPrefix: /v1/service{number}}}}}]\n{policies}"
        f'  backends: [{{host: "127.0.0.1:{backend}"}}]\n'
        for number in range(100)
    )
    return f"routes:\n{routes}"


def headgate(folder: Path, setting: str, port: int, backend: int, level: str = "info") -> Path:
    """Our gateway. level: of its log; access lines are of level info."""
    quiet = setting in ("quiet", "ids", "traced-1", "traced")
    log = "json" if setting in ("policies", "log-json") else "text"
    text = HEADGATE.format(port=port, level="warn" if quiet else level, log=log)
    if setting in OBSERVED:
        text += OBSERVED[setting].format(backend=backend)
    if setting in PROVIDERS:
        text += f"""llm:
  models:
  - name: "*"
    provider: {PROVIDERS[setting]}
    params: {{baseUrl: "http://127.0.0.1:{backend}/v1", apiKey: bench}}
"""
    elif setting == "policies":
        text += guarded(backend)
    elif setting == "mcp":
        text += f"""mcp:
  targets:
  - name: only
    mcp: {{host: "http://127.0.0.1:{backend}/mcp"}}
"""
    elif setting.startswith("mcp-"):
        # Targets of the same server: what differs for the gateway is their names.
        number = int(setting.removeprefix("mcp-"))
        place = f"http://127.0.0.1:{backend}/mcp{'/many' if number > 2 else ''}"
        targets = "".join(f'  - {{name: t{index}, mcp: {{host: "{place}"}}}}\n' for index in range(number))
        text += f"mcp:\n  targets:\n{targets}"
    elif setting == "edits":
        text += f"""routes:
- name: r0
  matches: [{{path: {{pathPrefix: /}}}}]
{EDITS}  backends: [{{host: "127.0.0.1:{backend}"}}]
"""
    else:
        prefixes = [route(number) for number in range(ROUTES)] if setting == "routes" else ["/"]
        routes = [
            f"- {{name: r{number}, matches: [{{path: {{pathPrefix: {prefix}}}}}], "
            f'backends: [{{host: "127.0.0.1:{backend}"}}]}}\n'
            for number, prefix in enumerate(prefixes)
        ]
        text += "routes:\n" + "".join(routes)
    path = folder / "headgate.yaml"
    path.write_text(text)
    return path
