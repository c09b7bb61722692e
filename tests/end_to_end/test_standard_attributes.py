"""`config.standardAttributes`: who has made a request, in lines, records, spans and the request log."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.end_to_end.otlp_rig import GrpcCollector, tracing
from tests.end_to_end.running import Gateway

pytestmark = pytest.mark.warm

CONFIG = """
frontendPolicies: FRONTEND
gateways:
  default: {port: {port}}
routes:
- policies:
    apiKey:
      mode: optional
      keys:
      - {key: k1, metadata: {name: ada, group: math, team: t1}}
      - {key: k2, metadata: {user: bob, name: other}}
    directResponse: {status: 200, body: hi}
"""
JSON = "logging: {format: json}\n"


def line(running: Gateway, path: str, key: str = "") -> dict[str, Any]:
    fields = {"authorization": f"Bearer {key}"} if key else {}
    assert httpx.get(running.url + path, headers=fields, timeout=60).status_code == 200
    running.wait_log(f'"http.path":"{path}"')
    [found] = [json.loads(one) for one in running.log().splitlines() if f'"http.path":"{path}"' in one]
    return dict(found)


def config(**frontend: Any) -> str:
    return CONFIG.replace("FRONTEND", json.dumps(frontend))


def test_the_usual_expressions(gateway: Callable[..., Gateway]) -> None:
    running = gateway(config(), settings=f"standardAttributes: {{}}\n{JSON}")
    found = line(running, "/ada", "k1")
    assert (found["gw.user"], found["gw.group"]) == ("ada", "math")
    found = line(running, "/bob", "k2")
    assert found["gw.user"] == "bob"
    assert found.get("gw.group") is None
    found = line(running, "/nobody")
    assert found.get("gw.user") is None


def test_configured_ones_and_what_leaves_them_out(gateway: Callable[..., Gateway]) -> None:
    collector = GrpcCollector()
    log = {"remove": ["gw.group"], "otlp": {"host": f"127.0.0.1:{collector.port}"}}
    frontend = {"accessLog": log, "tracing": json.loads(tracing(collector))}
    running = gateway(config(**frontend), settings=f"standardAttributes: {{user: apiKey.team}}\n{JSON}")
    found = line(running, "/ada", "k1")
    assert found["gw.user"] == "t1"
    assert "gw.group" not in found
    [span] = collector.trace(1)
    assert (span.attributes["gw.user"], span.attributes["gw.group"]) == ("t1", "math")
    collector.wait(lambda: bool(collector.records))
    record = collector.records[0].attributes
    assert (record["gw.user"], record["gw.group"]) == ("t1", "math")
    collector.stop()


def test_without_it_lines_have_none(gateway: Callable[..., Gateway]) -> None:
    found = line(gateway(config(), settings=JSON), "/ada", "k1")
    assert not [key for key in found if key in ("gw.user", "gw.group")]


def test_the_dump_has_them(gateway: Callable[..., Gateway]) -> None:
    running = gateway(config(), settings="standardAttributes: {user: apiKey.team}\n")
    dump = json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")[1])
    assert dump["config"]["standardAttributes"]["user"] == "apiKey.team"
