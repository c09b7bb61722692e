"""`gwctl doctor` names the first step that fails, and what to change."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.end_to_end.federation_rig import SAMPLE
from tests.end_to_end.gwctl_rig import DIRECT, gwctl
from tests.end_to_end.identity_rig import JWKS, token
from tests.end_to_end.issuer_rig import Behaviour, Issuer, Refusal
from tests.end_to_end.running import free_port
from tests.end_to_end.tracing import wait_for

from headgate.cli.admin_client import fetch

CLIENT = ("--client-id", "me", "--client-secret-env", "DOCTOR_SECRET")
ENVIRONMENT = {"DOCTOR_SECRET": "never-shown", "DOCTOR_KEY": "never-shown-either"}


def doctor(*words: str, **environment: str) -> tuple[int, list[dict[str, str]]]:
    done = gwctl("doctor", *words, "-o", "json", env={**os.environ, **ENVIRONMENT, **environment})
    assert "Traceback" not in done.stderr, done.stderr
    assert "never-shown" not in done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["failed"] == (done.returncode == 1)
    return done.returncode, found["steps"]


@contextmanager
def issuer(behaviour: Behaviour) -> Iterator[Issuer]:
    found = Issuer(behaviour)
    try:
        yield found
    finally:
        found.close()


GOOD = {
    "auth0": ("--audience", "https://api.example"),
    "okta": ("--scope", "tools"),
    "keycloak": (),
    "authentik": (),
    "descope": (),
    "entra": ("--scope", "api://me/.default"),
}


@pytest.mark.parametrize("kind", GOOD)
def test_an_issuer_of_each_vendor_that_works(kind: str) -> None:
    with issuer(Behaviour(kind)) as found:
        status, steps = doctor("auth", found.issuer, "--provider", kind, *CLIENT, *GOOD[kind])
        assert status == 0, steps
        assert [(one["step"], one["result"]) for one in steps] == [
            ("discovery", "ok"), ("endpoints", "ok"), ("keys", "ok"), ("registration", "skipped"), ("token", "ok"), ("claims", "ok"),
        ]  # fmt: skip
        [form] = found.forms
        assert (form["grant_type"], form["client_secret"]) == ("client_credentials", "never-shown")
    assert ("PKCE is not listed" in steps[1]["found"]) == (kind == "entra")
    assert ("write jwks" in steps[2]["found"]) == (kind == "okta")


TENANT = "00000000-1111-2222-3333-444444444444"
HMAC = json.dumps({"keys": [{"kty": "oct", "kid": "h", "alg": "HS256"}]})
AADSTS = "AADSTS1002012: The provided value for scope tools is not valid."
HOSTS = "Policy 'Trusted Hosts' rejected request to client-registration service. Details: Host not trusted."
# Behaviour, more words, the step that fails, what it says, what to change.
BAD: list[tuple[Behaviour, tuple[str, ...], str, str, str]] = [
    (Behaviour("entra", {"issuer": "ORIGIN/{tenantid}/v2.0"}), (), "discovery", "many tenants", "the id of your tenant"),
    (Behaviour("entra", {}), (), "registration", "no registration_endpoint", "create an app registration"),
    (Behaviour("entra", token=Refusal(400, {"error": "invalid_request", "error_description": AADSTS})), CLIENT, "token", "AADSTS1002012", "/.default"),
    (Behaviour("entra", token=Refusal(401, {"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."})),
     CLIENT, "token", "invalid_client", "not the secret ID that Entra shows"),
    (Behaviour("entra", claims={"iss": f"https://sts.windows.net/{TENANT}/"}), CLIENT, "claims", "version 1", "requestedAccessTokenVersion to 2"),
    (Behaviour("okta", {"issuer": "ORIGIN/oauth2/other"}), (), "discovery", "is the document of", "write issuer: http://127.0.0.1"),
    (Behaviour("okta", token=Refusal(400, {"error": "invalid_scope", "error_description": "The authorization server resource does not have any configured default scopes"})),
     CLIENT, "token", "invalid_scope", "a scope of the custom authorization server"),
    (Behaviour("auth0", {"registration_endpoint": None}), (), "registration", "no registration_endpoint", "OIDC Dynamic Application Registration"),
    (Behaviour("auth0", token="eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..a.b.c"), CLIENT, "claims", "opaque or encrypted", "pass --audience"),
    (Behaviour("auth0", token=Refusal(403, {"error": "access_denied", "error_description": "Client is not authorized to access the API"})),
     CLIENT, "token", "access_denied", "authorize the application for it"),
    (Behaviour("keycloak", registration=Refusal(403, {"error": "insufficient_scope", "error_description": HOSTS})), ("--register",),
     "registration", "Host not trusted", "Trusted Hosts of Keycloak"),
    (Behaviour("keycloak", claims={"iss": "https://internal:8443/realms/mcp"}), CLIENT, "claims", "issuer is https://internal", "KC_HOSTNAME"),
    (Behaviour("keycloak", claims={"aud": "account"}), (*CLIENT, "--audience", "tools"), "claims", "for 'account'", "mapper of type Audience"),
    (Behaviour("keycloak", token=Refusal(401, {"error": "unauthorized_client", "error_description": "Client not enabled to retrieve service account"})),
     CLIENT, "token", "unauthorized_client", "Service accounts roles"),
    (Behaviour("authentik", keys=HMAC), (), "keys", "no key for supported signatures", "signing key in authentik"),
    (Behaviour("authentik", keys='{"keys": []}'), (), "keys", "no key for supported signatures", "signing key in authentik"),
    (Behaviour("authentik"), (), "registration", "no registration_endpoint", "OAuth2 provider in authentik"),
    (Behaviour("descope", {"registration_endpoint": None}), (), "registration", "no registration_endpoint", "in Descope"),
    (Behaviour("descope", {"code_challenge_methods_supported": ["plain"]}), (), "endpoints", "does not list S256", "PKCE"),
    (Behaviour("keycloak", {"token_endpoint": "http://issuer.test/token"}), CLIENT, "token", "does not use TLS", "https"),
    (Behaviour("descope", {"token_endpoint": None}), (), "endpoints", "no token_endpoint", "authorization code flow"),
    (Behaviour("descope", claims={"exp": 1}), CLIENT, "claims", "issued just now, and has expired", "set the clocks"),
    (Behaviour("okta", claims={"nbf": 4102444800}), (*CLIENT, "--scope", "tools"), "claims", "is valid only in", "set the clocks of the provider and of this"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("behaviour", "words", "step", "why", "change"), BAD, ids=[f"{one[0].kind} {one[3]}" for one in BAD]
)
def test_the_first_step_that_fails_at_an_issuer(
    behaviour: Behaviour, words: tuple[str, ...], step: str, why: str, change: str
) -> None:
    with issuer(behaviour) as found:
        status, steps = doctor("auth", found.issuer, "--provider", behaviour.kind, *words)
    last = steps[-1]
    assert (status, last["step"], last["result"]) == (1, step, "failed"), steps
    assert all(one["result"] != "failed" for one in steps[:-1])
    assert why in last["found"]
    assert change in last["change"]
    assert "\n" not in last["found"] + last["change"]


def test_a_slash_too_few_is_told_to_the_letter() -> None:
    with issuer(Behaviour("auth0")) as found:
        assert found.issuer.endswith("/")
        _, [step] = doctor("auth", found.issuer.rstrip("/"), "--provider", "auth0")
        assert step["change"] == f"write issuer: {found.issuer}"
        _, [step] = doctor("auth", f"{found.origin}/elsewhere")
        assert "there is no metadata at" in step["found"]
        assert f"{found.origin}/.well-known/oauth-authorization-server/elsewhere (status 404)" in step["found"]


def test_a_registration_is_taken_back() -> None:
    with issuer(Behaviour("keycloak")) as found:
        status, steps = doctor("auth", found.issuer, "--register")
        assert (status, steps[3]["found"]) == (0, "a client was registered and deleted again")
        assert found.deleted == ["/clients/new"]


def test_an_issuer_that_does_not_answer() -> None:
    _, [step] = doctor("auth", f"http://127.0.0.1:{free_port()}/")
    assert step["found"].startswith("nothing listens at http://127.0.0.1:")
    _, [step] = doctor("auth", "http://no-such-host.invalid/")
    assert step["found"] == "the name no-such-host.invalid cannot be resolved"
    _, [step] = doctor("auth", "idp.example")
    assert "is not a URL" in step["found"]


# -- MCP ----------------------------------------------------------------------------------------------------------------------
OAUTH = """
gateways: {default: {port: {port}}}
mcp:
  targets: [{name: near, SAMPLE}]
  policies:
    mcpAuthentication: {issuer: "ISSUER", audiences: [AUDIENCE], jwks: 'JWKS', resourceMetadata: {resource: "RESOURCE"}}
