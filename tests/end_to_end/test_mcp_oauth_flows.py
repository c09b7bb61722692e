"""The official clients of MCP through the gateway at a real authorization server that names itself in its answers (RFC 9207).

`make node-peers` installs it below build/node; without it (or without Node.js) these tests are skipped.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from tests.end_to_end.mcp_oauth_flows_rig import BACK, KINDS, OWN_CLIENT, started
from tests.end_to_end.mcp_oauth_rig import PROVIDER, ROOT, Memory, consent

CLIENT = PROVIDER.parents[2] / "@modelcontextprotocol" / "client"
pytestmark = [
    pytest.mark.warm,
    pytest.mark.node,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("node") is None or not PROVIDER.exists(), reason="run `make node-peers`"),
]




async def python_client(resource: str) -> tuple[list[str], dict[str, str], Memory]:
    """Return the tools that the official Python client finds, what it was sent back with, and what it keeps."""
    import httpx2
    from mcp import ClientSession
    from mcp.client.auth import OAuthClientProvider
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

    found: dict[str, str] = {}
    memory = Memory()

    async def redirect(location: str) -> None:
        found.update(await asyncio.to_thread(consent, location))

    async def back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

    metadata = OAuthClientMetadata(
        redirect_uris=[BACK], client_name="test", token_endpoint_auth_method="none", scope="mcp offline_access"
    )
    auth = OAuthClientProvider(resource, metadata, memory, redirect, back)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60) as http,
        streamable_http_client(resource, http_client=http) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        return [tool.name for tool in (await session.list_tools()).tools], found, memory


def typescript_client(resource: str) -> str:
    """Return what the official TypeScript client gets from `echo`."""
    command = ["node", str(ROOT / "tests" / "peers" / "oauth_client.mjs"), str(CLIENT), resource, BACK]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as client:
        assert client.stdout is not None
        location = client.stdout.readline().strip()
        assert location.startswith("http"), location + client.stdout.read()
        output, _ = client.communicate(f"{BACK}?{urlencode(consent(location))}\n", timeout=60)
        return output.strip()


@pytest.mark.parametrize("kind", KINDS)
def test_both_official_clients_find_their_way(gateway: Callable[..., Any], kind: str) -> None:
    running = gateway("gateways:\n  default: {port: {port}}\n", 2)
    resource = f"{running.url}/mcp"
    own = KINDS[kind] == OWN_CLIENT
    peer, _ = started(running, kind, own)
    try:
        metadata = httpx.get(f"{running.url}/.well-known/oauth-authorization-server/mcp", timeout=60).json()
        assert metadata["issuer"] == resource
        assert metadata["authorization_response_iss_parameter_supported"] is True
        tools, answer, memory = asyncio.run(python_client(resource))
        assert tools == ["echo", "add", "slow"]
        assert answer["iss"] == resource, "what the client was told is the issuer"
        assert (memory.client.client_id == "ours") is own
        renewed = httpx.post(metadata["token_endpoint"], data={
            "grant_type": "refresh_token", "refresh_token": memory.tokens.refresh_token, "client_id": memory.client.client_id,
        }, timeout=60)  # fmt: skip
        assert renewed.status_code == 200, renewed.text
        assert renewed.headers["access-control-allow-origin"] == "*"
        assert typescript_client(resource) == "Echo: from ts"
        running.wait_log("jwt.sub=ada")
    finally:
        peer.terminate()
        peer.wait()


def test_codes_go_to_their_client_alone(gateway: Callable[..., Any]) -> None:
    running = gateway("gateways:\n  default: {port: {port}}\n", 2)
    peer, provider = started(running, "keycloak", False)
    try:
        base = f"{running.url}/.well-known/oauth-authorization-server/mcp"

        def registered(uri: str) -> str:
            wanted = {"redirect_uris": [uri], "token_endpoint_auth_method": "none", "client_name": "x"}
            answer = httpx.post(f"{base}/client-registration", json=wanted, timeout=60)
            assert (answer.status_code, answer.json()["redirect_uris"]) == (201, [uri]), answer.text
            assert "registration_client_uri" not in answer.json()
            return str(answer.json()["client_id"])

        def asked(client_id: str, uri: str, **more: str) -> httpx.Response:
            fields = {"response_type": "code", "client_id": client_id, "redirect_uri": uri, "state": "mine", "scope": "mcp",
                      "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256", **more}  # fmt: skip
            return httpx.get(f"{base}/authorize?{urlencode(fields)}", timeout=60)

        honest, evil = registered(BACK), registered("https://evil.test/cb")
        # Another client's place, one it never named, or parameters that say something else: no redirect at all.
        for answer in (asked(honest, "https://evil.test/cb"), asked(honest, f"{BACK}/x"), asked(evil, BACK),
                       asked(honest, BACK, request_uri="https://evil.test/r"), asked(honest, BACK, response_mode="fragment")):  # fmt: skip
            assert (answer.status_code, answer.headers.get("location")) == (400, None), answer.text
        # A loopback client listens on any port (RFC 8252 section 7.3).
        assert asked(honest, "http://localhost:12345/cb").status_code == 302
        good, bad = (parse_qs(urlsplit(asked(one, uri).headers["location"]).query) for one, uri in
                     ((honest, BACK), (evil, "https://evil.test/cb")))  # fmt: skip
        assert good["redirect_uri"] != bad["redirect_uri"]
        # The provider sends the honest client's code where the honest client is registered; a state of another client's
        # login must not lead it away.
        [place], [stolen] = good["redirect_uri"], bad["state"]
        for state, iss, status in ((stolen, provider, 400), ("x", provider, 400), (good["state"][0], "https://other.test", 400),
                                   (good["state"][0], "", 400), (good["state"][0], provider, 302)):  # fmt: skip
            answer = httpx.get(place, params={"code": "c", "state": state, "iss": iss}, timeout=60)
            assert answer.status_code == status, (state, iss, answer.text)
        assert answer.headers["location"] == f"{BACK}?{urlencode({'code': 'c', 'state': 'mine', 'iss': running.url + '/mcp'})}"
        # Who is not registered here is the provider's to judge.
        answer = asked("stranger", "https://evil.test/cb")
        assert answer.status_code == 302
        assert httpx.get(answer.headers["location"], timeout=60).status_code == 400
        for uris in (["javascript:alert(1)"], ["https://a.test/#x"], ["/relative"], [], "https://a.test", ["https://a.test/\r\nx: y"]):
            answer = httpx.post(f"{base}/client-registration", json={"redirect_uris": uris}, timeout=60)
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri"), uris
    finally:
        peer.terminate()
        peer.wait()
