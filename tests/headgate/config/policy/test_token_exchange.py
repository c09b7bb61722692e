"""`oauthTokenExchange` and `crossAppAccess` from the file to the IR and the dump."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate

from headgate.config.policy import backend_auth, token_exchange
from headgate.ir.gateway import Gateway
from headgate.ir.policy.token_exchange import CrossAppAccess, TokenExchange

HEAD = "gateways: {default: {port: 1}}\nbackends: [{name: as, host: 'as:1', policies: {backendAuth: {key: CANARY}}}]\nroutes:\n"
HEAD += "- backends: [{host: 'h:1', policies: {backendAuth: "
CLIENT = "clientAuth: {clientId: c, clientSecret: CANARY}"


def auth_of(gateway: Gateway) -> Any:
    [backend] = gateway.binds[0].listeners[0].routes[0].backends
    return backend.policies.auth


def main_of(loaded: Callable[..., Gateway], text: str) -> Any:
    auth = auth_of(loaded(f"{HEAD}{text}}}}}]"))
    shown = json.dumps(backend_auth.dump(auth))
    assert "CANARY" not in shown + repr(auth)
    return auth.main


def test_defaults(loaded: Callable[..., Gateway]) -> None:
    found = main_of(loaded, f"{{oauthTokenExchange: {{host: 'as:2', {CLIENT}}}}}")
    assert isinstance(found, TokenExchange)
    client = found.endpoint.client
    assert client is not None
    assert (client.method, found.grant, found.endpoint.path) == ("clientSecretBasic", "tokenExchange", "/")
    assert found.subject_type.endswith(":access_token")
    assert (found.cache.entries, found.cache.ttl_s) == (8192, 300)
    cross = main_of(loaded, "{crossAppAccess: {audience: a, scopes: [s], identityProvider: {host: 'i:1', " + CLIENT + "}, "
                            "resourceAuthorizationServer: {host: 'r:1', " + CLIENT + "}}}")  # fmt: skip
    assert isinstance(cross, CrossAppAccess)
    assert (cross.subject_type.rpartition(":")[2], cross.access_scopes) == ("id_token", None)


def test_an_endpoint_may_be_a_backend_with_its_key(loaded: Callable[..., Gateway]) -> None:
    found = main_of(loaded, "{oauthTokenExchange: {backend: as, path: /t}}")
    service = found.endpoint.service
    key = service.policies.auth.main
    assert (key.location.name, key.location.prefix, key.key.secret.reveal(), service.name) == ("authorization", "Bearer ", "CANARY", "as")


def test_certificates_of_assertions(loaded: Callable[..., Gateway], tmp_path: Path) -> None:
    leaf = trustme.CA().issue_cert("me.test")
    (tmp_path / "key.pem").write_bytes(leaf.private_key_pem.bytes())
    (tmp_path / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    key = f"signingKey: {{file: {tmp_path}/key.pem}}, certificate: {{file: {tmp_path}/cert.pem}}, alg: ES256"
    for kind in ("x5c", "x5t#S256"):
        text = f"{{oauthTokenExchange: {{host: 'as:2', clientAuth: {{method: privateKeyJwt, clientId: c, {key}, "
        found = main_of(loaded, text + f"assertionAudience: a, certificateHeader: '{kind}'}}}}}}").endpoint.client
        first = load_pem_x509_certificate((tmp_path / "cert.pem").read_bytes())
        if kind == "x5c":
            assert base64.b64decode(found.chain[0]) == first.public_bytes(Encoding.DER)
            assert (len(found.chain), found.thumbprint) == (len(leaf.cert_chain_pems), None)
        else:
            print_ = base64.urlsafe_b64encode(first.fingerprint(hashes.SHA256())).decode().rstrip("=")
            assert (found.chain, found.thumbprint) == ((), print_)


def test_an_actor_may_have_to_be_named(loaded: Callable[..., Gateway]) -> None:
    for told in (True, False):
        actor = f"actorToken: {{source: {{header: {{name: a}}}}, enforceMayAct: {str(told).lower()}}}"
        found = main_of(loaded, f"{{oauthTokenExchange: {{host: 'as:2', {actor}}}}}")
        assert found.enforce_may_act is told
        shown = token_exchange.dump(found)["oauthTokenExchange"]["actorToken"]
        assert ("enforceMayAct" in shown) is told


REFUSED = (
    ("{oauthTokenExchange: {host: 'as:2', path: x}}", "a path must begin with /"),
    ("{oauthTokenExchange: {backend: nobody}}", "no host backend is named"),
    ("{oauthTokenExchange: {host: 'as:2', additionalParams: {scope: 'request.path'}}}", "'scope' is set by the gateway"),
    ("{oauthTokenExchange: {host: 'as:2', additionalParams: {x: 'nope('}}}", "additionalParams.x"),
    ("{oauthTokenExchange: {host: 'as:2', grantType: jwtBearer, actorToken: {source: {header: {name: a}}}}}", "actorToken: is for"),
    ("{oauthTokenExchange: {host: 'as:2', authorizationLocation: {expression: request.path}}}", "only read a credential"),
    ("{oauthTokenExchange: {host: 'as:2', clientAuth: {method: privateKeyJwt, clientId: c, signingKey: CANARY, assertionAudience: a}}}",
     "not an unencrypted PEM private key"),
    ("{crossAppAccess: {audience: a, identityProvider: {host: 'i:1'}, resourceAuthorizationServer: {host: 'r:1'}}}", "clientAuth"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "fault"), REFUSED, ids=[text[:70] for text, _ in REFUSED])
def test_what_cannot_work_is_refused(text: str, fault: str, faults: Callable[..., list[str]]) -> None:
    found = faults(f"{HEAD}{text}}}}}]")
    assert any(fault in line for line in found), found
    assert "CANARY" not in "".join(found)