""".replace("SAMPLE", SAMPLE).replace("JWKS", JWKS)


def test_a_server_that_works_and_one_that_hides_its_tools(gateway: Callable[..., Any]) -> None:
    text = f"gateways: {{default: {{port: {{port}}}}}}\nmcp:\n  targets: [{{name: near, {SAMPLE}}}]\n"
    running = gateway(text)
    status, steps = doctor("mcp", f"{running.url}/mcp")
    assert (status, [one["step"] for one in steps]) == (0, ["initialize", "first call"])
    assert re.fullmatch(r"[1-9]\d* tools: .*\w.*", steps[1]["found"])
    hidden = gateway(text + "  policies: {mcpAuthorization: {rules: ['mcp.prompt.name == \"x\"']}}\n")
    assert doctor("mcp", f"{hidden.url}/mcp")[1][-1]["found"] == "0 tools: mcpAuthorization may hide them"
    _, steps = doctor("mcp", f"{running.url}/elsewhere")
    assert (steps[-1]["found"], steps[-1]["change"]) == (
        "there is no MCP server at /elsewhere (status 404)", "check the path: most servers serve /mcp",
    )  # fmt: skip


def protected(
    gateway: Callable[..., Any], found: Issuer, audience: str = "api", resource: str = "http://localhost:{port}/mcp"
) -> Any:
    text = OAUTH.replace("ISSUER", found.issuer).replace("AUDIENCE", audience).replace("RESOURCE", resource)
    return gateway(text)


def test_oauth_is_walked_through_from_the_challenge_to_the_tools(gateway: Callable[..., Any]) -> None:
    with issuer(Behaviour("auth0")) as found:
        running = protected(gateway, found)
        url = f"http://localhost:{running.port}/mcp"
        status, steps = doctor("mcp", url, *CLIENT, "--audience", "api")
        assert status == 0, steps
        assert [one["step"] for one in steps] == [
            "challenge", "resource", "discovery", "endpoints", "keys", "registration", "token", "claims", "initialize", "first call",
        ]  # fmt: skip
        status, steps = doctor("mcp", url)
        assert (status, steps[-1]["step"], steps[-1]["result"]) == (0, "first call", "skipped")
        status, steps = doctor("mcp", url, "--token-env", "DOCTOR_TOKEN", DOCTOR_TOKEN=token(iss=found.issuer, exp=1))
        assert (status, steps[-1]["step"], steps[-1]["found"]) == (1, "claims", "the token has expired")


def test_what_the_server_says_of_a_token_is_told(gateway: Callable[..., Any]) -> None:
    with issuer(Behaviour("auth0")) as found:
        running = protected(gateway, found, audience="other")
        status, steps = doctor("mcp", f"http://localhost:{running.port}/mcp", *CLIENT, "--audience", "api")
        assert (status, steps[-1]["step"]) == (1, "initialize")
        assert steps[-1]["found"] == "the server refuses the token: the token is for another audience"


def test_metadata_of_another_resource(gateway: Callable[..., Any]) -> None:
    with issuer(Behaviour("auth0")) as found:
        running = protected(gateway, found, resource="http://localhost:{port}/other")
        status, steps = doctor("mcp", f"http://localhost:{running.port}/mcp")
        assert (status, steps[-1]["step"]) == (1, "resource")
        assert f"set resourceMetadata.resource to http://localhost:{running.port}/mcp" in steps[-1]["change"]


# -- strange servers, and providers of models ------------------------------------------------------------------------------------
Answers = dict[str, tuple[int, str, str]]


@contextmanager
def serving(answers: Answers) -> Iterator[str]:
    """A server with (status, type, text) by `METHOD path`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            key = f"{self.command} {self.path}"
            status, kind, text = answers.get(
                f"{key} stream" if b'"stream": true' in body else key, answers.get(key, (404, "text/plain", "no"))
            )
            self.send_response(status)
            self.send_header("content-type", kind)
            if status == 307:
                self.send_header("location", text)
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


