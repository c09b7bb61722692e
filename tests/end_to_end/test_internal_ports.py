"""Requests that a route hands on to another port of the process."""

from __future__ import annotations

import hashlib
import socket
import struct
import threading
import time

import httpx
import pytest
from tests.end_to_end import over_http2
from tests.end_to_end.running import PATIENCE
from tests.end_to_end.tcp_rig import connect
from tests.end_to_end.tracing import Watch

pytestmark = pytest.mark.warm

PORTS = """
binds:
- port: {port}
  listeners:
  - routes:
    - name: front
      matches: [{path: {pathPrefix: /in}}]
      policies:
        urlRewrite: {path: {prefix: /}}
        requestHeaderModifier: {set: {x-front: "1"}}
        responseHeaderModifier: {set: {x-front-answer: "1"}}
        retry: {attempts: 1, codes: [502]}
      backends: [{internal: 8080, policies: {requestHeaderModifier: {set: {x-way: in}}}}]
    - name: named
      matches: [{path: {pathPrefix: /named}}]
      backends: [{backend: inside}]
    - name: wild
      matches: [{path: {pathPrefix: /wild}}]
      backends: [{internal: "*"}]
- port: 8080
  mode: internal
  listeners:
  - name: inner
    policies: {transformations: {request: {set: {x-inner-gateway: '"1"'}}}}
    routes:
    - name: shut
      matches: [{path: {pathPrefix: /shut}}]
      policies: {authorization: {rules: [{deny: 'true'}]}}
      backends: [{host: "127.0.0.1:ECHO"}]
    - name: tea
      matches: [{path: {pathPrefix: /tea}}]
      policies: {directResponse: {status: 418, body: tea}}
    - name: bad
      matches: [{path: {pathPrefix: /bad}}]
      policies: {directResponse: {status: 502, body: bad}}
    - name: body
      matches: [{path: {pathPrefix: /body}}]
      policies: {buffer: {request: {maxBytes: 1000}}}
      backends: [{host: "127.0.0.1:ECHO"}]
    - name: all
      policies: {responseHeaderModifier: {set: {x-inner-answer: "1"}}}
      backends: [{host: "127.0.0.1:ECHO"}]
- mode: internal
  listeners: [{routes: [{name: wildcard, backends: [{internal: 8080}]}]}]
backends: [{name: inside, internal: 8080}]
"""


@pytest.fixture
def ports(gateway, echo):
    return gateway(PORTS.replace("ECHO", str(echo)))


def test_policies_of_both_ports_hold(ports) -> None:
    answer = httpx.get(f"{ports.url}/in/a?q=1", timeout=60)
    seen = answer.json()
    fields = {name.lower(): value for name, value in seen["headers"]}
    assert (answer.status_code, seen["path"]) == (200, "/a?q=1")
    assert {"x-front", "x-way", "x-inner-gateway"} <= fields.keys()
    assert {"x-front-answer", "x-inner-answer"} <= answer.headers.keys()
    assert httpx.get(f"{ports.url}/in/shut", timeout=60).status_code == 403
    answer = httpx.get(f"{ports.url}/in/tea", timeout=60)
    assert (answer.status_code, answer.text, answer.headers["x-front-answer"]) == (418, "tea", "1")
    assert httpx.get(f"{ports.url}/named/x", timeout=60).json()["path"] == "/named/x"
    assert httpx.get(f"{ports.url}/wild/x", timeout=60).json()["path"] == "/wild/x"
    for told in ("http.path=/wild/x", "http.path=/in/a?q=1", "http.path=/a?q=1"):
        ports.wait_log(told)
    lines = [line for line in ports.log().splitlines() if "http.path=/in/a?q=1" in line or "http.path=/a?q=1" in line]
    assert len(lines) == 2
    assert any("listener=inner" in line and "route=default/all" in line for line in lines)
    assert any("endpoint=internal:8080" in line and "route=default/front" in line for line in lines)
    # A hop within the gateway is no request: five came, one of them through three ports.
    ports.wait_metric("gw_requests_total{", 5)
    # Both tell the client's address.
    assert len({line.partition("src.addr=")[2].partition(" ")[0] for line in lines}) == 1


def test_a_retry_of_the_outer_route_asks_the_inner_port_again(ports) -> None:
    answer = httpx.get(f"{ports.url}/in/bad", timeout=60)
    assert (answer.status_code, answer.text) == (502, "bad")
    deadline = time.monotonic() + PATIENCE
    while ports.log().count("route=default/bad") < 2:
        assert time.monotonic() < deadline, ports.log()[-3000:]
        time.sleep(0.02)


def test_many_requests_on_one_connection(ports) -> None:
    with httpx.Client(base_url=ports.url, timeout=60) as client:
        for number in range(200):
            assert client.post(f"/in/{number}", content=b"x" * number).json()["body"] == "x" * number


def test_heads_and_empty_answers(ports, gateway) -> None:
    with httpx.Client(base_url=ports.url, timeout=60) as client:
        assert client.get("/in/tea").text == "tea"
        answer = client.head("/in/tea")
        assert (answer.status_code, answer.content) == (418, b"")
        assert client.get("/in/x").status_code == 200


