"""`oauthTokenExchange` and `crossAppAccess`: what the authorization server is asked, what backends get for it."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jwt
import openai
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.identity_rig import token
from tests.end_to_end.mcp_credentials_rig import jwt_auth, target_of, use
from tests.end_to_end.provider_stand_in import StandIn, chat, whole
from tests.end_to_end.recorder import Recorder

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
KIND = "urn:ietf:params:oauth:token-type:"
GRANT = "urn:ietf:params:oauth:grant-type:"
BASIC = {"clientId": "me:1", "clientSecret": "CANARY secret"}


def signed_client() -> dict[str, Any]:
    return {"method": "privateKeyJwt", "clientId": "me", "signingKey": PEM, "kid": "k1", "assertionAudience": "https://as"}


class Server:
    """An authorization server. `answers`: what a subject token or an assertion is answered with, else a token for it."""

    def __init__(self) -> None:
        self.stand_in = StandIn(self.answer)
        self.answers: dict[str, tuple[int, Any]] = {}
        self.held = threading.Event()
        self.held.set()

    def answer(self, _: StandIn, handler: BaseHTTPRequestHandler) -> None:
        form = self.forms[-1]
        told = form.get("subject_token") or form["assertion"]
        if told == "slow":
            self.held.wait(60)
        found: Any = {"access_token": f"for-{told}", "token_type": "Bearer", "expires_in": 3600}
        if form.get("requested_token_type") == f"{KIND}id-jag":
            found = {"access_token": f"jag-{told}", "token_type": "N_A", "issued_token_type": f"{KIND}id-jag"}
        status, found = self.answers.get(told, (200, found))
        whole(found, status)(self.stand_in, handler)

    @property
    def forms(self) -> list[dict[str, str]]:
        return [dict(parse_qsl(one.body.decode())) for one in self.stand_in.seen]


def routes(server: Server, backend: StandIn, recorder: Recorder) -> dict[str, Any]:
    place = {"host": f"127.0.0.1:{server.stand_in.port}"}
    end = {**place, "clientAuth": BASIC}
    return {
        "plain": {"oauthTokenExchange": {**end, "path": "/token", "audiences": ["a", "b"], "scopes": ["x", "y"], "resources": ["urn:r"],
                                         "requestedTokenType": f"{KIND}access_token", "additionalParams": {"tenant": "request.method"}}},
        "bearer": {"oauthTokenExchange": {**place, "grantType": "jwtBearer", "scopes": ["x"], "clientAuth": signed_client(),
                                          "subjectToken": {"source": {"header": {"name": "x-subject"}}},
                                          "authorizationLocation": {"header": {"name": "x-out"}}}},
        "actor": {"oauthTokenExchange": {**place, "actorToken": {"source": {"header": {"name": "x-actor"}}},
                                         "clientAuth": {"method": "clientSecretPost", "clientId": "me", "clientSecret": "CANARY"}}},
        "named": {"oauthTokenExchange": {**end, "actorToken": {"source": {"header": {"name": "x-actor"}}, "enforceMayAct": True}}},
        "uncached": {"oauthTokenExchange": {**end, "cache": {"maxEntries": 0}}},
        "param": {"oauthTokenExchange": {**end, "additionalParams": {"x": 'request.headers["x-missing"]'}}},
        "dead": {"oauthTokenExchange": {"host": "127.0.0.1:1", "clientAuth": BASIC}},
        "cross": {"crossAppAccess": {"identityProvider": {**end, "path": "/idp"},
                                     "resourceAuthorizationServer": {**end, "path": "/ras"}, "audience": "https://ras",
                                     "scopes": ["read"], "resources": ["https://api"]}},
    }  # fmt: skip


class Scene:
    def __init__(self, folder: Path) -> None:
        self.server, self.backend, self.recorder = Server(), StandIn(whole({})), Recorder()
        kinds = routes(self.server, self.backend, self.recorder)
        place = f"127.0.0.1:{self.backend.port}"
        told: list[dict[str, Any]] = [
            {"name": name, "matches": [{"path": {"pathPrefix": f"/{name}"}}],
             "backends": [{"host": place, "policies": {"backendAuth": auth}}]}
            for name, auth in kinds.items()
        ]  # fmt: skip
        checked = {"matches": [{"path": {"pathPrefix": "/checked"}}], "policies": jwt_auth(),
                   "backends": [{"host": place, "policies": {"backendAuth": kinds["uncached"]}}]}  # fmt: skip
        target = target_of("plain", "p", self.recorder, {"backendAuth": kinds["plain"]})
        mcp = {"matches": [{"path": {"pathPrefix": "/mcp"}}], "policies": jwt_auth(), "backends": [{"mcp": {"targets": [target]}}]}
        ai = {"name": "it", "hostOverride": place, "provider": {"openAI": {}}, "policies": {"backendAuth": kinds["plain"]}}
        told += [checked, mcp, {"matches": [{"path": {"pathPrefix": "/v1"}}], "backends": [{"ai": ai}]}]
        text = "gateways:\n  default: {port: {port}}\n" + yaml.safe_dump({"routes": told}, width=10_000)
        self.running = Gateway(folder, text, 1, {})
        self.running.wait_ready()

    def ask(self, path: str, **headers: str) -> tuple[int, str]:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.running.fetch(f"{self.running.url}{path}", headers=fields)

    def close(self) -> None:
        self.running.stop()
        self.server.stand_in.close()
        self.backend.close()
        self.recorder.stop()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    found = Scene(tmp_path_factory.mktemp("exchange"))
    yield found
    found.close()
    log = found.running.log()
    assert "Traceback" not in log, log
    assert "CANARY" not in log


def test_the_client_s_token_is_exchanged_once(scene: Scene) -> None:
    before = len(scene.server.forms)
    for _ in range(3):
        assert scene.ask("/plain", authorization="Bearer client-1")[0] == 200
        assert scene.backend.last.headers["authorization"] == "Bearer for-client-1"
    assert len(scene.server.forms) == before + 1
    seen = scene.server.stand_in.last
    assert (seen.method, seen.path) == ("POST", "/token")
    assert seen.headers["authorization"] == "Basic " + base64.b64encode(b"me%3A1:CANARY+secret").decode()
    assert parse_qsl(seen.body.decode()) == [
        ("grant_type", f"{GRANT}token-exchange"), ("subject_token", "client-1"), ("subject_token_type", f"{KIND}access_token"),
        ("audience", "a"), ("audience", "b"), ("resource", "urn:r"), ("scope", "x y"),
        ("requested_token_type", f"{KIND}access_token"), ("tenant", "GET"),
    ]  # fmt: skip
    scene.ask("/plain", authorization="Bearer client-2")
    assert scene.backend.last.headers["authorization"] == "Bearer for-client-2"


def test_clients_that_ask_at_once_share_an_exchange_and_one_that_leaves_harms_nobody(scene: Scene) -> None:
    import socket

    before = len(scene.server.forms)
    scene.server.held.clear()
    leaver = socket.create_connection(("127.0.0.1", scene.running.port))
    leaver.sendall(b"GET /plain HTTP/1.1\r\nhost: a\r\nauthorization: Bearer slow\r\n\r\n")
    while len(scene.server.forms) == before:
        time.sleep(0.01)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(scene.ask("/plain", authorization="Bearer slow")[0])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    leaver.close()
    time.sleep(0.1)
    scene.server.held.set()
    for thread in threads:
        thread.join()
    assert found == [200] * 4
    assert len(scene.server.forms) == before + 1


def test_an_assertion_signed_here_proves_the_client(scene: Scene) -> None:
    assert scene.ask("/bearer", x_subject="own", authorization="Bearer kept")[0] == 200
    form = scene.server.forms[-1]
    assert (form["grant_type"], form["assertion"], form["scope"]) == (f"{GRANT}jwt-bearer", "own", "x")
    assert form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    claims = jwt.decode(form["client_assertion"], KEY.public_key(), algorithms=["RS256"], audience="https://as")
    assert (claims["iss"], claims["sub"], claims["exp"] - claims["iat"]) == ("me", "me", 300)
    assert jwt.get_unverified_header(form["client_assertion"])["kid"] == "k1"
    headers = scene.backend.last.headers
    assert (headers["x-out"], headers["authorization"]) == ("for-own", "Bearer kept")
    assert "x-subject" not in headers


def test_an_actor(scene: Scene) -> None:
    assert scene.ask("/actor", authorization="Bearer s", x_actor="me")[0] == 200
    form = scene.server.forms[-1]
    assert (form["actor_token"], form["actor_token_type"]) == ("me", f"{KIND}access_token")
    assert (form["client_id"], form["client_secret"]) == ("me", "CANARY")
    assert "x-actor" not in scene.backend.last.headers
    assert scene.ask("/actor", authorization="Bearer s") == (400, "invalid request")


def signed(**claims: Any) -> str:
    return jwt.encode({"iss": "https://idp", **claims}, KEY, algorithm="RS256")


NAMED = {"sub": "agent-7", "iss": "https://idp"}


@pytest.mark.parametrize(
    ("subject", "actor", "status"),
    [
        (signed(sub="ann", may_act={"sub": "agent-7"}), signed(sub="agent-7"), 200),
        (signed(sub="ann", may_act=NAMED), signed(sub="agent-7"), 200),
        (signed(sub="ann", may_act=NAMED), signed(sub="agent-7", iss="https://other"), 403),
        (signed(sub="ann", may_act=NAMED | {"client_id": "c"}), signed(sub="agent-7"), 403),
        (signed(sub="ann", may_act={"sub": "agent-8"}), signed(sub="agent-7"), 403),
        (signed(sub="ann"), signed(sub="agent-7"), 403),
        (signed(sub="ann", may_act={}), signed(sub="agent-7"), 403),
        (signed(sub="ann", may_act={"iss": "https://idp"}), signed(sub="agent-7"), 403),
        (signed(sub="ann", may_act="agent-7"), signed(sub="agent-7"), 403),
        (signed(sub="ann", may_act=[NAMED]), signed(sub="agent-7"), 403),
        (signed(sub="ann", may_act={"sub": "agent-7"}), "opaque", 403),
        ("opaque", signed(sub="agent-7"), 403),
        ("a.b.c", "a.b.c", 403),
    ],
)  # fmt: skip
def test_the_subject_must_name_its_actor(scene: Scene, subject: str, actor: str, status: int) -> None:
    asked, reached = len(scene.server.forms), len(scene.backend.seen)
    # Twice: what is kept is not handed to another actor either.
    for _ in range(2):
        found, text = scene.ask("/named", authorization=f"Bearer {subject}", x_actor=actor)
        assert found == status, text
    assert len(scene.server.forms) - asked == (status == 200)
    assert len(scene.backend.seen) - reached == (2 if status == 200 else 0)
    if status == 403:
        assert text == "the actor may not act for the subject of the token"
        scene.running.wait_log("reason=Authorization")


def test_a_token_that_jwt_auth_took_is_found(scene: Scene) -> None:
    own = token(exp=4_000_000_000)
    assert scene.ask("/checked", authorization=f"Bearer {own}")[0] == 200
    assert scene.backend.last.headers["authorization"] == f"Bearer for-{own}"


def test_nothing_is_kept_longer_than_the_client_s_own_token(scene: Scene) -> None:
    before = len(scene.server.forms)
    short = token(exp=time.time() + 10)
    for _ in range(2):
        assert scene.ask("/plain", authorization=f"Bearer {short}")[0] == 200
    assert len(scene.server.forms) == before + 2


@pytest.mark.parametrize(
    ("path", "subject", "answer", "status", "text"),
    [
        ("/plain", None, None, 400, "invalid request"),
        ("/param", "s", None, 400, "invalid request"),
        ("/plain", "bad", (400, {"error": "invalid_grant", "error_description": "CANARY"}), 400, "invalid request"),
        ("/plain", "who", (401, {"error": "invalid_client"}), 500, "answered 401 (invalid_client)"),
        ("/plain", "down", (503, "CANARY"), 500, "answered 503"),
        ("/plain", "none", (200, {}), 500, "answered without a token"),
        ("/plain", "mac", (200, {"access_token": "x", "token_type": "mac"}), 500, "not a bearer token"),
        ("/plain", "odd", (200, {"access_token": "x\ny", "token_type": "Bearer"}), 500, "cannot be sent in a header"),
        ("/dead", "s", None, 500, "the token endpoint cannot be called"),
        ("/cross", "other", (200, {"access_token": "x", "token_type": "Bearer"}), 500, "another kind of token"),
    ],
)
def test_without_a_token_nothing_goes_upstream(
    scene: Scene, path: str, subject: str | None, answer: Any, status: int, text: str
) -> None:
    if answer is not None:
        scene.server.answers[str(subject)] = answer
    before = len(scene.backend.seen)
    found = scene.ask(path) if subject is None else scene.ask(path, authorization=f"Bearer {subject}")
    assert found[0] == status
    assert text in found[1]
    assert found[1] == "invalid request" or found[1].startswith("backend authentication failed: ")
    assert "CANARY" not in found[1]
    assert len(scene.backend.seen) == before


def test_cross_app_access_takes_two_steps(scene: Scene) -> None:
    for _ in range(2):
        assert scene.ask("/cross", authorization="Bearer id")[0] == 200
        assert scene.backend.last.headers["authorization"] == "Bearer for-jag-id"
    first, second = scene.server.stand_in.seen[-2:]
    assert (first.path, second.path) == ("/idp", "/ras")
    assert dict(parse_qsl(first.body.decode())) == {
        "grant_type": f"{GRANT}token-exchange", "requested_token_type": f"{KIND}id-jag", "subject_token": "id",
        "subject_token_type": f"{KIND}id_token", "audience": "https://ras", "resource": "https://api", "scope": "read",
    }  # fmt: skip
    assert dict(parse_qsl(second.body.decode())) == {"grant_type": f"{GRANT}jwt-bearer", "assertion": "jag-id", "scope": "read"}


def test_a_model_and_a_target_get_exchanged_tokens(scene: Scene) -> None:
    scene.backend.answers[:] = [whole(chat())]
    client = openai.OpenAI(base_url=f"{scene.running.url}/v1", api_key="model-client", max_retries=0)
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    assert scene.backend.last.headers["authorization"] == "Bearer for-model-client"
    own = token(exp=4_000_000_000)
    use(f"{scene.running.url}/mcp", {"authorization": f"Bearer {own}"}, "", "")
    seen = scene.recorder.seen["p"]
    assert seen
    assert {one.fields["authorization"] for one in seen} == {f"Bearer for-{own}"}


def test_the_dump_shows_no_secret(scene: Scene) -> None:
    dump = scene.running.fetch(f"http://127.0.0.1:{scene.running.admin}/config_dump")[1]
    assert '"oauthTokenExchange"' in dump
    assert '"crossAppAccess"' in dump
    assert "CANARY" not in dump
    assert "PRIVATE KEY" not in dump
    assert json.loads(dump)
