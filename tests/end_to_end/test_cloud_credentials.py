"""`backendAuth.aws`, `.gcp` and `.azure`: what backends see, checked by the vendors' own code."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.end_to_end.cloud_stand_in import CONTAINER, Clouds, Key, role_key, verify
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.mcp_credentials_rig import TRANSPORTS, target_of, use
from tests.end_to_end.provider_stand_in import Asked, StandIn, whole
from tests.end_to_end.recorder import Recorder

OWN: Key = ("AKIAOWN", "CANARY-own-secret", None)
ROUTE = """
- name: {name}
  matches: [{{path: {{pathPrefix: /{name}}}}}]
  backends:
  - host: "127.0.0.1:{port}"
    policies: {{backendAuth: {auth}}}
"""
ROLE = "arn:aws:iam::123456789012:role"
AUTHS = {
    "keys": "{aws: {accessKeyId: AKIAOWN, secretAccessKey: CANARY-own-secret, region: eu-west-1, serviceName: execute-api}}",
    "s3": "{aws: {accessKeyId: AKIAOWN, secretAccessKey: CANARY-own-secret, region: eu-west-1, serviceName: s3}}",
    "ambient": "{aws: {serviceName: lambda}}",
    "role": "{aws: {serviceName: lambda, assumeRole: {roleArn: 'ROLE/a', sessionName: fixed}}}",
    "forbidden": "{aws: {serviceName: lambda, assumeRole: {roleArn: 'ROLE/forbidden'}}}",
    "varying": "{aws: {serviceName: lambda, assumeRole: {roleArn: 'ROLE/a', sessionName: {expression: "
               "'request.headers[\"x-user\"]'}, tags: [{key: team, value: red}, {key: user, expression: "
               "'request.headers[\"x-user\"]'}]}}}",
    "google": "{gcp: {}}",
    "identity": "{gcp: {type: idToken, audience: 'https://service.test'}}",
    "service": "{gcp: {credential: {file: FOLDER/service.json}}}",
    "client": "{azure: {explicitConfig: {clientSecret: {tenant_id: t1, client_id: c1, client_secret: CANARY-azure}}}}",
    "wrong": "{azure: {explicitConfig: {clientSecret: {tenant_id: t1, client_id: c2, client_secret: wrong}}}}",
    "short": "{azure: {explicitConfig: {clientSecret: {tenant_id: short, client_id: short, client_secret: CANARY-azure}}}}",
    "slow": "{azure: {explicitConfig: {clientSecret: {tenant_id: t1, client_id: slow, client_secret: CANARY-azure}}}}",
    "managed": "{azure: {explicitConfig: {managedIdentity: {userAssignedIdentity: {resourceId: /sub/x}}}}}",
    "implicit": "{azure: {implicit: {}}}",
}  # fmt: skip


def key_file(folder: Path, clouds: Clouds) -> None:
    """The key of a service account of Google whose tokens come from the stand-in."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    service = {"type": "service_account", "project_id": "p1", "private_key_id": "k1", "private_key": pem,
               "client_email": "a@b.c", "client_id": "1", "token_uri": f"{clouds.url}/google-token"}  # fmt: skip
    (folder / "service.json").write_text(json.dumps(service))


TARGETS = {
    "keys": "{aws: {accessKeyId: AKIAOWN, secretAccessKey: CANARY-own-secret, region: eu-west-1, serviceName: execute-api}}",
    "varying": AUTHS["varying"],
    "google": "{gcp: {}}",
    "managed": AUTHS["managed"],
}


def target_routes(recorder: Recorder) -> str:
    """A route for each kind of credential and each transport of an MCP target."""
    found = []
    for kind, auth in TARGETS.items():
        for transport in TRANSPORTS:
            name = f"{kind}-{transport}"
            policies = {"backendAuth": yaml.safe_load(auth.replace("ROLE", ROLE))}
            mcp: dict[str, Any] = {"targets": [target_of(transport, name, recorder, policies)]}
            mcp |= {} if transport == "plain" else {"prefixMode": "always"}
            found.append({"name": name, "matches": [{"path": {"pathPrefix": f"/mcp/{name}"}}], "backends": [{"mcp": mcp}]})
    return "".join(f"\n- {json.dumps(route)}" for route in found) + "\n"