def sink(listener: socket.socket, found: list[str]) -> None:
    """Reads a body slowly at first, and answers with one of the same length."""
    sock, _ = listener.accept()
    with sock, sock.makefile("rwb") as file:
        while file.readline().strip():
            pass
        whole = hashlib.sha256()
        size = 0
        while True:
            length = int(file.readline().strip(), 16)
            part = file.read(length)
            file.readline()
            if not length:
                break
            whole.update(part)
            size += length
        found.append(whole.hexdigest())
        file.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(size // 65536):
            file.write(b"10000\r\n" + b"y" * 65536 + b"\r\n")
        file.write(b"0\r\n\r\n")


@pytest.fixture
def big():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found: list[str] = []
        threading.Thread(target=sink, args=(listener, found), daemon=True).start()
        yield listener.getsockname()[1], found


@pytest.mark.parametrize("http2", [False, True])
def test_long_bodies_go_both_ways(gateway, big, http2) -> None:
    port, found = big
    text = PORTS.replace('{host: "127.0.0.1:ECHO"}', '{host: "127.0.0.1:ECHO", policies: {http: {version: HTTP/1.1}}}')
    running = gateway(text.replace("ECHO", str(port)))
    part = bytes(range(256)) * 256
    blocks = 256

    def body():
        for _ in range(blocks):
            yield part

    with (
        httpx.Client(base_url=running.url, timeout=120, http1=not http2, http2=http2) as client,
        client.stream("POST", "/in/long", content=body()) as answer,
    ):
        assert answer.http_version == ("HTTP/2" if http2 or over_http2.WANTED else "HTTP/1.1")
        size = sum(len(piece) for piece in answer.iter_raw())
    assert size == blocks * 65536
    assert found == [hashlib.sha256(part * blocks).hexdigest()]


def test_a_body_that_the_inner_port_refuses(ports) -> None:
    with httpx.Client(base_url=ports.url, timeout=60) as client:
        assert client.post("/in/body", content=b"x" * 999).status_code == 200
        assert client.post("/in/body", content=b"x" * 100_000).status_code == 413
        assert client.get("/in/x").status_code == 200


def upgrader(listener: socket.socket) -> None:
    sock, _ = listener.accept()
    with sock, sock.makefile("rwb") as file:
        while file.readline().strip():
            pass
        file.write(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: loud\r\n\r\n")
        file.flush()
        while line := file.readline():
            file.write(line.upper())
            file.flush()


def test_upgrades_pass(gateway) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=upgrader, args=(listener,), daemon=True).start()
        running = gateway(PORTS.replace("ECHO", str(listener.getsockname()[1])))
        with connect(running.port) as sock, sock.makefile("rwb") as file:
            file.write(b"GET /in/up HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: loud\r\n\r\n")
            file.flush()
            assert file.readline().startswith(b"HTTP/1.1 101")
            while file.readline().strip():
                pass
            for number in range(100):
                file.write(b"hello %d\n" % number)
                file.flush()
                assert file.readline() == b"HELLO %d\n" % number
        running.wait_log("route=default/front")
        running.wait_log("route=default/all")


def test_a_client_that_leaves_ends_both(gateway) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = gateway(PORTS.replace("ECHO", str(listener.getsockname()[1])))
        with connect(running.port) as sock:
            sock.sendall(b"GET /in/slow HTTP/1.1\r\nhost: a\r\n\r\n")
            backend, _ = listener.accept()
            backend.recv(1000)
            # Reset: who only stops sending gets an answer all the same.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with backend:
            assert backend.recv(100) == b""
        running.wait_log("route=default/all")
        running.wait_log("route=default/front")
        assert running.log().count("client closed the connection") == 2


def test_a_trace_shows_the_call(ports) -> None:
    watch = Watch(ports)
    assert httpx.get(f"{ports.url}/in/a", timeout=60).status_code == 200
    events = [event["message"] for event in watch.wait()]
    assert [event["target"] for event in events if event["type"] == "backendCallStart"][:1] == ["internal:8080"]


def test_a_reload_takes_the_port_away_and_brings_it_back(ports, echo) -> None:
    text = PORTS.replace("ECHO", str(echo))
    assert httpx.get(f"{ports.url}/in/a", timeout=60).status_code == 200
    ports.reload(text.replace('x-inner-answer: "1"', 'x-inner-answer: "2"'))
    assert httpx.get(f"{ports.url}/in/a", timeout=60).headers["x-inner-answer"] == "2"
    ports.reload(text)
    assert httpx.get(f"{ports.url}/in/a", timeout=60).headers["x-inner-answer"] == "1"


CHAIN = "- {port: %d, mode: internal, listeners: [{routes: [{backends: [{internal: %d}]}]}]}\n"


def test_a_request_is_handed_on_so_often(gateway, echo) -> None:
    text = "binds:\n- {port: {port}, listeners: [{routes: [{backends: [{internal: 1}]}]}]}\n"
    text += "".join(CHAIN % (number, number + 1) for number in range(1, 9))
    last = "- {port: 9, mode: internal, listeners: [{routes: [{backends: [{host: '127.0.0.1:ECHO'}]}]}]}\n"
    text += last.replace("ECHO", str(echo))
    running = gateway(text)
    answer = httpx.get(running.url, timeout=60)
    assert (answer.status_code, answer.text) == (500, "too many internal hops")
    running.reload(text.replace("{internal: 1}", "{internal: 2}"))
    assert httpx.get(running.url, timeout=60).status_code == 200


# -- the admin API -----------------------------------------------------------------------------------------------------
ADMIN = """
gateways: {default: {port: {port}}}
routes:
- name: forwarded
  matches: [{path: {pathPrefix: /api}}, {path: {pathPrefix: /config_dump}}, {path: {pathPrefix: /quitquitquit}}]
  policies: {apiKey: {keys: [{key: sesame}]}}
  backends: [{internal: forward}]
- name: renamed
  matches: [{path: {pathPrefix: /operate}}]
  policies: {urlRewrite: {path: {prefix: /}}, apiKey: {keys: [{key: sesame}]}}
  backends: [{backend: admin}]
- name: fixed
  matches: [{path: {exact: /written}}]
  policies: {apiKey: {keys: [{key: sesame}]}, responseHeaderModifier: {set: {x-route: fixed}}}
  backends: [{internal: /api/config}]
- name: open
  matches: [{path: {pathPrefix: /open}}]
  policies: {urlRewrite: {path: {prefix: /}}}
  backends: [{internal: forward}]
- name: state
  matches: [{path: {exact: /about}}]
  backends: [{internal: /api/runtime}]
backends: [{name: admin, internal: forward}]
"""
KEY = {"authorization": "Bearer sesame"}


def test_the_admin_api_answers_at_the_paths_of_routes(gateway) -> None:
    running = gateway(ADMIN, workers=2)
    url = f"http://127.0.0.1:{running.port}"
    for path, status in (("/api/runtime", 401), ("/operate/api/runtime", 401), ("/written", 401)):
        assert httpx.get(url + path).status_code == status
    told = httpx.get(f"{url}/api/runtime", headers=KEY)
    assert (told.status_code, told.json()["ui"]["gatewayMode"]) == (200, "standalone")
    assert httpx.get(f"{url}/operate/api/runtime", headers=KEY).json() == told.json()
    running.wait_log("route=default/renamed")
    # What only the admin port has is not there.
    for path in ("/config_dump", "/quitquitquit", "/api/../config_dump", "/operate/config_dump", "/operate/quitquitquit"):
        assert httpx.request("POST", url + path, headers=KEY).status_code in (403, 404), path
        assert httpx.get(url + path, headers=KEY).status_code in (400, 404), path
    body = {"expression": "1 + 1"}
    assert httpx.post(f"{url}/api/cel", json=body, headers=KEY).json() == {"result": 2, "error": None}
    running.wait_log("asks for no credential")


@pytest.mark.cold
def test_a_fixed_path_of_the_admin_api_keeps_the_query(gateway) -> None:
    """A document without routes is written only where the query says so (`confirm=empty`)."""
    running = gateway(ADMIN)
    url = f"http://127.0.0.1:{running.port}/written"
    told = httpx.get(url, headers=KEY)
    assert (told.status_code, told.headers["x-route"]) == (200, "fixed")
    assert "gateways" in told.json()
    bare = {"gateways": {"default": {"port": running.port}}}
    assert httpx.post(url, json=bare, headers=KEY).status_code == 428
    assert httpx.post(f"{url}?confirm=empty", json=bare).status_code == 401
    assert httpx.post(f"{url}?confirm=empty", json=bare, headers=KEY).status_code == 200
    running.wait_log("http.path=/written?confirm=empty")
    running.wait_log("configuration reloaded")
    assert httpx.get(url, headers=KEY).status_code == 404


def test_without_a_login_the_admin_api_is_for_reading_and_for_local_names(gateway) -> None:
    running = gateway(ADMIN)
    url = f"http://127.0.0.1:{running.port}"
    assert httpx.get(f"{url}/about").json()["ui"]["gatewayMode"] == "standalone"
    assert httpx.get(f"{url}/open/api/runtime").status_code == 200
    assert httpx.get(f"{url}/about", headers={"host": "evil.test"}).status_code == 421
    assert httpx.post(f"{url}/open/api/cel", json={"expression": "1"}).status_code == 403
    assert httpx.get(f"{url}/about", headers={"origin": "http://evil.test"}).status_code == 403


def test_a_reload_brings_the_admin_api_and_takes_it_away(gateway) -> None:
    bare = "gateways: {default: {port: {port}}}\nroutes: [{name: a, BACKEND}]\n"
    answered = bare.replace("BACKEND", "policies: {directResponse: {status: 204}}")
    running = gateway(answered)
    url = f"http://127.0.0.1:{running.port}/api/runtime"
    assert httpx.get(url).status_code == 204
    running.reload(bare.replace("BACKEND", "backends: [{internal: forward}]"))
    assert httpx.get(url).status_code == 200
    running.reload(answered)
    assert httpx.get(url).status_code == 204
