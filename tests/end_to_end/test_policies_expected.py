"""What existing configurations of the class expect of policies: a row for each behaviour, one gateway for all."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any

from tests.end_to_end.running import Gateway, free_port

CONFIG = """
gateways:
  default: {port: {port}}
  narrow: {port: SPARE}
policies:
- name: {name: ceiling, namespace: default}
  target: {gateway: {gatewayName: default, gatewayNamespace: default, listenerName: narrow}}
  policy: {localRateLimit: [{requests: 3, unit: Hours}]}
routes:
"""
ROUTES = {
    "authority": ("urlRewrite: {authority: {host: up.test}}", True),
    "scheme": ("requestRedirect: {scheme: https}", False),
    "plain": ("requestRedirect: {scheme: http}", False),
    "prefix": ("urlRewrite: {path: {prefix: /v1/}}", True),
    "host": ("""transformations: {request: {set: {host: '"set.test"'}}}""", True),
    "pseudo": ("""transformations: {request: {set: {":authority": '"pseudo.test"'}}}""", True),
    "no-content": ("""transformations: {response: {set: {":status": "204"}}}""", True),
    "not-modified": ("""transformations: {response: {set: {":status": "304"}}}""", True),
    "teapot": ("""transformations: {response: {set: {":status": "418"}}}""", True),
    "tokens": ("localRateLimit: [{maxTokens: 1000, tokensPerFill: 10, fillInterval: 1s, type: tokens}]", True),
    "direct": ("directResponse: {status: 200, body: local}\n    responseHeaderModifier: {set: {x-modified: 'yes'}, remove: [content-type]}", False),
    "moved": ("requestRedirect: {scheme: https}\n    responseHeaderModifier: {set: {x-modified: 'yes'}}", False),
    "refused": ("apiKey: {mode: strict, keys: [{key: k}]}\n    responseHeaderModifier: {set: {x-modified: 'yes'}}", True),
}
LIMITED = {"wide": 100, "tight": 1}
# Route, path behind it, what the client calls the host; then the status and what must hold of fields and of what the backend saw.
Row = tuple[str, str, str, int, dict[str, str | None], dict[str, Any]]
ROWS: list[Row] = [
    ("authority", "/x", "a.test:8080", 200, {}, {"host": "up.test"}),
    ("authority", "/x", "a.test", 200, {}, {"host": "up.test"}),
    ("scheme", "/x?a=1", "a.test:8080", 302, {"location": "https://a.test/scheme/x?a=1"}, {}),
    ("scheme", "/x", "a.test", 302, {"location": "https://a.test/scheme/x"}, {}),
    ("scheme", "/x", "[::1]:8080", 302, {"location": "https://[::1]/scheme/x"}, {}),
    ("prefix", "", "a.test", 200, {}, {"path": "/v1/"}),
    ("prefix", "/", "a.test", 200, {}, {"path": "/v1/"}),
    ("prefix", "/x?a=1", "a.test", 200, {}, {"path": "/v1/x?a=1"}),
    ("host", "/x", "a.test:80", 200, {}, {"host": "set.test"}),
    ("pseudo", "/x", "a.test:80", 200, {}, {"host": "pseudo.test"}),
    ("no-content", "/x", "a.test", 204, {"content-length": None, "transfer-encoding": None}, {}),
    ("not-modified", "/x", "a.test", 304, {"transfer-encoding": None}, {}),
    ("teapot", "/x", "a.test", 418, {}, {"path": "/teapot/x"}),
    ("tokens", "/x", "a.test", 200, {}, {"fields": ["accept-encoding", "host"]}),
    ("direct", "/x", "a.test", 200, {"x-modified": "yes", "content-type": None}, {}),
    ("moved", "/x", "a.test", 302, {"x-modified": "yes"}, {}),
    ("refused", "/x", "a.test", 401, {"x-modified": "yes"}, {}),
]  # fmt: skip


def config(echo: int) -> str:
    text = CONFIG
    for name, (policies, calls) in ROUTES.items():
        backends = f'[{{host: "127.0.0.1:{echo}"}}]' if calls else "[]"
        text += f"- name: {name}\n  gateways: [default]\n  matches: [{{path: {{pathPrefix: /{name}}}}}]\n  policies:\n    {policies}\n  backends: {backends}\n".replace("\\n", "\n")
    for name, count in LIMITED.items():
        text += f"- {{name: {name}, gateways: [narrow], matches: [{{path: {{pathPrefix: /{name}}}}}], policies: {{localRateLimit: [{{requests: {count}, unit: Hours}}], directResponse: {{status: 200}}}}}}\n"
    return text


def ask(port: int, path: str, host: str = "a.test") -> tuple[int, dict[str, str], bytes]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    client.request("GET", path, headers={"host": host})
    answer = client.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    client.close()
    return found


def test_policies_do_what_configurations_of_the_class_expect(gateway: Callable[..., Gateway], echo: int) -> None:
    spare = free_port()
    running = gateway(config(echo).replace("SPARE", str(spare)))
    wrong = []
    for name, path, host, status, fields, saw in ROWS:
        found, told, body = ask(running.port, f"/{name}{path}", host)
        if found != status or any(told.get(key) != value for key, value in fields.items()):
            wrong.append((name, path, host, found, told))
        if found in (204, 304):
            assert body == b"", name
        if saw:
            seen = json.loads(body)
            headers = {key.lower(): value for key, value in seen["headers"]}
            shown = {"host": headers["host"], "path": seen["path"], "fields": sorted(headers)}
            if any(shown[key] != value for key, value in saw.items()):
                wrong.append((name, path, host, shown))
    # A gateway's limit holds beside a route's: one passes at the tight route, whose second is the gateway's second, and three do in all.
    statuses = [ask(spare, f"/{name}")[0] for name in ("tight", "tight", "wide", "wide", "wide")]
    if statuses != [200, 429, 200, 429, 429]:
        wrong.append(("limits", statuses))
    assert not wrong, "\n".join(map(str, wrong))
