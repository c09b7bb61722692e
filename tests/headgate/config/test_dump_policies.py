"""Policies in the dump."""

from __future__ import annotations

from collections.abc import Callable

from headgate.config.dump_policies import backend_policies, endpoint, route_policies
from headgate.ir.backend import HostBackend
from headgate.ir.gateway import Gateway

TEXT = """
gateways: {default: {port: 1}}
routes:
- policies:
    timeout: {requestTimeout: 1500ms, backendRequestTimeout: 2s}
    requestHeaderModifier: {add: {a: "1"}, set: {b: "2"}, remove: [c]}
    responseHeaderModifier: {set: {d: "3"}}
    directResponse: {status: 200, body: [255]}
  backends:
  - host: "h:1"
    policies:
      backendTLS: {hostname: n.test, insecure: true, insecureHost: true, alpn: [http/1.1]}
      tcp: {connectTimeout: 1s, keepalives: {retries: 2}}
      proxyProtocol: {version: v1}
      http: {requestTimeout: 3s}
      requestHeaderModifier: {remove: [e]}
"""


def test_every_policy_prints_in_the_spelling_of_the_file(loaded: Callable[..., Gateway]) -> None:
    route = loaded(TEXT).binds[0].listeners[0].routes[0]
    assert route_policies(route.policies) == [
        {"timeout": {"requestTimeout": "1500ms", "backendRequestTimeout": "2s"}},
        {"requestHeaderModifier": {"add": {"a": "1"}, "set": {"b": "2"}, "remove": ["c"]}},
        {"directResponse": {"status": 200, "body": [255], "headers": {}}},
        {"responseHeaderModifier": {"set": {"d": "3"}}},
    ]
    choice = route.backends[0]
    assert isinstance(choice.backend, HostBackend)
    alive = {"enabled": True, "time": "180s", "interval": "180s", "retries": 2}
    assert endpoint(choice.backend.endpoint) == [
        {"backendTLS": {"hostname": "n.test", "insecure": True, "insecureHost": True, "alpn": ["http/1.1"]}},
        {"tcp": {"connectTimeout": "1s", "keepalives": alive}},
        {"proxyProtocol": {"version": "v1"}},
    ]
    assert backend_policies(choice.policies) == [
        {"http": {"requestTimeout": "3s"}},
        {"requestHeaderModifier": {"remove": ["e"]}},
    ]
