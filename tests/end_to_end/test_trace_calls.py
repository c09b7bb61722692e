"""Spans of what a request calls: models, MCP servers, guards and policy services."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.ext_authz_rig import GrpcAuthorizer
from tests.end_to_end.ext_proc_rig import ProcessorPeer
from tests.end_to_end.federation_rig import SAMPLE, Raw
from tests.end_to_end.otlp_rig import GrpcCollector, Span, tracing
from tests.end_to_end.provider_stand_in import StandIn, chat, stream, whole
from tests.end_to_end.rate_limit_rig import Counting
from tests.end_to_end.test_guards import Webhook
from tests.end_to_end.test_llm_costs import USAGE

pytestmark = pytest.mark.warm

MODEL = """
frontendPolicies: {{tracing: {tracing}}}
gateways:
  default: {{port: {{port}}}}
llm:
  models:
  - name: m
    provider: openai
    params: {{baseUrl: "http://127.0.0.1:{backend}/v1", apiKey: sk-canary}}
    guardrails: {guards}
"""
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def collector() -> Iterator[GrpcCollector]:
    found = GrpcCollector()
    yield found
    found.stop()


@pytest.fixture
def provider() -> Iterator[StandIn]:
    found = StandIn(whole(chat()))
    yield found
    found.close()


def only(spans: list[Span], subtype: str) -> Span:
    [found] = [span for span in spans if span.attributes.get("gw.outbound.subtype") == subtype]
    return found


def server_of(spans: list[Span]) -> Span:
    [found] = [span for span in spans if span.kind == "server"]
    return found


@pytest.mark.parametrize("streaming", [False, True])
def test_a_call_of_a_model(gateway: Any, provider: StandIn, collector: GrpcCollector, streaming: bool) -> None:
    if streaming:
        provider.answers = [stream(USAGE)]
    running = gateway(MODEL.format(tracing=tracing(collector), backend=provider.port, guards="{}"))
    answer = httpx.post(running.url + "/v1/chat/completions", json={**ASK, "stream": streaming})
    assert answer.status_code == 200
    spans = collector.trace(2)
    call, server = only(spans, "Llm"), server_of(spans)
    assert (call.name, call.kind, call.parent, call.failed) == ("chat m", "client", server.id, False)
    usage = chat()["usage"]
    wanted = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m",
        "gen_ai.response.model": "real" if streaming else chat()["model"],
        "gen_ai.usage.input_tokens": usage["prompt_tokens"], "gen_ai.usage.output_tokens": usage["completion_tokens"],
        "http.response.status_code": 200, "server.port": provider.port,
    }  # fmt: skip
    assert {key: call.attributes.get(key) for key in wanted} == wanted
    assert server.attributes["gen_ai.usage.output_tokens"] == usage["completion_tokens"]
    assert provider.last.headers["traceparent"] == f"00-{server.trace}-{call.id}-01"
    assert "sk-canary" not in repr(collector.exports)


GROUPS = """
frontendPolicies: {{tracing: {tracing}}}
gateways:
  default: {{port: {{port}}}}
routes:
- backends:
  - ai:
      groups:
      - providers: [{{name: one, hostOverride: "127.0.0.1:{first}", provider: {{openAI: {{model: one}}}}}}]
      - providers: [{{name: two, hostOverride: "127.0.0.1:{second}", provider: {{openAI: {{model: two}}}}}}]
"""


def test_another_provider_is_a_linked_attempt(gateway: Any, provider: StandIn, collector: GrpcCollector) -> None:
    broken = StandIn(whole({"error": {"message": "no"}}, 503))
    running = gateway(GROUPS.format(tracing=tracing(collector), first=broken.port, second=provider.port))
    assert httpx.post(running.url + "/v1/chat/completions", json=ASK, timeout=60).status_code == 200
    spans = collector.trace(3)
    first, second = sorted((span for span in spans if span.kind == "client"), key=lambda span: span.start)
    assert [(span.name, span.failed, span.parent) for span in (first, second)] == [
        ("chat one", True, server_of(spans).id), ("chat two", False, server_of(spans).id),
    ]  # fmt: skip
    assert (first.links, second.links) == ([], [(first.trace, first.id)])
    assert first.attributes["error.type"] == "503"
    broken.close()


def test_guards_of_both_phases(gateway: Any, provider: StandIn, collector: GrpcCollector) -> None:
    webhook = Webhook()
    guards = {"request": [json.loads(webhook.entry())], "response": [json.loads(webhook.entry())]}
    running = gateway(MODEL.format(tracing=tracing(collector), backend=provider.port, guards=json.dumps(guards)))
    try:
        assert httpx.post(running.url + "/v1/chat/completions", json=ASK).status_code == 200
        spans = collector.trace(4)
    finally:
        webhook.server.shutdown()
        webhook.server.server_close()
    server, call = server_of(spans), only(spans, "Llm")
    before, after = (span for span in spans if span.attributes.get("gw.outbound.subtype") == "Guardrail")
    assert (before.parent, before.kind, before.attributes["gw.outbound.kind"]) == (server.id, "client", "Policy")
    assert after.parent == call.id, "the answer is guarded while the provider's call is under way"
    assert [fields["traceparent"] for _, fields, _ in webhook.calls] == [
        f"00-{server.trace}-{span.id}-01" for span in (before, after)
    ]


def test_a_call_of_an_authorization_service(gateway: Any, provider: StandIn, collector: GrpcCollector) -> None:
    authorizer = GrpcAuthorizer()
    text = f"""
frontendPolicies: {{tracing: {tracing(collector)}}}
gateways:
  default: {{port: {{port}}}}
