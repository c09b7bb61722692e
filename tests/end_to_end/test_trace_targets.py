"""Spans of MCP targets: one for each call, by method and name, also of processes; guardrails beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.end_to_end.federation_rig import SAMPLE, Raw, config
from tests.end_to_end.mcp_guardrails_rig import guarded
from tests.end_to_end.otlp_rig import GrpcCollector, Span, tracing
from tests.end_to_end.policy_peer import Policy

pytestmark = pytest.mark.warm


@pytest.fixture
def collector() -> Iterator[GrpcCollector]:
    found = GrpcCollector()
    yield found
    found.stop()


def of(method: str, targets: dict[str, str], collector: GrpcCollector, more: str = "") -> str:
    """A configuration that traces requests of one method."""
    chosen = tracing(collector, filter=f"mcp.methodName == '{method}'")
    return f"frontendPolicies: {{tracing: {chosen}}}\n" + config(targets, more)


def remote(sample: Any, *more: str) -> str:
    return f'mcp: {{host: "http://127.0.0.1:{sample("mcp_server", "--http", "127.0.0.1:0", *more)}/mcp"}}'


def parts(spans: list[Span]) -> tuple[Span, list[Span]]:
    [server] = [span for span in spans if span.kind == "server"]
    return server, [span for span in spans if span.kind == "client"]


def subtypes(spans: list[Span]) -> list[str]:
    return [span.attributes["gw.outbound.subtype"] for span in spans]


@pytest.mark.parametrize("kind", ["process", "remote"])
def test_a_call_of_one_of_several_targets(kind: str, gateway: Callable[..., Any], sample: Any, collector: GrpcCollector) -> None:
    own = SAMPLE if kind == "process" else remote(sample)
    raw = Raw(gateway(of("tools/call", {"t": own, "b": SAMPLE}, collector)))
    raw.ask("tools/call", name="t_echo", arguments={"message": "CANARY"})
    server, [call] = parts(collector.trace(2))
    assert (call.name, call.parent, call.failed) == ("tools/call echo", server.id, False)
    wanted = {
        "gw.outbound.kind": "Primary", "gw.outbound.subtype": "Mcp", "mcp.method.name": "tools/call", "mcp.target": "t",
        "gen_ai.tool.name": "echo", "gen_ai.operation.name": "execute_tool",
        "network.transport": "pipe" if kind == "process" else "tcp",
    }  # fmt: skip
    assert {key: call.attributes.get(key) for key in wanted} == wanted
    assert ("server.port" in call.attributes) == (kind == "remote")
    assert b"CANARY" not in b"".join(collector.exports)


def test_a_list_of_several_targets_asks_each(gateway: Callable[..., Any], sample: Any, collector: GrpcCollector) -> None:
    raw = Raw(gateway(of("tools/list", {"t": remote(sample), "b": SAMPLE}, collector)))
    raw.ask("tools/list")
    server, calls = parts(collector.trace(3))
    assert {(call.name, call.parent, call.attributes["mcp.target"]) for call in calls} == {
        ("tools/list", server.id, "t"), ("tools/list", server.id, "b"),
    }  # fmt: skip
    assert "mcp.target" not in server.attributes


def test_a_process_alone(gateway: Callable[..., Any], collector: GrpcCollector) -> None:
    raw = Raw(gateway(of("tools/call", {"t": SAMPLE}, collector)))
    raw.ask("tools/call", name="echo", arguments={"message": "CANARY"})
    server, [call] = parts(collector.trace(2))
    assert (call.name, call.parent, call.attributes["mcp.target"]) == ("tools/call echo", server.id, "t")


def test_errors_have_their_type(gateway: Callable[..., Any], collector: GrpcCollector) -> None:
    raw = Raw(gateway(of("tools/call", {"t": SAMPLE, "b": SAMPLE}, collector)))
    raw.ask("tools/call", name="t_nope", arguments={})
    _, [call] = parts(collector.trace(2))
    assert (call.failed, call.attributes["error.type"], call.attributes["rpc.response.status_code"]) == (True, "-32602", "-32602")


def test_guardrails_have_spans(gateway: Callable[..., Any], collector: GrpcCollector) -> None:
    policy = Policy()
    raw = Raw(gateway(of("tools/call", {"t": SAMPLE, "b": SAMPLE}, collector, guarded(policy.port))))
    raw.ask("tools/call", name="t_echo", arguments={"message": "CANARY"})
    server, calls = parts(collector.trace(4))
    policy.stop()
    assert sorted(subtypes(calls)) == ["Guardrail", "Guardrail", "Mcp"]
    checks = [span for span in calls if span.attributes["gw.outbound.subtype"] == "Guardrail"]
    assert {span.parent for span in calls} == {server.id}
    assert {span.attributes["gw.outbound.kind"] for span in checks} == {"Policy"}
    assert all(span.attributes["rpc.system.name"] == "grpc" and span.name == span.attributes["rpc.method"] for span in checks)
    [target] = [span for span in calls if span not in checks]
    assert checks[0].end <= target.start < target.end <= checks[1].start
