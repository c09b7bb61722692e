"""Routes, policies and bodies through a running gateway, with curl as the client."""

from __future__ import annotations

import json
import subprocess

import pytest

pytestmark = pytest.mark.warm

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: direct
  matches: [{path: {exact: /direct}}]
  policies:
    directResponse: {status: 201, body: made here}
    responseHeaderModifier: {set: {x-made: here}}
- name: edited
  matches: [{path: {pathPrefix: /edited}}]
  policies:
    requestHeaderModifier: {add: {x-added: one}, set: {user-agent: gateway}, remove: [x-gone]}
    responseHeaderModifier: {add: {x-after: two}, remove: [content-type]}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: slow
  matches: [{path: {pathPrefix: /delay}}]
  policies: {timeout: {requestTimeout: 200ms}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: gold
  matches:
  - path: {pathPrefix: /tier}
    headers: [{name: x-tier, value: {regex: "gold|silver"}}]
    query: [{name: v, value: {exact: "2"}}]
    method: GET
  policies: {directResponse: {status: 200, body: gold}}
- name: dead
  matches: [{path: {pathPrefix: /dead}}]
  backends: [{host: "127.0.0.1:1"}]
- name: nothing
  matches: [{path: {pathPrefix: /nothing}}]
- name: rest
  matches: [{path: {pathPrefix: /}}]
  backends: [{host: "127.0.0.1:BACKEND", weight: 3}, {host: "127.0.0.1:1", weight: 0}]
"""


@pytest.fixture
def running(gateway, sample):
    port = sample("http_service")
    return gateway(CONFIG.replace("BACKEND", str(port)))


def curl(*arguments: str) -> tuple[int, dict[str, str], str]:
    done = subprocess.run(["curl", "-s", "-i", "--max-time", "60", *arguments], capture_output=True, check=True)
    head, _, body = done.stdout.decode().partition("\r\n\r\n")
    while head.startswith("HTTP/1.1 1"):
        head, _, body = body.partition("\r\n\r\n")
    lines = head.split("\r\n")
    headers = {name: value for name, _, value in (line.partition(": ") for line in lines[1:])}
    return int(lines[0].split()[1]), headers, body


def test_a_direct_response_has_its_status_body_and_headers(running) -> None:
    status, headers, body = curl(f"{running.url}/direct")
    assert (status, headers["x-made"], body) == (201, "here", "made here")


def test_header_modifiers_edit_both_directions(running) -> None:
    _, headers, body = curl(f"{running.url}/edited", "-H", "x-gone: 1", "-H", "X-Kept: Yes")
    seen = dict(json.loads(body)["headers"])
    assert seen["x-added"] == "one"
    assert seen["user-agent"] == "gateway"
    assert seen["x-kept"] == "Yes"
    assert "x-gone" not in seen
    assert headers["x-after"] == "two"
    assert "content-type" not in headers


def test_a_late_backend_is_a_504_that_names_the_request_timeout(running) -> None:
    assert curl(f"{running.url}/delay/2000")[::2] == (504, "request timeout")


def test_all_parts_of_a_match_must_hold(running) -> None:
    assert curl(f"{running.url}/tier?v=2", "-H", "x-tier: silver")[2] == "gold"
    for arguments in (["-H", "x-tier: goldish"], [], ["-X", "PUT", "-H", "x-tier: gold"]):
        assert curl(f"{running.url}/tier?v=2", *arguments)[2] != "gold"
    assert curl(f"{running.url}/tier?v=3", "-H", "x-tier: gold")[2] != "gold"


def test_a_backend_that_refuses_is_a_503_with_the_reason(running) -> None:
    status, _, body = curl(f"{running.url}/dead")
    assert status == 503
    assert body == "upstream call failed: Connection refused"


def test_a_route_without_backends_is_a_500(running) -> None:
    assert curl(f"{running.url}/nothing")[::2] == (500, "no valid backends")


@pytest.mark.parametrize("size", [0, 1, 1024, 16384, 65537, 3_000_000])
def test_bodies_of_any_size_arrive_whole(running, size: int, tmp_path) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"a" * size)
    for extra in ([], ["-H", "transfer-encoding: chunked"]):
        status, _, body = curl(f"{running.url}/echo", "--data-binary", f"@{path}", *extra)
        assert status == 200
        assert json.loads(body)["body"] == "a" * size


def test_a_long_streamed_response_arrives_whole(running) -> None:
    done = subprocess.run(["curl", "-s", f"{running.url}/bytes/50000000"], capture_output=True, check=True)
    assert len(done.stdout) == 50_000_000


def test_an_old_client_gets_an_unchunked_answer(running) -> None:
    status, headers, body = curl("--http1.0", f"{running.url}/stream/3")
    assert (status, body) == (200, "line 0\nline 1\nline 2\n")
    assert "transfer-encoding" not in headers


def test_every_request_leaves_a_line_and_counts(running) -> None:
    curl(f"{running.url}/direct?key=value")
    running.wait_log("http.path=/direct?key=value")
    assert "route=default/direct" in running.log()
    running.wait_metric('gw_requests_total{backend="unknown",protocol="http",method="GET",status="201"', 1)