routes:
- policies:
    extAuthz: {{host: "127.0.0.1:{authorizer.port}", protocol: {{grpc: {{}}}}}}
  backends: [{{host: 127.0.0.1:{provider.port}}}]
"""
    running = gateway(text)
    try:
        assert httpx.get(running.url).status_code == 200
        spans = collector.trace(3)
    finally:
        authorizer.stop()
    call = only(spans, "ExtAuthz")
    assert (call.name, call.parent) == ("envoy.service.auth.v3.Authorization/Check", server_of(spans).id)
    wanted = {"rpc.system.name": "grpc", "rpc.method": call.name, "rpc.response.status_code": "OK"}
    assert {key: call.attributes.get(key) for key in wanted} == wanted
    assert dict(authorizer.fields[-1])["traceparent"] == f"00-{call.trace}-{call.id}-01"


PROCESS = "envoy.service.ext_proc.v3.ExternalProcessor/Process"


def calls_of(spans: list[Span]) -> list[Span]:
    """Calls of the processor, in their order."""
    return sorted((span for span in spans if span.attributes.get("gw.outbound.subtype") == "ExtProc"), key=lambda span: span.start)


def test_a_call_of_a_processor(gateway: Any, provider: StandIn, collector: GrpcCollector, processor: ProcessorPeer) -> None:
    policy = {"host": f"127.0.0.1:{processor.port}", "processingOptions": {"requestBodyMode": "none", "responseBodyMode": "none"}}
    text = f"""
frontendPolicies: {{tracing: {tracing(collector)}}}
gateways:
  default: {{port: {{port}}}}
routes:
- policies: {{extProc: {json.dumps(policy)}}}
  backends: [{{host: 127.0.0.1:{provider.port}}}]
"""
    running = gateway(text)
    assert httpx.get(running.url, timeout=60).status_code == 200
    spans = collector.trace(3)
    call, server = only(spans, "ExtProc"), server_of(spans)
    assert (call.name, call.kind, call.parent, call.failed) == (PROCESS, "client", server.id, False)
    wanted = {
        "rpc.system.name": "grpc", "rpc.method": PROCESS, "rpc.response.status_code": "OK", "gw.outbound.kind": "Policy",
        "server.port": processor.port,
    }  # fmt: skip
    assert {key: call.attributes.get(key) for key in wanted} == wanted
    # It spans the response too: it ends behind the call of the backend.
    backend = only(spans, "Http")
    assert call.start <= backend.start <= backend.end <= call.end
    assert processor.fields[-1]["traceparent"] == f"00-{server.trace}-{call.id}-01"
    processor.react = lambda part, message: iter([b"\xff"])
    assert httpx.get(running.url, timeout=60).status_code == 500
    [_, broken] = calls_of(collector.trace(5))
    assert (broken.failed, broken.attributes["error.type"]) == (True, "UNKNOWN")
    processor.server.stop(None).wait()
    assert httpx.get(running.url, timeout=60).status_code == 500
    [_, _, away] = calls_of(collector.trace(7))
    assert (away.failed, away.attributes["error.type"]) == (True, "UNAVAILABLE")


def test_a_call_of_a_rate_limit_service(gateway: Any, provider: StandIn, collector: GrpcCollector) -> None:
    counting = Counting()
    policy = {"host": f"127.0.0.1:{counting.port}", "domain": "d", "descriptors": [{"entries": [{"key": "a", "value": "'b'"}]}]}
    running = gateway(f"""
frontendPolicies: {{tracing: {tracing(collector)}}}
gateways:
  default: {{port: {{port}}}}
routes:
- policies: {{remoteRateLimit: {json.dumps(policy)}}}
  backends: [{{host: 127.0.0.1:{provider.port}}}]
""")
    assert httpx.get(running.url, timeout=60).status_code == 200
    spans = collector.trace(3)
    call = only(spans, "RateLimit")
    assert (call.name, call.parent) == ("envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", server_of(spans).id)
    counting.stop()


@pytest.mark.parametrize("several", [False, True])
def test_a_call_of_a_tool(gateway: Any, sample: Callable[..., Any], collector: GrpcCollector, several: bool) -> None:
    port = sample("mcp_server", "--http", "127.0.0.1:0")
    targets = [f'{{name: t, mcp: {{host: "http://127.0.0.1:{port}/mcp"}}}}']
    if several:
        targets.append(f"{{name: b, {SAMPLE}}}")
    text = f"""
frontendPolicies: {{tracing: {tracing(collector, filter="mcp.methodName == 'tools/call'")}}}
gateways:
  default: {{port: {{port}}}}
routes:
- backends:
  - mcp: {{targets: [{", ".join(targets)}]}}
"""
    raw = Raw(gateway(text))
    raw.ask("tools/call", name="t_echo" if several else "echo", arguments={"message": "CANARY"})
    spans = collector.trace(2)
    server = server_of(spans)
    call = next(span for span in spans if span.attributes.get("mcp.method.name") and span.kind == "client")
    assert (server.name, call.name, call.parent) == ("tools/call", "tools/call echo", server.id)
    wanted = {
        "gw.outbound.kind": "Primary", "gw.outbound.subtype": "Mcp", "mcp.method.name": "tools/call", "mcp.target": "t",
        "gen_ai.tool.name": "echo", "gen_ai.operation.name": "execute_tool",
    }  # fmt: skip
    assert {key: call.attributes.get(key) for key in wanted} == wanted
    assert server.attributes["mcp.target"] == "t"
    assert b"CANARY" not in b"".join(collector.exports), "payloads are no attributes unless an expression asks for them"