JSON, TEXT, HTML, SSE = "application/json", "text/plain", "text/html", "text/event-stream"
STRANGE: list[tuple[Answers, str, str]] = [
    ({"POST /mcp": (200, HTML, "<html>")}, "a web page answers, and no MCP server", "the MCP endpoint"),
    ({"POST /mcp": (405, TEXT, ""), "GET /mcp": (200, SSE, "event: endpoint\ndata: /messages\n\n")}, "transport HTTP with SSE", "write sse:"),
    ({"POST /mcp": (307, TEXT, "https://other.example/mcp")}, "redirects clients to https://other.example/mcp", "instead"),
    ({"POST /mcp": (500, TEXT, "boom")}, "fails with status 500: boom", "log of the server"),
    ({"POST /mcp": (403, TEXT, "origin")}, "refuses this client: origin", "origins"),
    ({"POST /mcp": (406, TEXT, "")}, "media types", "accept"),
    ({"POST /mcp": (200, JSON, '{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}}')}, "error -32602: no", "log"),
    ({"POST /mcp": (200, JSON, "[]")}, "the response is not MCP", "MCP endpoint"),
    ({"POST /mcp": (401, TEXT, "")}, "its 401 names no metadata", "mcpAuthentication"),
]  # fmt: skip


@pytest.mark.parametrize(("answers", "why", "change"), STRANGE, ids=[one[1] for one in STRANGE])
def test_servers_that_are_none(answers: Answers, why: str, change: str) -> None:
    with serving(answers) as origin:
        status, steps = doctor("mcp", f"{origin}/mcp")
    assert status == 1
    assert why in steps[-1]["found"]
    assert change in steps[-1]["change"]


