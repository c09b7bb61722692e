"""Agent runtimes of Amazon Bedrock AgentCore, as a backend; the URLs and signatures are those of botocore."""

from __future__ import annotations

import json
from typing import Any

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import botocore.session
import pytest
from rig import Message, Rig, on_rig

from headgate_engine.a2a.backend import A2aBackend
from headgate_engine.aws.runtime import AgentRuntime
from headgate_engine.context.request import Reply
from headgate_engine.plan.plans import BackendPlan, RoutePlan
from headgate_engine.route.table import RouteRule, RouteTable
from headgate_engine.steps.aws_signature import AwsKeys, AwsSignatureStep
from headgate_engine.steps.held import HeldCredential

ARN = "arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/agent_x-AbCdEf1234"
ESCAPED = "arn%3Aaws%3Abedrock-agentcore%3Aeu-west-1%3A123456789012%3Aruntime%2Fagent_x-AbCdEf1234"
PATH = f"/runtimes/{ESCAPED}/invocations"
HOST = "bedrock-agentcore.eu-west-1.amazonaws.com"
KEYS = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "a/session+token==")


def in_front(rig: Rig, *, agent: bool = False, query: bytes = b"", steps: tuple[Any, ...] = ()) -> None:
    backend = AgentRuntime(PATH.encode(), query, cards=agent)
    whole = A2aBackend(backend, limit=1000, failed=Reply(503)) if agent else backend
    rig.backend = BackendPlan("b", "http", whole)
    rig.backend.pool = rig.pool
    rig.backend.authority = HOST.encode()
    rig.backend.final_steps = steps
    rig.route = RoutePlan("r", "default", "", (rig.backend,), (1,))
    rig.listener.routes = RouteTable([RouteRule(target=rig.route)])


def prepared(operation: str, **params: Any) -> Any:
    """What botocore sends for an operation."""
    session = botocore.session.Session()
    session.set_credentials(*KEYS)
    client = session.create_client("bedrock-agentcore", region_name="eu-west-1")
    sent: list[Any] = []

    def take(request: Any, **_: Any) -> Any:
        sent.append(request)
        return botocore.awsrequest.AWSResponse(request.url, 200, {}, Raw())

    client.meta.events.register("before-send.bedrock-agentcore", take)
    getattr(client, operation)(**params)
    return sent[0]


class Raw:
    """An empty body, as botocore reads it."""

    def stream(self, *_: Any, **__: Any) -> Any:
        return iter(())

    def read(self, *_: Any) -> bytes:
        return b""


@pytest.mark.parametrize("qualifier", [None, "DEFAULT", "a b/ä?"])
@on_rig()
async def test_requests_go_where_botocore_sends_them(rig: Rig, qualifier: str | None) -> None:
    more = {} if qualifier is None else {"qualifier": qualifier}
    query = b"" if qualifier is None else {"DEFAULT": b"?qualifier=DEFAULT"}.get(qualifier, b"?qualifier=a%20b%2F%C3%A4%3F")
    theirs = prepared("invoke_agent_runtime", agentRuntimeArn=ARN, payload=b"{}", **more)
    in_front(rig, query=query)
    for target in ("/", "/any/path?with=query", "/.well-known/agent-card.json"):
        await rig.ask(f"POST {target} HTTP/1.1\r\nhost: a.test\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        assert f"https://{rig.seen[-1].get('host')}{rig.seen[-1].target}" == theirs.url


@on_rig()
async def test_cards_are_where_botocore_finds_them(rig: Rig) -> None:
    theirs = prepared("get_agent_card", agentRuntimeArn=ARN, qualifier="DEFAULT")
    in_front(rig, agent=True, query=b"?qualifier=DEFAULT")

    async def script(up: Any) -> None:
        while True:
            await up.request()
            await up.reply(json.dumps({"url": f"https://{HOST}{PATH}/"}).encode())

    rig.script = script
    for path in ("/x/.well-known/agent-card.json", "/x/.well-known/agent.json"):
        answer = await rig.ask(f"GET {path} HTTP/1.1\r\nhost: a.test\r\n\r\n".encode())
        assert json.loads(answer.body) == {"url": "http://a.test/x"}
        assert f"https://{rig.seen[-1].get('host')}{rig.seen[-1].target}" == theirs.url


FIELDS = {
    "content-type": "application/json", "accept": "application/json, text/event-stream", "mcp-session-id": "m-1",
    "mcp-protocol-version": "2025-06-18", "x-amzn-bedrock-agentcore-runtime-session-id": "s" * 33,
    "x-amzn-bedrock-agentcore-runtime-user-id": "ada", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "x-amzn-trace-id": "Root=1-2-3", "baggage": "a=b",
}  # fmt: skip


def signed_by_botocore(message: Message, body: bytes) -> str:
    """The signature of the same request by botocore, over the fields that the gateway has signed."""
    names = str(message.get("authorization")).partition("SignedHeaders=")[2].partition(",")[0].split(";")
    headers = {name: str(message.get(name)) for name in names if name != "host"}
    request = botocore.awsrequest.AWSRequest("POST", f"https://{HOST}{message.target}", headers, body)
    auth = botocore.auth.SigV4Auth(botocore.credentials.Credentials(*KEYS), "bedrock-agentcore", "eu-west-1")
    request.context["timestamp"] = headers["x-amz-date"]
    canonical = auth.canonical_request(request)
    return auth.signature(auth.string_to_sign(request, canonical), request)


@on_rig()
async def test_signatures_are_those_of_botocore(rig: Rig) -> None:
    held = HeldCredential()
    held.keep(AwsKeys(*(one.encode() for one in KEYS)), 3600.0, 3600.0)
    in_front(rig, query=b"?qualifier=DEFAULT", steps=(AwsSignatureStep(held, region="eu-west-1", service="bedrock-agentcore"),))
    head = "".join(f"{name}: {value}\r\n" for name, value in FIELDS.items())
    await rig.ask(f"POST /x HTTP/1.1\r\nhost: a.test\r\nauthorization: Bearer client\r\n{head}\r\n".encode())
    [message] = rig.seen
    assert {name: message.get(name) for name in FIELDS} == FIELDS
    assert message.all("authorization") == [message.get("authorization")]
    told = str(message.get("authorization"))
    assert "/eu-west-1/bedrock-agentcore/aws4_request" in told
    for name in ("x-amzn-bedrock-agentcore-runtime-session-id", "x-amz-security-token", "host", "content-type"):
        assert name in told
    assert told.endswith(f"Signature={signed_by_botocore(message, b'')}")


@on_rig()
async def test_tunnels_are_refused(rig: Rig) -> None:
    rig.bind.connect_mode = 1
    in_front(rig)
    answer = await rig.ask(b"CONNECT a.test:443 HTTP/1.1\r\nhost: a.test:443\r\n\r\n")
    assert (answer.status, answer.body) == (500, b"invalid backend type")


def test_what_is_no_target() -> None:
    for path, query in ((b"runtimes", b""), (b"", b""), (b"/x", b"qualifier=1")):
        with pytest.raises(ValueError, match="target"):
            AgentRuntime(path, query)
    with pytest.raises(TypeError):
        AgentRuntime(None)  # type: ignore[arg-type]
