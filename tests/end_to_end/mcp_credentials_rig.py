"""What tests of mcp credentials and others share."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, messages
from tests.end_to_end.identity_rig import ISSUER, JWKS, token
from tests.end_to_end.recorder import Record, Recorder

TOKEN = token(exp=4_000_000_000)
API_KEY = "inbound-api-key-0001"
BASIC = base64.b64encode(b"ada:password").decode()
HTPASSWD = "ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="
SIGNER = ec.generate_private_key(ec.SECP256R1())
PEM = SIGNER.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()
RAW = {
    "authorization": "Bearer inbound-raw-token",
    "proxy-authorization": "Basic inbound-raw-proxy",
    "cookie": "session=inbound-raw-cookie",
    "x-api-key": "inbound-raw-key",
}


class Way(NamedTuple):
    """How a client proves who it is: the route's policies, its fields and query, and the texts that are secret."""

    policies: dict[str, Any]
    fields: dict[str, str]
    secrets: tuple[str, ...]
    query: str = ""


def jwt_auth(location: dict[str, Any] | None = None, mode: str = "strict") -> dict[str, Any]:
    found: dict[str, Any] = {"issuer": ISSUER, "audiences": ["api"], "jwks": JWKS, "mode": mode}
    return {"jwtAuth": found | ({} if location is None else {"location": location})}


def api_key(location: dict[str, Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"keys": [{"key": API_KEY}], "mode": "strict"}
    return {"apiKey": found | ({} if location is None else {"location": location})}

INBOUND = {
    "raw": Way({}, RAW, ("inbound-raw",)),
    "jwt": Way(jwt_auth(), {"authorization": f"Bearer {TOKEN}"}, (TOKEN,)),
    "jwt-optional": Way(jwt_auth(mode="optional"), {"authorization": f"Bearer {TOKEN}"}, (TOKEN,)),
    "jwt-header": Way(jwt_auth({"header": {"name": "x-token"}}), {"x-token": TOKEN}, (TOKEN,)),
    "jwt-cookie": Way(jwt_auth({"cookie": {"name": "tok"}}), {"cookie": f"a=1; tok={TOKEN}"}, (TOKEN,)),
    "jwt-query": Way(jwt_auth({"queryParameter": {"name": "tok"}}), {}, (TOKEN,), f"?tok={TOKEN}"),
    "jwt-expression": Way(jwt_auth({"expression": 'request.headers["x-tok"]'}), {"x-tok": TOKEN}, (TOKEN,)),
    "jwt-permissive": Way(
        jwt_auth(mode="permissive"), {"authorization": "Bearer inbound-not-valid"}, ("inbound-not-valid",)
    ),
    "key": Way(api_key(), {"authorization": f"Bearer {API_KEY}"}, (API_KEY,)),
    "key-header": Way(api_key({"header": {"name": "x-mine"}}), {"x-mine": API_KEY}, (API_KEY,)),
    "key-expression": Way(api_key({"expression": 'request.headers["x-mine"]'}), {"x-mine": API_KEY}, (API_KEY,)),
    "mcp": Way(
        {"mcpAuthentication": {"issuer": ISSUER, "audiences": ["api"], "jwks": JWKS}},
        {"authorization": f"Bearer {TOKEN}"},
        (TOKEN,),
    ),
    "basic": Way({"basicAuth": {"htpasswd": HTPASSWD}}, {"authorization": f"Basic {BASIC}"}, (BASIC,)),
}


def signed(found: Record) -> bool:
    scheme, _, text = found.fields.get("authorization", "").partition(" ")
    claims = jwt.decode(text, SIGNER.public_key(), ["ES256"], audience="target")
    return (scheme, claims["sub"]) == ("Bearer", "gateway")

OUTBOUND: dict[str, tuple[dict[str, Any] | None, Callable[[Record], bool]]] = {
    "none": (None, lambda found: "authorization" not in found.fields),
    "key": ({"key": "outbound-key"}, lambda found: found.fields.get("authorization") == "Bearer outbound-key"),
    "key-header": (
        {"key": {"value": "outbound-key", "location": {"header": {"name": "x-up"}}}},
        lambda found: found.fields.get("x-up") == "outbound-key" and "authorization" not in found.fields,
    ),
    "key-query": (
        {"key": {"value": "outbound-key", "location": {"queryParameter": {"name": "k"}}}},
        lambda found: "k=outbound-key" in found.target,
    ),
    "jwtSign": (
        {"jwtSign": {"signingKey": PEM, "alg": "ES256", "claims": {"sub": "gateway", "aud": "target"}}},
        signed,
    ),
    "credentials": (
        {"credentials": [{"key": "outbound-extra", "location": {"header": {"name": "x-extra"}}}]},
        lambda found: found.fields.get("x-extra") == "outbound-extra",
    ),
    "passthrough": ({"passthrough": {}}, lambda _found: True),
    "passthrough-header": ({"passthrough": {"location": {"header": {"name": "x-up"}}}}, lambda _found: True),
}
TRANSPORTS = ("plain", "mcp", "sse", "openapi")
DOCUMENT = {"openapi": "3.0.0", "paths": {"/call": {"post": {
    "operationId": "call",
    "parameters": [{"name": "Authorization", "in": "header", "schema": {"type": "string"}}],
}}}}  # fmt: skip


def target_of(transport: str, key: str, recorder: Recorder, policies: dict[str, Any]) -> dict[str, Any]:
    host = f"http://127.0.0.1:{recorder.port}"
    kinds: dict[str, dict[str, Any]] = {
        "mcp": {"mcp": {"host": f"{host}/r/{key}/mcp"}},
        "sse": {"sse": {"host": f"{host}/r/{key}/sse"}},
        "openapi": {"openapi": {"host": host, "schema": {**DOCUMENT, "servers": [{"url": f"/r/{key}"}]}}},
    }
    return {"name": "t", **kinds["mcp" if transport == "plain" else transport], "policies": policies}


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    found = Recorder()
    yield found
    found.stop()


def use(url: str, fields: dict[str, str], query: str, prefix: str) -> None:
    """One session: what a client does, and its end."""
    with httpx.Client(headers={**ACCEPT, **fields}, timeout=30) as http:

        def post(message: dict[str, Any]) -> httpx.Response:
            return http.post(f"{url}{query}", json={"jsonrpc": "2.0", **message})

        opened = post({"id": 1, "method": "initialize", "params": INITIALIZE})
        assert opened.status_code == 200, (url, opened.text)
        http.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        assert post({"method": "notifications/initialized"}).status_code == 202
        assert post({"id": 2, "method": "tools/list"}).status_code == 200
        arguments = {"header": {"Authorization": "Bearer argument"}}
        called = post({"id": 3, "method": "tools/call", "params": {"name": f"{prefix}call", "arguments": arguments}})
        assert "result" in messages(called)[-1], (url, called.text)
        with http.stream("GET", f"{url}{query}") as events:
            assert events.status_code in (200, 405)
        assert http.delete(f"{url}{query}").status_code == 200

# ProxySelector in which a policy takes the token, and passthrough gives it back.
TAKEN = ("jwt", "jwt-optional", "jwt-header", "jwt-cookie", "jwt-query", "mcp")


def allowed(out: str, way: str) -> str | None:
    """The field in which the client's token may arrive; None where it may not."""
    if out == "passthrough-header" and way.startswith(("jwt", "mcp")) and way != "jwt-permissive":
        return "x-up"
    # What no policy took is passed on as it came.
    return "authorization" if out.startswith("passthrough") else None
