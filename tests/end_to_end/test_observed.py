"""What expressions put into access logs and metrics, and what they may leave out."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

import pytest
from tests import forked_rig
from tests.end_to_end.asking import BASE, ask, indented

pytestmark = pytest.mark.warm


def lines(running: Any, count: int) -> list[dict[str, Any]]:
    """The request lines of a JSON log, once there are so many."""
    deadline = time.monotonic() + 40
    while True:
        found = [json.loads(line) for line in running.log().splitlines() if '"scope":"request"' in line]
        if len(found) >= count:
            return found
        assert time.monotonic() < deadline, running.log()
        time.sleep(0.05)


LOGGED = """
frontendPolicies:
  accessLog:
    filter: 'request.path != "/api/health" && response.code < 500'
    remove: [duration, http.host]
    add:
      user: request.headers["x-user"]
      http.host: request.host
      plain: '1 + 1'
      nested: '{"a": [1, 2.5], "b": null}'
      claims: 'flatten({"sub": "ada", "list": [1, 2]})'
      deep: 'flattenRecursive({"a": {"b": 1}})'
      nothing: 'null'
      broken: jwt.sub
      failed: 'request.path == "/api/a" ? 1 / 0 : 0'
      took: 'proxy.upstreamDuration < duration("10s")'
      port: destination.port
      code: response.code
      key: request.headers.redacted()["x-token"]
      when: 'request.endTime >= request.startTime'
      route: 'proxy.route.name + "!"'
"""
POLICY = "timeout: {requestTimeout: 9s}"


def test_fields_of_the_access_log(gateway, echo) -> None:
    settings = "logging: {format: json}\nsensitiveHeaders: [X-Token]"
    running = gateway(BASE % (indented(POLICY), echo) + LOGGED, settings=settings)
    ask(running, path="/api/health")
    ask(running, path="/api/a", headers={"x-user": 'ada "l" \t', "x-token": "CANARY"})
    ask(running, path="/api/b")
    first, second = lines(running, 2)
    assert first["http.path"] == "/api/a"
    assert first["user"] == 'ada "l"'
    assert (first["plain"], first["nested"]) == (2, {"a": [1, 2.5], "b": None})
    assert (first["claims.sub"], first["claims.list"], first["deep.a.b"]) == ("ada", [1, 2], 1)
    assert (first["took"], first["code"], first["when"], first["port"]) == (True, 200, True, running.port)
    assert first["http.host"] == "a.test"
    assert first["route"] == "web!"
    assert first["key"] == "<redacted>"
    for absent in ("nothing", "broken", "duration", "claims"):
        assert absent not in first, absent
    assert "user" not in second
    order = list(first)
    assert order.index("plain") < order.index("nested") < order.index("claims.sub") < order.index("route")
    assert "CANARY" not in running.log()
    assert running.metric('gw_expression_failures_total{phase="log"}') == 1, "an absent header is no failure"


def test_fields_of_a_text_log(gateway, echo) -> None:
    add = """
frontendPolicies:
  accessLog: {add: {list: '["a b", 1]', raw: 'b"\\xff\\x00"', word: '"x y"'}}
"""
    running = gateway(BASE % (indented(POLICY), echo) + add)
    ask(running)
    running.wait_log("word=")
    line = next(line for line in running.log().splitlines() if "\trequest" in line)
    assert line.endswith(r'list="[\"a b\",1]" raw=/wA= word="x y"'), line


def test_the_deprecated_place_of_log_settings(gateway, echo) -> None:
    settings = "logging: {filter: 'request.path == \"/api/x\"', fields: {add: {here: '1'}}}"
    running = gateway(BASE % (indented(POLICY), echo), settings=settings)
    ask(running, path="/api/y")
    ask(running, path="/api/x")
    running.wait_log("here=1")
    assert "/api/y" not in running.log()


def test_labels_of_metrics(gateway, echo) -> None:
    settings = """
    metrics:
      fields:
        add: {team: 'request.headers["x-team"]', size: 'response.code / 100'}
    """
    running = gateway(BASE % (indented(POLICY), echo), workers=2, settings=settings)
    for team in ("red", "red", "blue", None, 'a"b\\c'):
        ask(running, headers={} if team is None else {"x-team": team})
    found = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")[1]
    assert "team=" in found, found[-2000:]
    assert running.metric('gw_request_processing_seconds_count{backend') == 5
    assert running.metric('gw_response_processing_seconds_count{backend') == 5
    counts = {line.split('team="')[1].split(",size=")[0]: float(line.rsplit(" ", 1)[1])
              for line in found.splitlines() if line.startswith("gw_requests_total{backend")}  # fmt: skip
    assert counts == {'red"': 2, 'blue"': 1, 'unknown"': 1, 'a\\"b\\\\c"': 1}
    assert 'size="2"' in found
    histogram = [line for line in found.splitlines() if line.startswith("gw_request_duration_seconds_count")]
    assert sum(float(line.rsplit(" ", 1)[1]) for line in histogram if 'team="red"' in line) == 2


NAMED = """
gateways:
  default:
    port: {port}
    listeners: [{name: one, hostname: one.test}, {name: two, hostname: two.test}]
