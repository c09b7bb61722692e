"""The engine's side of backends that are agents."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.ir.backend import AgentRuntimeBackend, Backend, HostBackend, MissingBackend, RouteBackend, ServiceBackend
from headgate.ir.endpoint import Endpoint
from headgate.ir.policies import BackendPolicies
from headgate.ir.policy.rewrite import PathRewrite, Rewrite
from headgate.pipeline.agents import destination_of, host_of, protocol_of
from headgate_engine.a2a.backend import A2aBackend
from headgate_engine.aws.runtime import AgentRuntime
from headgate_engine.link.backend import HOST

HOST_BACKEND = HostBackend(key="h", name="h", endpoint=Endpoint(key="e", host="h.test", port=1))
TCP = HostBackend(key="h", name="h", endpoint=Endpoint(key="e", host="h.test", port=1, tcp=True))
SERVICE = ServiceBackend(key="s", name="service/n/s.test:80", owner="o", hostname="s.test", port=80, endpoints=())
RUNTIME = AgentRuntimeBackend(
    key="r", name="r", endpoint=Endpoint(key="e", host="b.test", port=443),
    arn="arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/x", qualifier="a b",
)  # fmt: skip


@pytest.mark.parametrize(("backend", "host"), [
    (HOST_BACKEND, "h.test"), (SERVICE, "s.test"), (RUNTIME, "b.test"), (MissingBackend(key="m", name="m"), ""),
])  # fmt: skip
def test_hosts(backend: Backend, host: str) -> None:
    assert host_of(backend) == host


@pytest.mark.parametrize("backend", [HOST_BACKEND, SERVICE, RUNTIME])
def test_protocols(backend: Backend) -> None:
    assert protocol_of(RouteBackend(backend=backend)) == "http"
    assert protocol_of(RouteBackend(backend=backend, policies=BackendPolicies(a2a=True))) == "a2a"
    assert protocol_of(RouteBackend(backend=TCP)) == "tcp"


def no_places(_key: str, _endpoint: Endpoint) -> Any:
    raise AssertionError("no endpoint picker is asked")


def test_who_sends() -> None:
    agent = BackendPolicies(a2a=True)
    rewrite = Rewrite(path=PathRewrite(prefix="inner"))
    assert destination_of(RouteBackend(backend=HOST_BACKEND), rewrite, 10, no_places) is HOST
    found = destination_of(RouteBackend(backend=HOST_BACKEND, policies=agent), rewrite, 10, no_places)
    assert isinstance(found, A2aBackend)
    assert found.inner is HOST
    plain = destination_of(RouteBackend(backend=RUNTIME), None, 10, no_places)
    assert isinstance(plain, AgentRuntime)
    path = b"/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aeu-west-1%3A123456789012%3Aruntime%2Fx/invocations"
    assert (plain.path, plain.query, plain.cards) == (path, b"?qualifier=a%20b", False)
    found = destination_of(RouteBackend(backend=RUNTIME, policies=agent), None, 10, no_places)
    assert isinstance(found, A2aBackend)
    assert isinstance(found.inner, AgentRuntime)
    assert found.inner.cards