MODELS = (200, JSON, '{"data": [{"id": "small"}, {"id": "large"}]}')
CHAT = (200, JSON, '{"choices": [], "usage": {}}')
STREAM = (200, SSE, 'data: {"choices": []}\n\ndata: [DONE]\n\n')
WELL: Answers = {
    "GET /v1/models": MODELS,
    "POST /v1/chat/completions": CHAT,
    "POST /v1/chat/completions stream": STREAM,
}


def error(text: str) -> str:
    return json.dumps({"error": {"message": text}})


BAD_PROVIDERS: list[tuple[Answers, tuple[str, ...], str, str, str]] = [
    ({"GET /v1/models": (401, JSON, error("no key"))}, (), "models", "requires a key: no key", "--key-env NAME"),
    ({"GET /v1/models": (401, JSON, error("bad key"))}, ("--key-env", "DOCTOR_KEY"), "models", "refuses the key: bad key", "not revoked"),
    ({}, (), "models", "the API is not at", "try --base-url"),
    ({"GET /v1/models": (200, HTML, "<html>")}, (), "models", "is a web page", "check --base-url"),
    ({"GET /v1/models": (200, JSON, '{"data": []}')}, (), "models", "lists no model", "--model"),
    (WELL, ("--model", "smal"), "models", "does not list smal", "such as small"),
    ({**WELL, "POST /v1/chat/completions": (404, JSON, error("The model `small` does not exist"))}, (), "first call", "does not serve small", "--model"),
    ({**WELL, "POST /v1/chat/completions": (429, JSON, error("quota"))}, (), "first call", "takes no more requests: quota", "billing"),
    ({**WELL, "POST /v1/chat/completions": (200, JSON, '{"content": []}')}, (), "first call", "none of the format openai", "another --format"),
    ({"GET /v1/models": (403, HTML, "<title>Blocked</title>")}, (), "models", "no API answers, but a web page with the title 'Blocked'", "a firewall"),
    ({"GET /v1/models": (307, TEXT, "https://eu.example/v1/models")}, (), "models", "sends clients on to https://eu.example", "that scheme and host"),
    ({**WELL, "GET /v1/models": (200, JSON, '{"data": [{"id": "text-embedding-3"}, {"id": "small"}]}'), "POST /v1/chat/completions": (429, JSON, error("quota"))}, (),
     "first call", "takes no more requests: quota", "billing"),
    ({**WELL, "POST /v1/chat/completions": (503, TEXT, "busy")}, (), "first call", "fails with status 503: busy", "status page"),
    ({**WELL, "POST /v1/chat/completions stream": CHAT}, (), "stream", "does not stream", "gathers answers"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "words", "step", "why", "change"), BAD_PROVIDERS, ids=[f"{one[2]} {one[3]}" for one in BAD_PROVIDERS]
)
def test_the_first_step_that_fails_at_a_provider(
    answers: Answers, words: tuple[str, ...], step: str, why: str, change: str
) -> None:
    with serving(answers) as origin:
        status, steps = doctor("llm", "--base-url", f"{origin}/v1", *words)
    assert (status, steps[-1]["step"]) == (1, step), steps
    assert why in steps[-1]["found"]
    assert change in steps[-1]["change"]


def test_a_path_that_was_copied_with_the_base_url_is_left_out() -> None:
    with serving({}) as origin:
        _, steps = doctor("llm", "--base-url", f"{origin}/v1/chat/completions")
        assert steps[-1]["change"] == f"try --base-url {origin}/v1"