class Scene:
    """A gateway, the clouds, a backend that answers 200, and one that is an MCP server."""

    def __init__(self, folder: Path) -> None:
        self.clouds, self.backend = Clouds(), StandIn(whole({}))
        key_file(folder, self.clouds)
        routes = "".join(
            ROUTE.format(name=name, port=self.backend.port, auth=auth.replace("ROLE", ROLE).replace("FOLDER", str(folder)))
            for name, auth in AUTHS.items()
        )
        self.recorder = Recorder()
        text = "gateways:\n  default: {port: {port}}\nroutes:" + routes + target_routes(self.recorder)
        self.text = text
        self.running = Gateway(folder, text, 1, self.clouds.environment(folder) | {"RUST_LOG": "trace"})
        self.running.wait_ready()

    def ask(self, path: str, method: str = "GET", **options: Any) -> tuple[int, str]:
        return self.running.fetch(f"{self.running.url}{path}", method, **options)

    def close(self) -> None:
        self.running.stop()
        self.clouds.close()
        self.backend.close()
        self.recorder.stop()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    found = Scene(tmp_path_factory.mktemp("clouds"))
    yield found
    found.close()
    log = found.running.log()
    assert "Traceback" not in log, log
    assert "CANARY" not in log


def test_requests_are_signed_with_keys_of_the_file(scene: Scene) -> None:
    headers = {"content-type": "text/x; a=b", "x-amz-meta-a": " two  words ", "authorization": "Bearer client",
               "x-amz-security-token": "client"}  # fmt: skip
    for path, data in (
        ("/keys", None), ("/keys/a%20b/%2F/c", None), ("/keys/x?b=2&a=1&a=0&e=%2B", b"body"), ("/keys//x/z", b"{}"),
    ):  # fmt: skip
        assert scene.ask(path, "GET" if data is None else "POST", data=data, headers=headers)[0] == 200
        asked = scene.backend.last
        assert asked.path == path
        verify(asked, OWN, "eu-west-1", "execute-api")


def test_a_chunked_body_is_read_before_it_is_signed(scene: Scene, send_raw) -> None:
    request = (
        b"POST /keys HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
    )
    assert send_raw(scene.running.port, request).startswith(b"HTTP/1.1 200 ")
    assert scene.backend.last.body == b"abcdefg"
    verify(scene.backend.last, OWN, "eu-west-1", "execute-api")


def test_s3_is_told_the_hash_of_the_body(scene: Scene) -> None:
    assert scene.ask("/s3/key%20with/../dots", "POST", data=b"content")[0] == 200
    assert len(scene.backend.last.headers["x-amz-content-sha256"]) == 64
    verify(scene.backend.last, OWN, "eu-west-1", "s3")


