"""Policies of MCP targets, over every transport: TLS, header modifiers, transformations, time-outs; and those of the backend."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, SAMPLE, Raw, config
from tests.end_to_end.identity_rig import token
from tests.end_to_end.mcp_credentials_rig import TRANSPORTS, jwt_auth, target_of, use
from tests.end_to_end.recorder import Recorder

pytestmark = pytest.mark.warm


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    found = Recorder()
    yield found
    found.stop()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_tls_headers_and_transformations(
    gateway: Callable[..., Any], recorder: Recorder, tmp_path: Path, transport: str
) -> None:
    authority = trustme.CA()
    root = tmp_path / "root.pem"
    authority.cert_pem.write_to_path(root)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("target.test").configure_cert(context)
    recorder.socket = context.wrap_socket(recorder.socket, server_side=True)
    policies = {
        "backendTLS": {"root": str(root), "hostname": "target.test"},
        "requestHeaderModifier": {"set": {"x-set": "s"}, "add": {"x-add": "a"}, "remove": ["x-gone"]},
        "transformations": {"request": {"set": {"x-user": "jwt.sub", "x-method": "request.method"}, "remove": ["x-client"]}},
        "backendAuth": {"key": "outbound"},
    }
    target = target_of(transport, "p", recorder, policies)
    mcp: dict[str, Any] = {"targets": [target]} | ({} if transport == "plain" else {"prefixMode": "always"})
    route = {"policies": jwt_auth(), "backends": [{"mcp": mcp}]}
    running = gateway("gateways: {default: {port: {port}}}\nroutes: " + json.dumps([route]) + "\n")
    fields = {"authorization": f"Bearer {token(exp=4_000_000_000)}", "x-gone": "1", "x-client": "1", "x-kept": "1"}
    use(f"{running.url}/mcp", fields, "", "" if transport == "plain" else "t_")
    seen = recorder.seen["p"]
    assert seen
    for one in seen:
        found = {name: one.fields.get(name) for name in ("x-set", "x-add", "x-gone", "x-user", "x-method", "x-client")}
        assert found == {"x-set": "s", "x-add": "a", "x-gone": None, "x-user": "ada", "x-method": one.method, "x-client": None}
        assert one.fields["authorization"] == "Bearer outbound"
        assert one.fields.get("x-kept", "1") == "1"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_target_whose_certificate_is_not_trusted_is_not_used(
    gateway: Callable[..., Any], recorder: Recorder, transport: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    recorder.socket = context.wrap_socket(recorder.socket, server_side=True)
    target = target_of(transport, "p", recorder, {"backendTLS": {}})
    mcp: dict[str, Any] = {"targets": [target]} | ({} if transport == "plain" else {"prefixMode": "always"})
    running = gateway(f"gateways: {{default: {{port: {{port}}}}}}\nroutes: [{{backends: [{{mcp: {json.dumps(mcp)}}}]}}]\n")
    raw = Raw(running)
    if transport == "openapi":  # which has nothing to open
        assert raw.text("t_call").startswith("error failed to send message: t: upstream call failed")
    else:
        assert raw.opened.status_code in (500, 503)
    assert not recorder.seen["p"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_target_that_does_not_answer_in_its_time(
    gateway: Callable[..., Any], upstream: Callable[..., int], transport: str
) -> None:
    def silent(connection: socket.socket) -> None:
        connection.settimeout(30)
        while connection.recv(65536):
            pass

    place = Recorder.__new__(Recorder)
    place.server_address = ("127.0.0.1", upstream(silent))
    target = target_of(transport, "p", place, {"http": {"requestTimeout": "300ms"}})
    mcp: dict[str, Any] = {"targets": [target]} | ({} if transport == "plain" else {"prefixMode": "always"})
    running = gateway(f"gateways: {{default: {{port: {{port}}}}}}\nroutes: [{{backends: [{{mcp: {json.dumps(mcp)}}}]}}]\n")
    raw = Raw(running)
    text = raw.text("t_call") if transport == "openapi" else raw.opened.text
    assert "upstream call timeout" in text or "not opened in time" in text
    if transport != "openapi":
        assert raw.opened.status_code == (504 if transport == "plain" else 500)


def test_policies_of_a_backend_hold_for_what_the_client_asks_of_it(gateway: Callable[..., Any]) -> None:
    running = gateway(
        f"""
        gateways: {{default: {{port: {{port}}}}}}
        routes:
        - backends:
          - mcp: {{targets: [{{name: one, {SAMPLE}}}, {{name: two, {SAMPLE}}}]}}
            policies:
              authorization: {{rules: ['request.headers["x-team"] == "red"']}}
              responseHeaderModifier: {{set: {{x-seen: 'yes'}}}}
        """
    )
    assert Raw(running).opened.status_code == 403
    raw = Raw.__new__(Raw)
    raw.http = httpx.Client(base_url=running.url, headers={**ACCEPT, "x-team": "red"}, timeout=60)
    opened = raw.post({"id": 0, "method": "initialize", "params": INITIALIZE})
    assert (opened.status_code, opened.headers["x-seen"]) == (200, "yes")


def test_a_stdio_target_has_no_policies_and_says_so(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"one": SAMPLE}))
    text = running.path.read_text()
    running.write(text[text.index("gateways:") :] + "    policies: {backendAuth: {key: k}}\n")
    running.wait_log("a stdio target has no policies")
    assert Raw(running).opened.status_code == 200
