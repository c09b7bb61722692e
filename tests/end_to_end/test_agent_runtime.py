"""Agent runtimes of Amazon Bedrock AgentCore: a stand-in for the service, behind a proxy that leads its name there."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from tests.end_to_end.connect_proxy import ConnectProxy
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.engine.aws.test_runtime import KEYS, PATH, signed_by_botocore

pytestmark = pytest.mark.warm

Start = Callable[..., Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
HOST = "bedrock-agentcore.eu-west-1.amazonaws.com"
ARN = "arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/agent_x-AbCdEf1234"
ENVIRONMENT = dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"), KEYS, strict=True))
SESSION = {"x-amzn-bedrock-agentcore-runtime-session-id": "s" * 33, "mcp-session-id": "m-1"}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[tuple[StandIn, ConnectProxy]]:
    """The service, and the proxy through which its name leads to it; its root is `ca.pem`."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    found = StandIn(whole({"fine": True}))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)
    found.server.socket = context.wrap_socket(found.server.socket, server_side=True)
    proxy = ConnectProxy({f"{HOST}:443": found.port})
    yield found, proxy
    proxy.stop()
    found.close()


def config(folder: Path, proxy: ConnectProxy, more: str = "") -> str:
    return f"""
gateways: {{default: {{port: {{port}}}}}}
routes:
- matches: [{{path: {{pathPrefix: /agents/x}}}}]
  backends:
  - aws: {{agentCore: {{agentRuntimeArn: "{ARN}", qualifier: DEFAULT}}}}
    policies:
      backendTLS: {{root: {folder}/ca.pem}}
      backendTunnel: {{proxy: {{host: "127.0.0.1:{proxy.port}"}}}}
{more}
"""


class Sent:
    """A request that the stand-in got, as signed_by_botocore() reads it."""

    def __init__(self, asked: Any) -> None:
        self.target = asked.path
        self.get = asked.headers.get


def test_requests_are_signed(gateway: Start, tmp_path: Path, cloud: tuple[StandIn, ConnectProxy]) -> None:
    stand_in, proxy = cloud
    running = gateway(config(tmp_path, proxy), environment=ENVIRONMENT)
    with httpx.Client(base_url=running.url, timeout=60, headers=SESSION) as client:
        for body in (b'{"prompt": "Hello"}', b"", json.dumps({"prompt": "x" * 500_000}).encode()):
            answer = client.post("/agents/x/any?where=1", content=body, headers={"content-type": "application/json", "authorization": "Bearer c"})
            assert (answer.status_code, answer.json()) == (200, {"fine": True})
            asked = stand_in.last
            assert (asked.method, asked.path, asked.body) == ("POST", f"{PATH}?qualifier=DEFAULT", body)
            assert asked.headers["host"] == HOST
            assert {name: asked.headers[name] for name in SESSION} == SESSION
            assert asked.headers["authorization"].endswith(f"Signature={signed_by_botocore(Sent(asked), body)}")  # type: ignore[arg-type]
    assert proxy.asked[0].startswith(f"CONNECT {HOST}:443 ")
    assert KEYS[1] not in running.log()


@pytest.mark.http1(reason="httpx waits for room for the rest of a body, whatever has been answered")
def test_bodies_that_cannot_be_signed(gateway: Start, tmp_path: Path, cloud: tuple[StandIn, ConnectProxy]) -> None:
    stand_in, proxy = cloud
    running = gateway(config(tmp_path, proxy), environment=ENVIRONMENT)
    assert httpx.post(f"{running.url}/agents/x", content=b"x" * 3_000_000, timeout=60).status_code == 413
    assert stand_in.seen == []