def test_providers_that_work() -> None:
    with serving(WELL) as origin:
        status, steps = doctor("llm", "--base-url", f"{origin}/v1/", "--key-env", "DOCTOR_KEY")
        assert (status, [one["result"] for one in steps]) == (0, ["ok"] * 3)
    claude: Answers = {"GET /v1/models": MODELS, "POST /v1/messages": (200, JSON, '{"content": [], "usage": {}}'),
                       "POST /v1/messages stream": (200, SSE, 'event: message_start\ndata: {"type": "message_start"}\n\n')}  # fmt: skip
    with serving(claude) as origin:
        assert doctor("llm", "--format", "anthropic", "--base-url", f"{origin}/v1", "--key-env", "DOCTOR_KEY")[0] == 0
    gemini: Answers = {"GET /v1beta/models": (200, JSON, '{"models": [{"name": "models/flash"}]}'),
                       "POST /v1beta/models/flash:generateContent": (200, JSON, '{"candidates": []}'),
                       "POST /v1beta/models/flash:streamGenerateContent?alt=sse": (200, SSE, 'data: {"candidates": []}\r\n\r\n')}  # fmt: skip
    with serving(gemini) as origin:
        status, steps = doctor(
            "llm", "--format", "gemini", "--base-url", f"{origin}/v1beta", "--key-env", "DOCTOR_KEY", "--model", "flash"
        )
        assert (status, steps[1]["found"]) == (0, "flash answers; it tells no usage, so that tokens are estimated")


def test_a_credential_is_named_and_not_given() -> None:
    done = gwctl("doctor", "llm", "--key-env", "NO_SUCH_VARIABLE")
    assert (done.returncode, done.stderr) == (1, "Error: the environment variable NO_SUCH_VARIABLE is not set\n")


@pytest.mark.parametrize("end", ["\n", " ", "\u2026"], ids=ascii)
def test_a_credential_with_what_none_has_is_refused_unseen(end: str) -> None:
    words = ("doctor", "llm", "--base-url", f"http://127.0.0.1:{free_port()}/v1", "--key-env", "DOCTOR_KEY")
    done = gwctl(*words, env={**os.environ, "DOCTOR_KEY": f"never-shown{end}"})
    assert done.returncode == 1
    assert "the environment variable DOCTOR_KEY begins or ends with a space or line break" in done.stderr
    assert "never-shown" not in done.stdout + done.stderr


def state_of(running: Any) -> bytes:
    return fetch(running.admin, "GET", "/api/state")


# -- the gateway ------------------------------------------------------------------------------------------------------------------
def test_the_gateway_of_this_machine(gateway: Callable[..., Any]) -> None:
    running = gateway(f"gateways: {{default: {{port: {{port}}}}}}\nmcp:\n  targets: [{{name: near, {SAMPLE}}}]\n")
    status, steps = doctor("-p", str(running.admin))
    assert (status, [one["step"] for one in steps]) == (
        0,
        ["admin server", "configuration", "initialize", "first call", "targets"],
    )
    away = f"- {{name: away, mcp: {{host: 'http://127.0.0.1:{free_port()}/mcp'}}}}"
    running.write(
        f"gateways: {{default: {{port: {running.port}}}}}\nmcp:\n  failureMode: failOpen\n  targets:\n  - {{name: near, {SAMPLE}}}\n  {away}\n"
    )
    wait_for(lambda: doctor("-p", str(running.admin))[1][-1]["result"] == "failed")
    _, steps = doctor("-p", str(running.admin))
    assert steps[-1]["step"] == "targets"
    assert steps[-1]["found"].startswith("MCP targets do not answer: away (127.0.0.1:")
    running.write("gateways: {default: {port: none}}\n")
    # The admin server keeps its answer for half a second.
    wait_for(lambda: not json.loads(state_of(running))["synchronized"])
    status, steps = doctor("-p", str(running.admin))
    assert (status, steps[-1]["found"]) == (
        1,
        "the newest configuration could not be loaded: an earlier one is in force",
    )
    text = gwctl("doctor", "-p", str(running.admin))
    assert text.returncode == 1
    assert text.stdout.splitlines()[-2:] == [
        "FAILED  gateway: the newest configuration could not be loaded: an earlier one is in force",
        "        headgate -f FILE --validate-only tells the faults of the file",
    ]
    _, [step] = doctor("-p", str(free_port()))
    assert step["change"] == "start headgate, or give its admin port with -p"
    _, [step] = doctor("-p", str(gateway(DIRECT).stats))
    assert "is not an admin server" in step["found"]
