"""The endpoints below /api, and attacks on them."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.end_to_end.page_rig import ask_admin, call, gateway_of, traffic
from tests.end_to_end.running import PATIENCE, Gateway

JSON = {"content-type": "application/json"}
OWN = ("/api/relay", "/api/cel", "/cel", "/api/config/check")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_of(tmp_path_factory.mktemp("gateway")) as found:
        traffic(found)
        yield found


def get(running: Gateway, path: str) -> Any:
    status, fields, body = ask_admin(running, "GET", path)
    assert (status, fields["content-type"], fields["cache-control"]) == (200, "application/json", "no-store")
    return json.loads(body)


def relayed(running: Gateway, **fields: Any) -> list[dict[str, Any]]:
    order = json.dumps({"bind": f"bind/{running.port}", **fields}).encode()
    status, answer, body = ask_admin(running, "POST", "/api/relay", order, JSON)
    assert (status, answer["content-type"], answer["x-content-type-options"]) == (200, "application/x-ndjson", "nosniff")
    return [json.loads(line) for line in body.splitlines() if line]


def body_of(lines: list[dict[str, Any]]) -> str:
    assert lines[-1].get("end"), lines
    return "".join(one.get("data", "") for one in lines)


def test_runtime_has_the_keys_of_the_reference(running: Gateway) -> None:
    found = get(running, "/api/runtime")
    assert set(found) == {"build", "ui"}
    assert set(found["build"]) == {"version", "gitRevision", "rustVersion", "buildProfile", "buildTarget"}
    assert found["ui"] == {"gatewayMode": "standalone", "configStoreMode": "file"}


def test_the_file_is_shown_without_secrets(running: Gateway) -> None:
    found = get(running, "/api/config")
    assert found["gateways"] == {"default": {"port": running.port}}
    assert found["llm"]["models"][0]["params"]["apiKey"] == "<redacted>"
    assert "never-shown" not in json.dumps(found)


def test_the_state_counts_requests_of_all_workers(running: Gateway) -> None:
    before = {row["name"]: row for row in get(running, "/api/state")["routes"]}
    for _ in range(8):
        call(running, "/catalogue/x")
    expected = before["default/catalogue"]["requests"] + 8
    deadline = time.monotonic() + PATIENCE
    while True:         # pages that look at once see the same for half a second
        state = get(running, "/api/state")
        after = {row["name"]: row for row in state["routes"]}
        if after["default/catalogue"]["requests"] == expected:
            break
        assert time.monotonic() < deadline, after["default/catalogue"]
        time.sleep(0.05)
    assert sum(after["default/catalogue"]["latency"]["counts"]) == after["default/catalogue"]["requests"]
    assert after["default/broken"]["serverErrors"] == after["default/broken"]["requests"] > 0
    assert after["default/locked"]["clientErrors"] == after["default/locked"]["requests"] > 0
    assert state["rows"] == {kind: len(state[kind]) for kind in ("routes", "backends")}
    assert state["all"]["requests"] == sum(row["requests"] for row in state["routes"])
    assert sum(state["all"]["latency"]["counts"]) == state["all"]["requests"]
    assert state["models"][0]["inputTokens"] > 0
    assert [worker["answers"] for worker in state["workers"]] == [True, True]
    assert {row["endpoint"] for row in state["endpoints"] if "endpoint" in row} == {"shop-a", "shop-b"}
    assert "never-shown" not in json.dumps(state)


def test_expressions_are_tried(running: Gateway) -> None:
    for path in ("/api/cel", "/cel"):
        body = json.dumps({"expression": "request.path + '!'", "data": {"request": {"path": "/a"}}}).encode()
        assert json.loads(ask_admin(running, "POST", path, body, JSON)[2]) == {"result": "/a!", "error": None}
        assert ask_admin(running, "POST", path, b'{"expression": "1 +"}', JSON)[0] == 400
        assert ask_admin(running, "GET", path)[0] == 405


def test_a_request_is_relayed_through_the_policies_of_its_route(running: Gateway) -> None:
    lines = relayed(running, path="/catalogue/a?b=c", method="POST", headers={"x-mine": "1", "authorization": "Bearer t"}, body="hi")
    assert lines[0]["status"] == 200
    seen = json.loads(body_of(lines))
    headers = {name: value for name, value in seen["headers"]}
    assert (seen["method"], seen["target"], seen["body"]) == ("POST", "/catalogue/a?b=c", "hi")
    assert headers["x-shop"] == "headgate"
    assert (headers["x-mine"], headers["authorization"]) == ("1", "Bearer t")
    assert relayed(running, path="/locked")[0]["status"] == 403


def test_nothing_of_the_browser_s_own_request_goes_along(running: Gateway) -> None:
    order = json.dumps({"bind": f"bind/{running.port}", "path": "/catalogue/a"}).encode()
    origin = f"http://127.0.0.1:{running.admin}"
    browser = {**JSON, "cookie": "session=mine", "authorization": "Basic mine", "origin": origin, "referer": origin, "x-other": "mine",
               "sec-fetch-site": "same-origin", "user-agent": "mine"}  # fmt: skip
    status, fields, body = ask_admin(running, "POST", "/api/relay", order, browser)
    assert status == 200
    assert "mine" not in body.decode()
    assert "set-cookie" not in fields


def test_a_stream_is_relayed_as_it_comes(running: Gateway) -> None:
    chat = {"model": "slow", "stream": True, "messages": [{"role": "user", "content": "one two three four"}]}
    order = {"bind": f"bind/{running.port}", "method": "POST", "path": "/v1/chat/completions", "headers": JSON, "body": json.dumps(chat)}
    connection = http.client.HTTPConnection("127.0.0.1", running.admin, timeout=60)
    connection.request("POST", "/api/relay", json.dumps(order).encode(), JSON)
    answer = connection.getresponse()
    head = json.loads(answer.readline())
    assert head["status"] == 200
    first = answer.readline()
    assert b"[DONE]" not in first
    rest = answer.read()
    assert b"[DONE]" in rest
    assert json.loads(rest.splitlines()[-1])["end"] is True


def test_a_client_that_leaves_ends_the_request_behind_it(running: Gateway) -> None:
    chat = {"model": "slow", "stream": True, "messages": [{"role": "user", "content": "word " * 2000}]}
    order = {"bind": f"bind/{running.port}", "method": "POST", "path": "/v1/chat/completions", "headers": JSON, "body": json.dumps(chat)}
    connection = http.client.HTTPConnection("127.0.0.1", running.admin, timeout=60)
    connection.request("POST", "/api/relay", json.dumps(order).encode(), JSON)
    answer = connection.getresponse()
    answer.readline()
    answer.readline()
    before = running.log().count("gen_ai.request.model=slow")
    sock = connection.sock or answer.fp.raw._sock  # type: ignore[attr-defined]
    sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    answer.close()
    deadline = time.monotonic() + 40
    while running.log().count("gen_ai.request.model=slow") == before:
        assert time.monotonic() < deadline, "the request goes on"
        time.sleep(0.05)


@pytest.mark.parametrize(
    "order",
    [
        {"bind": "bind/1"}, {"bind": "127.0.0.1:22"}, {"bind": "bind/ADMIN"}, {"url": "http://evil.example/"},
        {"bind": "bind/PORT", "path": "//evil.example/ x"}, {"bind": "bind/PORT", "path": "http://evil.example/"},
        {"bind": "bind/PORT", "host": "evil.example/\r\nx: y"}, {"bind": "bind/PORT", "headers": {"host": "evil"}},
        {"bind": "bind/PORT", "headers": {"x": "a\r\n\r\nGET / HTTP/1.1"}}, {"bind": "bind/PORT", "method": "CONNECT"},
    ],
)  # fmt: skip
def test_the_relay_leads_to_ports_of_the_configuration_only(running: Gateway, order: dict[str, Any]) -> None:
    text = json.dumps(order).replace("PORT", str(running.port)).replace("ADMIN", str(running.admin))
    status, _, body = ask_admin(running, "POST", "/api/relay", text.encode(), JSON)
    assert status == 400
    assert json.loads(body)["error"]


@pytest.mark.parametrize("path", OWN)
@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "multipart/form-data; boundary=x"}, 415),
        ({"content-type": ""}, 415),
        ({}, 415),
        ({**JSON, "origin": "http://evil.example"}, 403),
        ({**JSON, "origin": "null"}, 403),
        ({**JSON, "origin": "http://localhost:3000"}, 403),
        ({**JSON, "origin": "http://127.0.0.1:19000"}, 403),
        ({**JSON, "origin": "https://127.0.0.1:ADMIN"}, 403),
        ({**JSON, "origin": "http://127.0.0.1:ADMIN.evil.example"}, 403),
        ({**JSON, "sec-fetch-site": "cross-site"}, 403),
        ({**JSON, "sec-fetch-site": "same-site"}, 403),
        ({**JSON, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403),
        ({**JSON, "host": "evil.example"}, 421),
        ({**JSON, "host": "evil.example:ADMIN", "origin": "http://evil.example:ADMIN"}, 421),
        ({**JSON, "origin": "http://127.0.0.1:ADMIN", "sec-fetch-site": "same-origin"}, 400),
        ({"content-type": "Application/JSON; charset=utf-8"}, 400),
    ],
)  # fmt: skip
def test_pages_of_other_sites_get_nothing(running: Gateway, path: str, fields: dict[str, str], status: int) -> None:
    headers = {name: value.replace("ADMIN", str(running.admin)) for name, value in fields.items()}
    found, answer, _ = ask_admin(running, "POST", path, b"{}", headers)
    assert found == status
    assert "access-control-allow-origin" not in answer


@pytest.mark.parametrize("path", OWN)
@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://evil.example"])
def test_no_preflight_opens_them(running: Gateway, path: str, origin: str) -> None:
    asking = {"origin": origin, "access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    status, answer, _ = ask_admin(running, "OPTIONS", path, None, asking)
    assert status == 403
    assert not [name for name in answer if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/api/state", "/api/config", "/api/runtime", "/ui/assets/app.js"])
def test_what_is_read_is_not_for_other_sites_either(running: Gateway, path: str) -> None:
    for fields in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}):
        assert ask_admin(running, "GET", path, None, fields)[0] == 403
    assert ask_admin(running, "GET", path, None, {"host": "evil.example"})[0] == 421


def test_links_from_elsewhere_lead_to_the_page(running: Gateway) -> None:
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    status, fields, _ = ask_admin(running, "GET", "/ui/traffic", None, link)
    assert status == 200
    assert "frame-ancestors 'none'" in fields["content-security-policy"]
    assert ask_admin(running, "GET", "/", None, link)[:2] == (308, ask_admin(running, "GET", "/", None, link)[1])


def test_a_body_too_large_is_refused(running: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", running.admin), timeout=60) as sock:
        sock.sendall(b"POST /api/cel HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1048577\r\n\r\n")
        sock.sendall(b" " * 1048577)
        assert re.match(rb"HTTP/1\.1 413 ", sock.recv(4096))


def test_a_heavy_expression_does_not_hold_the_supervisor(running: Gateway) -> None:
    body = json.dumps({"expression": "jwt.a.map(x, jwt.a.map(y, jwt.a.map(z, x)))", "data": {"jwt": {"a": list(range(3000))}}}).encode()
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(ask_admin(running, "POST", "/api/cel", body, JSON)[2]))
    thread.start()
    # However long it takes to be given up: others are answered in front of it.
    assert ask_admin(running, "GET", "/logging")[0] == 200
    assert found == []
    thread.join()
    assert json.loads(found[0])["error"]


def test_expressions_that_take_time_and_memory_harm_nobody(running: Gateway) -> None:
    held = 'request.headers.x.split("").map(c, request.headers.x.split("").map(d, request.headers.x + d))'
    for expression in (held, "[1, 2, 3, 4, 5, 6, 7, 8, 9].map(a, " * 12 + "a" + ")" * 12):
        body = json.dumps({"expression": expression, "data": {"request": {"headers": {"x": "x" * 50_000}}}}).encode()
        status, _, found = ask_admin(running, "POST", "/api/cel", body, JSON)
        assert status == 200
        assert json.loads(found)["error"]


def test_a_port_with_tls_is_reached_as_well(tmp_path: Path) -> None:
    cert = trustme.CA().issue_cert("api.test")
    cert.private_key_pem.write_to_path(tmp_path / "key.pem")
    cert.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    text = f"""
gateways:
  default:
    port: {{port}}
    listeners: [{{name: a, hostname: "*.test", tls: {{cert: {tmp_path}/cert.pem, key: {tmp_path}/key.pem}}}}]
routes:
- {{name: a, hostnames: [api.test], policies: {{directResponse: {{status: 200, body: over TLS}}}}}}
"""
    with gateway_of(tmp_path, text, 1) as found:
        [target] = get(found, "/api/state")["targets"]["ports"]
        assert (target["tls"], target["host"]) == (True, "any.test")
        assert body_of(relayed(found, host="api.test")) == "over TLS"
        assert relayed(found, host="other.example")[-1].get("error") or relayed(found, host="other.example")[0]["status"] >= 400