def test_streams_pass_event_by_event(gateway: Start, tmp_path: Path, cloud: tuple[StandIn, ConnectProxy]) -> None:
    stand_in, proxy = cloud
    go = threading.Event()

    def answer(_: StandIn, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for piece in (b"data: one\n\n", b"data: two\n\n"):
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            handler.wfile.flush()
            if piece == b"data: one\n\n":
                assert go.wait(60)
        handler.wfile.write(b"0\r\n\r\n")

    stand_in.answers = [answer]
    running = gateway(config(tmp_path, proxy), environment=ENVIRONMENT)
    with httpx.stream("POST", f"{running.url}/agents/x", json={"prompt": "Hi"}, timeout=60) as response:
        lines = response.iter_lines()
        assert next(lines) == "data: one"
        go.set()                        # the agent says the rest only now
        assert [line for line in lines if line] == ["data: two"]


def test_other_credentials(gateway: Start, tmp_path: Path, cloud: tuple[StandIn, ConnectProxy]) -> None:
    stand_in, proxy = cloud
    running = gateway(config(tmp_path, proxy, "      backendAuth: {key: token-of-oauth}"))
    assert httpx.post(f"{running.url}/agents/x", content=b"x" * 3_000_000, timeout=60).status_code == 200
    assert stand_in.last.headers["authorization"] == "Bearer token-of-oauth"
    assert len(stand_in.last.body) == 3_000_000
    own = "      backendAuth: {aws: {accessKeyId: OTHER, secretAccessKey: s}}"
    running = gateway(config(tmp_path, proxy, own))
    assert httpx.post(f"{running.url}/agents/x", timeout=60).status_code == 200
    assert "Credential=OTHER/" in stand_in.last.headers["authorization"]
    assert "/eu-west-1/bedrock-agentcore/" in stand_in.last.headers["authorization"]


def test_an_agent_of_the_runtime_speaks_a2a(gateway: Start, tmp_path: Path, cloud: tuple[StandIn, ConnectProxy]) -> None:
    stand_in, proxy = cloud
    stand_in.answers = [
        whole({"name": "x", "url": f"https://{HOST}{PATH}/", "preferredTransport": "JSONRPC"}),
        whole({"jsonrpc": "2.0", "id": 1, "result": {"kind": "task", "status": {"state": "completed"}}}),
    ]
    running = gateway(config(tmp_path, proxy, "      a2a: {}"), environment=ENVIRONMENT)
    with httpx.Client(base_url=running.url, timeout=60) as client:
        assert client.get("/agents/x/.well-known/agent-card.json").json()["url"] == f"{running.url}/agents/x"
        assert stand_in.last.path == f"{PATH}/.well-known/agent-card.json?qualifier=DEFAULT"
        assert "authorization" in stand_in.last.headers
        answer = client.post("/agents/x", json={"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}})
        assert answer.json()["result"]["kind"] == "task"
        assert stand_in.last.path == f"{PATH}?qualifier=DEFAULT"
    running.wait_log("protocol=a2a a2a.method=message/send a2a.response.outcome=success a2a.result.kind=task a2a.task.state=completed")


def test_keys_that_cannot_be_had(gateway: Start, tmp_path: Path, cloud: tuple[StandIn, ConnectProxy]) -> None:
    stand_in, proxy = cloud
    nowhere = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
               "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}  # fmt: skip
    running = gateway(config(tmp_path, proxy), environment=nowhere)
    answer = httpx.post(f"{running.url}/agents/x", timeout=60)
    assert answer.status_code == 500
    assert answer.text.startswith("backend authentication failed")
    assert stand_in.seen == []


def test_the_example(gateway: Start, tmp_path: Path, cloud: tuple[StandIn, ConnectProxy]) -> None:
    stand_in, proxy = cloud
    text = (EXAMPLES / "agent-runtime.yaml").read_text().replace("port: 3000", "port: {port}")
    # What the machine of the tests needs besides: a name server that leads elsewhere, and another root.
    way = f"  policies: {{backendTLS: {{root: {tmp_path}/ca.pem}}, backendTunnel: {{proxy: {{host: '127.0.0.1:{proxy.port}'}}}}}}\n"
    text = text.replace("routes:\n", f"{way}routes:\n", 1)
    running = gateway(text, environment=ENVIRONMENT | {"AGENT_ARN": ARN})
    user = {"x-amzn-bedrock-agentcore-runtime-user-id": "somebody else"}
    answer = httpx.post(f"{running.url}/agent", json={"prompt": "Hello"}, headers=SESSION | user, timeout=60)
    assert answer.json() == {"fine": True}
    assert "x-amzn-bedrock-agentcore-runtime-user-id" not in stand_in.last.headers
    assert stand_in.last.headers["authorization"].endswith(f"Signature={signed_by_botocore(Sent(stand_in.last), stand_in.last.body)}")  # type: ignore[arg-type]
    stand_in.answers = [whole({"url": f"https://{HOST}{PATH}/"})]
    assert httpx.get(f"{running.url}/a2a/.well-known/agent-card.json", timeout=60).json() == {"url": f"{running.url}/a2a"}