routes:
- name: web
  policies: {requestMirror: {backend: {host: "127.0.0.1:%d"}, percentage: 1.0}}
  backends: [{host: "127.0.0.1:%d"}]
"""


def test_times_of_processing_and_calls_and_the_listeners_of_connections(gateway, echo) -> None:
    running = gateway(NAMED % (echo, echo))
    for host in ("one.test", "two.test", "two.test"):
        assert ask(running, headers={"host": host}).status == 200
    labels = f'bind="bind/{running.port}",gateway="default/default",listener="%s"'
    place = f'{labels % "two"},route="default/web",route_rule="unknown"'
    backend = f'backend="127.0.0.1:{echo}",'
    page = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")[1]
    for family in ("gw_request_processing_seconds", "gw_response_processing_seconds"):
        assert f"{family}_count{{{backend}{place}}} 2" in page, page
        assert f'{family}_bucket{{{backend}{place},le="0.00005"}}' in page
    running.wait_metric('gw_upstream_call_duration_seconds_count{kind="Mirror",subtype="Http"}', 3)
    assert running.metric('gw_upstream_call_duration_seconds_count{kind="Primary",subtype="Http"}') == 3
    # What is asked for is not known when a plain connection is made.
    unknown = f'{{{labels % "unknown"},protocol="http"}}'
    assert f"gw_downstream_connections_total{unknown} 3" in page
    assert f'gw_downstream_sent_bytes_total{{{labels % "two"},protocol="http"}}' in page
    assert f"gw_downstream_sent_bytes_total{unknown} 0" in page


def test_what_cannot_be_logged_is_refused(tmp_path) -> None:
    def told(text: str) -> str:
        path = tmp_path / "config.yaml"
        path.write_text(text)
        done = forked_rig.run("headgate.cli.main", "-f", str(path), "--validate-only")
        assert done.returncode == 1
        return done.stdout + done.stderr

    found = told("""
gateways: {default: {port: 3000}}
frontendPolicies:
  accessLog: {filter: respons.code == 1, add: {a: request.body, b: 'x +', c: nosuch(1)}}
config:
  logging: {fields: {add: {x: '1'}}}
  metrics: {fields: {add: {'a b': '1', status: '2', __x: '3', y: nope}}}
""")
    for message in (
        "undeclared reference to 'respons'", "request.body cannot be used in the log", "accessLog.add.b", "nosuch",
        "'frontendPolicies.accessLog' is set as well", "'a b' is not a label", "the label 'status' exists already",
        "'__x' is not a label", "undeclared reference to 'nope'",
    ):  # fmt: skip
        assert message in found, (message, found)


ANSWERED = """
gateways:
  default: {port: {port}}
routes:
- name: answered
  policies:
    localRateLimit: [{maxTokens: 2000%d, tokensPerFill: 1, fillInterval: 1h}]
    directResponse: {status: 200, body: ok}
"""


@pytest.mark.cold
def test_label_values_without_room_are_other_and_block_no_reload(gateway) -> None:
    settings = """
    metrics: {fields: {add: {who: 'request.headers["x-who"]'}}}
    """
    running = gateway(ANSWERED % 1, settings=settings)
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    for number in range(10_000):
        connection.request("GET", "/api/x", headers={"x-who": str(number)})
        connection.getresponse().read()
    connection.close()
    page = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")[1]
    other = [line for line in page.splitlines() if line.startswith('gw_requests_total{backend="other"')]
    assert len(other) == 1
    assert 'who="other"' in other[0]
    assert running.metric("gw_requests_total") == 10_000
    assert running.metric("gw_metric_series_overflow_total") == float(other[0].rsplit(" ", 1)[1]) > 0
    sizes = dict(line.split() for line in page.splitlines() if line.startswith(("gw_metric_series ", "gw_metric_series_l")))
    assert int(sizes["gw_metric_series"]) >= int(sizes["gw_metric_series_limit"])
    for generation in (2, 3):
        running.reload(ANSWERED % generation)
    assert running.fetch(running.url)[0] == 200
    assert running.metric("gw_config_synchronized") == 1