def test_keys_of_the_environment_are_found_once(scene: Scene) -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(scene.ask("/ambient")[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Beside a great load the keys may take longer than they are waited for, and are asked for again.
    scene.running.wait(lambda: scene.ask("/ambient")[0] == 200)
    verify(scene.backend.last, CONTAINER, "eu-central-1", "lambda")
    assert len(scene.clouds.asked("/aws-container")) == 1 or 500 in found


def test_a_role_is_assumed(scene: Scene) -> None:
    assert scene.ask("/role")[0] == 200
    verify(scene.backend.last, role_key("fixed"), "eu-central-1", "lambda")


def test_a_role_that_may_not_be_assumed_fails_that_request_alone(scene: Scene) -> None:
    status, text = scene.ask("/forbidden")
    assert (status, text) == (500, "backend authentication failed: AWS role: AWS STS answered 403 (AccessDenied)")
    assert scene.ask("/role")[0] == 200


def test_sessions_of_a_role_follow_the_request(scene: Scene) -> None:
    before = len(scene.clouds.asked("/sts"))
    for user in ("cyd", "bob", "cyd"):
        assert scene.ask("/varying", headers={"x-user": user})[0] == 200
        verify(scene.backend.last, role_key(user), "eu-central-1", "lambda")
    asked = scene.clouds.asked("/sts")[before:]
    assert len(asked) == 2
    assert b"Tags.member.2.Key=user&Tags.member.2.Value=cyd" in asked[0].body
    for bad in ({}, {"x-user": "a"}, {"x-user": "a b"}):
        status, text = scene.ask("/varying", headers=bad)
        assert status == 500
        assert text.startswith("backend authentication failed: ")


@pytest.mark.parametrize(
    ("path", "token"),
    [
        ("/google", "google-metadata"),
        ("/service", "google-jwt-bearer"),
        ("/client", "entra-c1-https://cognitiveservices.azure.com/.default"),
        ("/managed", "managed-/sub/x-https://cognitiveservices.azure.com"),
        ("/implicit", "managed-system-https://cognitiveservices.azure.com"),
    ],
)
def test_tokens_of_clouds(scene: Scene, path: str, token: str) -> None:
    for _ in range(2):
        assert scene.ask(path, headers={"authorization": "Bearer client"})[0] == 200
        assert scene.backend.last.headers["authorization"] == f"Bearer {token}"


def test_id_tokens_of_google_are_for_their_audience(scene: Scene) -> None:
    assert scene.ask("/identity")[0] == 200
    claims = scene.backend.last.headers["authorization"].removeprefix("Bearer ").split(".")[1]
    assert json.loads(base64.urlsafe_b64decode(claims + "=="))["aud"] == "https://service.test"


def test_a_refused_client_gets_500_without_what_the_endpoint_said(scene: Scene) -> None:
    status, text = scene.ask("/wrong")
    assert (status, text) == (500, "backend authentication failed: Azure: Microsoft Entra answered 401 (invalid_client)")
    asked = len(scene.clouds.asked("/t1/"))
    assert scene.ask("/wrong")[0] == 500
    assert len(scene.clouds.asked("/t1/")) <= asked + 1      # there is a pause between two tries
    assert scene.ask("/client")[0] == 200


def test_a_token_is_renewed_before_it_ends(scene: Scene) -> None:
    tokens: set[str] = set()
    end = time.monotonic() + 30
    while len(tokens) < 3 and time.monotonic() < end:
        assert scene.ask("/short")[0] == 200
        tokens.add(scene.backend.last.headers["authorization"])
        time.sleep(0.02)
    assert len(tokens) == 3


def test_a_token_endpoint_that_hangs_holds_up_nobody_else(scene: Scene) -> None:
    found: list[int] = []
    given_up = scene.running.log().count("cannot get credentials")
    waiting = [threading.Thread(target=lambda: found.append(scene.ask("/slow")[0])) for _ in range(3)]
    for thread in waiting:
        thread.start()
    for path in ("/client", "/keys", "/google"):
        assert scene.ask(path)[0] == 200
    assert 200 not in found
    scene.clouds.gate.set()
    for thread in waiting:
        thread.join()
    assert set(found) <= {200, 500}          # who came first may have waited too long
    # On a busy machine the gateway may have given it up before the gate opened; it then pauses before it asks again.
    scene.running.wait(lambda: scene.ask("/slow")[0] == 200)
    given_up = scene.running.log().count("cannot get credentials") - given_up
    given_up = max(given_up, found.count(500))       # the log may be late
    assert 1 <= sum(b"client_id=slow" in one.body for one in scene.clouds.asked("/t1/")) <= 1 + given_up


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("kind", TARGETS)
def test_targets_of_mcp(scene: Scene, kind: str, transport: str) -> None:
    name = f"{kind}-{transport}"
    fields = {"authorization": "Bearer inbound", "x-user": "ada"}
    use(f"{scene.running.url}/mcp/{name}", fields, "", "" if transport == "plain" else "t_")
    seen = scene.recorder.seen[name]
    assert seen
    for one in seen:
        asked = Asked(one.method, one.target, one.fields, one.body.encode())
        match kind:
            case "keys":
                verify(asked, OWN, "eu-west-1", "execute-api")
            case "varying":
                verify(asked, role_key("ada"), "eu-central-1", "lambda")
            case "google":
                assert one.fields["authorization"] == "Bearer google-metadata"
            case _:
                assert one.fields["authorization"].startswith("Bearer managed-/sub/x-")


def test_a_reload_goes_on_with_what_there_is(scene: Scene) -> None:
    for path in ("/client", "/role", "/ambient", "/managed"):
        scene.ask(path)
    before = [len(scene.clouds.asked(start)) for start in ("/t1/", "/sts", "/aws-container", "/metadata")]
    scene.running.write(scene.text.replace("/google", "/moved"))
    scene.running.wait_log("generation=2")
    for path in ("/client", "/role", "/ambient", "/moved", "/managed"):
        assert scene.ask(path)[0] == 200
    assert [len(scene.clouds.asked(start)) for start in ("/t1/", "/sts", "/aws-container", "/metadata")] == before
    scene.running.write(scene.text)
    scene.running.wait_log("generation=3")


def test_nothing_of_a_credential_is_shown(scene: Scene) -> None:
    for path in ("/keys", "/ambient", "/role", "/service", "/client"):
        scene.ask(path)
    base = f"http://127.0.0.1:{scene.running.admin}"
    dump = scene.running.fetch(f"{base}/config_dump")[1]
    assert '"secretAccessKey"' in dump
    for text in (dump, scene.running.fetch(f"http://127.0.0.1:{scene.running.stats}/metrics")[1], scene.running.log()):
        assert "CANARY" not in text
        assert "PRIVATE KEY" not in text
        assert "google-metadata" not in text
