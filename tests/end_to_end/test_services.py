"""Services with several workloads: names of certificates, protocols of ports, places."""

from __future__ import annotations

import time

import httpx
import pytest
from tests.end_to_end.running import PATIENCE, free_port
from tests.end_to_end.tls_rig import authority, tls_upstream  # noqa: F401

pytestmark = pytest.mark.warm

SECURE = """
gateways: {default: {port: {port}}}
routes:
- {name: right, matches: [{path: {pathPrefix: /right}}], backends: [{service: {name: n/right.test, port: 1}, policies: TLS}]}
- {name: wrong, matches: [{path: {pathPrefix: /wrong}}], backends: [{service: {name: n/wrong.test, port: 1}, policies: TLS}]}
services:
- {name: r, namespace: n, hostname: right.test, ports: {"1": 1}, subjectAltNames: [other.test, certified.test]}
- {name: w, namespace: n, hostname: wrong.test, ports: {"1": 1}, subjectAltNames: [other.test]}
workloads:
- {uid: w, name: w, namespace: n, workloadIps: [127.0.0.1], services: {n/right.test: {"1": BACKEND}, n/wrong.test: {"1": BACKEND}}}
"""


def test_certificates_have_one_of_the_names_of_the_service(gateway, authority, tmp_path) -> None:
    backend = tls_upstream(authority, "certified.test")
    tls = f"{{backendTLS: {{root: {tmp_path}/ca.pem}}}}"
    running = gateway(SECURE.replace("BACKEND", str(backend)).replace("TLS}", f"{tls}}}"))
    assert httpx.get(f"{running.url}/right", timeout=60).text.startswith("secure ")
    assert httpx.get(f"{running.url}/wrong", timeout=60).status_code == 503


# The backend is another port of the same gateway, whose log tells how it was spoken to.
PROTOCOLS = """
binds:
- port: {port}
  listeners:
  - routes:
    - {matches: [{path: {exact: /1}}], backends: [{service: {name: n/s.test, port: 1}}]}
    - {matches: [{path: {exact: /2}}], backends: [{service: {name: n/s.test, port: 2}}]}
    - {matches: [{path: {exact: /3}}], backends: [{service: {name: n/s.test, port: 3}}]}
    - {matches: [{path: {exact: /4}}], backends: [{service: {name: n/s.test, port: 4}}]}
- port: INNER
  listeners: [{name: inner, routes: [{policies: {directResponse: {status: 200, body: ok}}}]}]
services:
- name: s
  namespace: n
  hostname: s.test
  ports: {"1": INNER, "2": INNER, "3": INNER, "4": INNER}
  appProtocols: {"1": h2c, "2": http, "3": grpc, "4": http2}
workloads: [{uid: w, name: w, namespace: n, workloadIps: [127.0.0.1], services: {n/s.test: {}}}]
"""


INNER = "listener=inner"


def test_ports_are_spoken_to_as_they_say(gateway) -> None:
    running = gateway(PROTOCOLS.replace("INNER", str(free_port())))
    for path, version in (("/1", "HTTP/2"), ("/2", "HTTP/1.1"), ("/3", "HTTP/2"), ("/4", "HTTP/2")):
        assert httpx.get(running.url + path, timeout=60).text == "ok"
        deadline = time.monotonic() + PATIENCE
        while not (found := [line for line in running.log().splitlines() if INNER in line and f"path={path} " in line]):
            assert time.monotonic() < deadline, running.log()[-3000:]
            time.sleep(0.02)
        assert f"http.version={version}" in found[0]


PLACES = """
gateways: {default: {port: {port}}}
routes: [{backends: [{service: {name: n/s.test, port: 1}}]}]
services:
- name: s
  namespace: n
  hostname: s.test
  ports: {"1": PORT}
  loadBalancer: {mode: MODE, routingPreferences: [region, zone]}
  endpoints: {far: {workloadUid: far}}
workloads:
- {uid: near, name: near, namespace: n, workloadIps: [127.0.0.1], locality: eu/1, status: STATUS, services: {n/s.test: {}}}
- {uid: far, name: far, namespace: n, workloadIps: [127.0.0.2], locality: eu/2}
"""


def test_the_nearest_workloads_are_used(gateway, echo) -> None:
    def text(mode: str, status: str) -> str:
        return PLACES.replace("PORT", str(echo)).replace("MODE", mode).replace("STATUS", status)

    running = gateway(text("failover", "healthy"), environment={"LOCALITY": "eu/1"})
    assert {httpx.get(running.url, timeout=60).status_code for _ in range(20)} == {200}
    # Nobody listens there: the address shows where the request went.
    running.reload(text("failover", "unhealthy"))
    assert httpx.get(running.url, timeout=60).status_code == 503
    running.wait_log(f"endpoint=127.0.0.2:{echo}")
    running.reload(text("strict", "unhealthy"))
    answer = httpx.get(running.url, timeout=60)
    assert (answer.status_code, answer.text) == (503, "no healthy backends")
