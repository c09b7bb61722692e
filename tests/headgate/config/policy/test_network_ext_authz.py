"""`frontendPolicies.networkExtAuthz` to the IR and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headgate.config.dump import frontend_policies
from headgate.ir.gateway import Gateway


def text(policy: str) -> str:
    return f"frontendPolicies: {{networkExtAuthz: {{host: 'a:1', {policy}}}}}"


def test_a_service(loaded: Callable[..., Gateway]) -> None:
    assert loaded("config: {}").frontend.network_ext_authz is None
    asked = loaded(text("failureMode: allow, protocol: {grpc: {context: {a: b}, metadata: {m: source.address}}}")).frontend
    found = asked.network_ext_authz
    assert found is not None
    assert found.grpc is not None
    assert (found.failure_status, found.timeout_ms, found.grpc.metadata) == (None, 2000, (("m", "source.address"),))
    shown: Any = frontend_policies(asked)["networkExtAuthz"]
    assert (shown["host"], shown["failureMode"]) == ("a:1", "allow")
    by_http = loaded(text("protocol: {http: {path: '\"/\" + source.address'}}")).frontend.network_ext_authz
    assert by_http is not None
    assert by_http.http is not None
    assert by_http.http.path == '"/" + source.address'


NO_REQUEST = "connections have no request and no response (1)"
REFUSED = {
    "includeRequestHeaders: [a]": f"includeRequestHeaders: {NO_REQUEST}",
    "includeRequestBody: {maxRequestBytes: 1}": f"includeRequestBody: {NO_REQUEST}",
    "protocol: {http: {redirect: '\"/\"'}}": f"protocol.http.redirect: {NO_REQUEST}",
    "protocol: {http: {includeResponseHeaders: [a]}}": f"protocol.http.includeResponseHeaders: {NO_REQUEST}",
    "failureMode: {denyWithStatus: 500}":
        "failureMode: a connection gets no status: use 'deny' to close it, or 'allow' (1)",
    "protocol: {grpc: {metadata: {m: request.path}}}": "protocol.grpc.metadata.m: 1:1: request has no value in the network phase",
}  # fmt: skip


@pytest.mark.parametrize("policy", REFUSED)
def test_what_a_connection_does_not_have(policy: str, faults: Callable[..., list[str]]) -> None:
    [found] = faults(text(policy))
    assert found.startswith(f"frontendPolicies.networkExtAuthz.{REFUSED[policy]}")
