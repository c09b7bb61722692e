"""Browser login from the configuration file to the wire: a provider that misbehaves, and a real one from npm."""

from __future__ import annotations

import json
import queue
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import httpx
import pytest
from tests.end_to_end.asking import ask, indented
from tests.end_to_end.fake_provider import SECRET, FakeProvider
from tests.end_to_end.oidc_rig import (
    COOKIE_KEY,
    ENVIRONMENT,
    OIDC,
    Browser,
    provider,  # noqa: F401
)

from headgate.crypto.sealed import Sealer

pytestmark = pytest.mark.warm

ROOT = Path(__file__).resolve().parents[2]
PROVIDER = ROOT / "build" / "node" / "node_modules" / "oidc-provider" / "lib" / "index.js"
SHOWN = "transformations: {request: {set: {x-sub: jwt.sub}}}\n"




@pytest.fixture
def site(gateway: Callable[..., Any], echo: int) -> Callable[..., Any]:
    """`site(policy, workers=1)`: a gateway with the policy in front of an echo service."""

    def start(policy: str, workers: int = 1) -> Any:
        text = (
            "gateways:\n  default: {port: {port}}\nroutes:\n- name: web\n  policies:\n"
            + indented(policy)
            + f'\n  backends: [{{host: "127.0.0.1:{echo}"}}]\n'
        )
        return gateway(text, workers, ENVIRONMENT)

    return start




def aged(name: str, value: str, seconds: float) -> str:
    """The session cookie as it would be if the login had been so many seconds ago: tests wait for no clock."""
    sealer = session_sealer(name)
    token, issued, expires, refresh = json.loads(sealer.open(value) or b"null")
    return sealer.seal(json.dumps([token, issued - seconds, expires - seconds, refresh]).encode())


def end_of(name: str, value: str) -> float:
    """When the session ends, in Unix seconds."""
    return float(json.loads(session_sealer(name).open(value) or b"null")[2])


def session_sealer(name: str) -> Sealer:
    return Sealer(bytes.fromhex(COOKIE_KEY), f"oidc session {name.removeprefix('gw_oidc_s_')}")


def backend_saw(answer: httpx.Response, name: str) -> list[str]:
    return [value for key, value in json.loads(answer.text)["headers"] if key.lower() == name]


def test_a_login_and_what_follows(site, provider: FakeProvider) -> None:
    running = site(OIDC % provider.issuer + SHOWN + "backendAuth: {passthrough: {}}\n", workers=2)
    with Browser() as browser:
        first = browser.begin(running, "/deep/page?x=1&y=%20")
        location = urlsplit(first.headers["location"])
        query = {key: values[0] for key, values in parse_qs(location.query).items()}
        assert f"{location.scheme}://{location.netloc}{location.path}" == f"{provider.issuer}/auth"
        assert set(query) == {
            "response_type", "client_id", "redirect_uri", "scope", "state", "nonce", "code_challenge",
            "code_challenge_method",
        }  # fmt: skip
        assert (query["response_type"], query["client_id"], query["scope"]) == ("code", "app", "openid email")
        assert query["redirect_uri"] == f"{running.url}/login/done"
        assert query["code_challenge_method"] == "S256"
        assert first.headers["cache-control"] == "no-store"
        cookie = first.headers["set-cookie"]
        assert re.fullmatch(
            r"gw_oidc_t_[0-9a-f]{16}\.[\w-]+=[\w-]+; Max-Age=300; Path=/; HttpOnly; SameSite=Lax", cookie
        )
        done = browser.log_in(running, provider, "/deep/page?x=1&y=%20")
        assert (done.status_code, done.headers["location"]) == (302, "/deep/page?x=1&y=%20")
        assert provider.credentials() == f"app {SECRET}"
        assert provider.grants[-1]["grant_type"] == "authorization_code"
        session = next(line for line in done.headers.get_list("set-cookie") if line.startswith("gw_oidc_s_"))
        assert re.fullmatch(r"gw_oidc_s_[0-9a-f]{16}=[\w-]+; Max-Age=\d+; Path=/; HttpOnly; SameSite=Lax", session)
        assert 590 <= int(session.split("Max-Age=")[1].split(";")[0]) <= 600
        browser.cookies.set("own", "kept", domain="127.0.0.1")
        for _ in range(6):      # both workers, opened and remembered
            page = browser.get(running.url + "/deep/page?x=1")
            assert page.status_code == 200
            assert backend_saw(page, "x-sub") == ["ada"]
            assert backend_saw(page, "cookie") == ["own=kept"]
            assert len(backend_saw(page, "authorization")) == 1, "the ID token can be passed on"
        wrong = browser.post(running.url + "/login/done?code=x&state=y")
        assert (wrong.status_code, wrong.text) == (400, "oidc failure: invalid callback")
        left = browser.get(running.url + "/login/done/logout")
        assert left.status_code == 302
        goodbye = urlsplit(left.headers["location"])
        assert goodbye.path == "/bye"
        assert set(parse_qs(goodbye.query)) == {"id_token_hint", "client_id"}
        assert browser.names("gw_oidc_s_") == []
        assert browser.get(running.url + "/").status_code == 302
    running.wait_log("jwt.sub=ada")
    log = running.log()
    assert SECRET not in log
    assert "eyJhbGci" not in log
    assert COOKIE_KEY not in log


def test_a_preflight_passes_and_every_other_method_logs_in(site, provider: FakeProvider) -> None:
    running = site(OIDC % provider.issuer)
    ask = {"origin": "https://a.test", "access-control-request-method": "PUT"}
    assert httpx.options(running.url, headers=ask, timeout=60).status_code == 200
    assert httpx.options(running.url, timeout=60).status_code == 302
    for method in ("POST", "PUT", "DELETE", "HEAD"):
        assert httpx.request(method, running.url, timeout=60).status_code == 302, method


def test_what_is_no_session_is_none(site, provider: FakeProvider) -> None:
    running = site(OIDC % provider.issuer)
    with Browser() as browser:
        browser.log_in(running, provider)
        name = browser.names("gw_oidc_s_")[0]
        value = browser.cookies[name]
        other = browser.names("gw_oidc_t_")
    flipped = value[:40] + ("A" if value[40] != "A" else "B") + value[41:]
    for bad in ("", "x", flipped, value[:-4], value + "AAAA", "é".encode().decode("latin-1"), "=" * 5000):
        answer = httpx.get(running.url, headers=[(b"cookie", f"{name}={bad}".encode("latin-1"))], timeout=60)
        assert answer.status_code == 302, bad
    assert httpx.get(running.url, headers={"cookie": f"{name}={value}"}, timeout=60).status_code == 200
    assert httpx.get(running.url, headers={"cookie": f"{name}={value}; {name}={flipped}"}, timeout=60).status_code == 302
    assert other == [], "a login that is over leaves no cookie"


def callback(running: Any, state: str, browser: httpx.Client, **extra: str) -> httpx.Response:
    return browser.get(f"{running.url}/login/done?{urlencode({'state': state, **extra})}")


def test_callbacks_that_do_not_belong_to_a_login(site, provider: FakeProvider) -> None:
    running = site(OIDC % provider.issuer)
    with Browser() as browser, Browser() as victim:
        code, query = provider.authorize(browser.begin(running).headers["location"])
        state = query["state"]
        elsewhere = callback(running, state, victim, code=code)
        assert (elsewhere.status_code, elsewhere.text) == (
            400, "oidc failure: the login has expired or was started elsewhere",
        )  # fmt: skip
        _, other = provider.authorize(browser.begin(running).headers["location"])
        import base64

        mine, theirs = (json.loads(base64.urlsafe_b64decode(one + "==")) for one in (state, other["state"]))
        mixed = {"transactionId": mine["transactionId"], "csrfState": theirs["csrfState"]}
        crossed = callback(running, base64.urlsafe_b64encode(json.dumps(mixed).encode()).decode(), browser, code=code)
        assert (crossed.status_code, crossed.text) == (400, "oidc failure: csrf state mismatch")
        for bad in ("", "x", "e30=", "W10=", "[[[[", "A" * 9000):
            assert callback(running, bad, browser, code=code).status_code == 400, bad
        assert callback(running, state, browser).status_code == 400, "no code"
        assert provider.grants == [], "nothing was asked of the provider"
        # The login cookie is spent by its first callback.
        assert callback(running, state, browser, code=code).status_code == 400
        refused = callback(running, other["state"], browser, error="access_denied\n<b>", error_description="no")
        assert (refused.status_code, refused.text) == (400, "oidc failure: the provider returned access_denied?<b>")
        code, query = provider.authorize(browser.begin(running).headers["location"])
        twice = browser.get(f"{running.url}/login/done?code={code}&code=x&state={query['state']}")
        assert twice.status_code == 400
        mixed_up = callback(running, query["state"], browser, code=code, iss="https://evil.test")
        assert (mixed_up.status_code, mixed_up.text) == (400, "oidc failure: the response is from another provider")


BAD_TOKENS: dict[str, tuple[dict[str, Any], int, str]] = {
    "nonce": ({"nonce": "other"}, 400, "nonce mismatch"),
    "no nonce": ({"nonce": None}, 400, "nonce mismatch"),
    "issuer": ({"iss": "https://other.test"}, 500, "the ID token is not valid"),
    "audience": ({"aud": "other"}, 500, "the ID token is not valid"),
    "several audiences": ({"aud": ["app", "other"]}, 500, "the ID token is not valid"),
    "several audiences, another party": ({"aud": ["app", "o"], "azp": "o"}, 500, "the ID token is not valid"),
    "expired": ({"exp": 1000}, 500, "the ID token is not valid"),
    "just expired": ({"exp": lambda: time.time() - 5}, 500, "the ID token has expired"),
    "no expiry": ({"exp": None}, 500, "the ID token is not valid"),
    "no subject": ({"sub": None}, 500, "the ID token is not valid"),
    "too large": ({"groups": ["x" * 40] * 80}, 500, "the session does not fit into a cookie"),
}


def test_id_tokens_that_do_not_count(site, provider: FakeProvider) -> None:
    running = site(OIDC % provider.issuer)
    with Browser() as browser:
        for name, (claims, status, text) in BAD_TOKENS.items():
            provider.claims = claims
            answer = browser.log_in(running, provider)
            assert (answer.status_code, answer.text) == (status, f"oidc failure: {text}"), name
            assert browser.names("gw_oidc_") == [], name
        provider.claims, provider.algorithm, provider.key = {}, "HS256", "s" * 64
        assert browser.log_in(running, provider).text == "oidc failure: the ID token is not valid"


BAD_ANSWERS = {
    "refused": (400, b'{"error":"invalid_grant"}'),
    "broken": (500, b""),
    "not JSON": (200, b"<html>"),
    "a list": (200, b"[]"),
    "no token": (200, b"{}"),
    "token is no text": (200, b'{"id_token": 5}'),
    "endless": (200, b'{"id_token":"' + b"x" * 100_000 + b'"}'),
    "deep": (200, b"[" * 60_000),
    "redirect": (302, b"{}"),
}


def test_token_endpoints_that_fail(site, provider: FakeProvider) -> None:
    running = site(OIDC % provider.issuer)
    with Browser() as browser:
        for name, answer in BAD_ANSWERS.items():
            provider.answer = answer
            got = browser.log_in(running, provider)
            assert got.status_code == 500, name
            assert got.text in ("oidc failure: the token exchange failed", "oidc failure: the provider sent no ID token")
        provider.answer = None
        assert browser.log_in(running, provider).status_code == 302


def test_a_provider_that_is_away_or_another_one(site, provider: FakeProvider) -> None:
    provider.metadata = {"issuer": "https://other.test"}
    running = site(OIDC % provider.issuer)
    away = httpx.get(running.url, timeout=60)
    assert (away.status_code, away.text) == (401, "oidc failure: the provider's metadata cannot be fetched")
    running.wait_log("the metadata is for another issuer")
    provider.metadata = {}
    running.wait(lambda: httpx.get(running.url, timeout=60).status_code == 302)     # asked for again after a pause


def test_the_issuer_in_the_answer_is_compared_and_asked_for(site, provider: FakeProvider) -> None:
    provider.metadata = {"authorization_response_iss_parameter_supported": True}
    running = site(OIDC % provider.issuer)
    with Browser() as browser:
        assert browser.log_in(running, provider).text == "oidc failure: the response is from another provider"
        assert browser.log_in(running, provider, iss=provider.issuer).status_code == 302


def test_endpoints_of_ones_own_and_a_secret_in_the_form(site, provider: FakeProvider) -> None:
    policy = OIDC % provider.issuer + f"""
  authorizationEndpoint: "{provider.issuer}/auth?tenant=1"
  tokenEndpoint: "{provider.issuer}/token"
  tokenEndpointAuth: clientSecretPost
  jwks: {{url: "{provider.issuer}/jwks"}}
"""
    running = site("\n".join(line for line in policy.splitlines() if line))
    with Browser() as browser:
        assert "/auth?tenant=1&response_type=code" in browser.begin(running).headers["location"]
        assert browser.log_in(running, provider).status_code == 302
        assert provider.grants[-1]["client_secret"] == SECRET
        assert provider.clients[-1] == ""
        assert browser.get(running.url).status_code == 200
        left = browser.get(running.url + "/login/done/logout")
        assert (left.status_code, left.text) == (200, "logged out\n")


def test_places_to_return_to_stay_on_this_site(site, provider: FakeProvider) -> None:
    running = site(OIDC % provider.issuer)
    for path, back in (("//evil.test/x", "/"), ("/\\evil.test", "/"), ("/" + "x" * 3000, "/"), ("/a?b=//c", "/a?b=//c")):
        with Browser() as browser:
            code, query = provider.authorize(raw_location(browser, running, path))
            answer = callback(running, query["state"], browser, code=code)
            assert answer.headers["location"] == back, path


def raw_location(browser: Browser, running: Any, path: str) -> str:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    connection.putrequest("GET", path)
    connection.endheaders()
    answer = connection.getresponse()
    name, _, value = answer.headers["set-cookie"].split(";")[0].partition("=")
    browser.cookies.set(name, value, domain="127.0.0.1")
    connection.close()
    return answer.headers["location"]


def test_logins_that_are_begun_and_never_finished_do_not_pile_up(site, provider: FakeProvider) -> None:
    running = site(OIDC % provider.issuer)
    with Browser() as browser:
        for _ in range(12):
            browser.begin(running)
        assert len(browser.names("gw_oidc_t_")) == 5
        assert browser.log_in(running, provider).status_code == 302


def test_a_session_is_renewed_before_it_ends(site, provider: FakeProvider) -> None:
    provider.refresh = True
    provider.claims = {"exp": lambda: time.time() + 1600}
    running = site(OIDC % provider.issuer + SHOWN, workers=2)
    with Browser() as browser:
        browser.log_in(running, provider)
        name, value = browser.session()
        assert "set-cookie" not in browser.get(running.url).headers, "too early"
    old = aged(name, value, 1250)
    answers = [httpx.get(running.url, headers={"cookie": f"{name}={old}"}, timeout=60) for _ in range(8)]
    assert {answer.status_code for answer in answers} == {200}
    refreshes = [form for form in provider.grants if form["grant_type"] == "refresh_token"]
    assert [form["refresh_token"] for form in refreshes] == ["refresh1"], "one worker renews, once"
    (new,) = [answer.headers["set-cookie"] for answer in answers if "set-cookie" in answer.headers]
    renewed = new.split(";")[0]
    assert end_of(name, renewed.partition("=")[2]) > end_of(name, value) - 1, "a whole life again"
    assert backend_saw(httpx.get(running.url, headers={"cookie": renewed}, timeout=60), "x-sub") == ["ada"]


def test_a_session_goes_on_when_it_cannot_be_renewed_and_ends_in_time(site, provider: FakeProvider) -> None:
    provider.refresh = True
    provider.claims = {"exp": lambda: time.time() + 1200}
    running = site(OIDC % provider.issuer)
    with Browser() as browser:
        browser.log_in(running, provider)
        name, value = browser.session()
    provider.claims = {"sub": "eve"}          # another user's token renews nothing
    answer = httpx.get(running.url, headers={"cookie": f"{name}={aged(name, value, 940)}"}, timeout=60)
    assert (answer.status_code, "set-cookie" in answer.headers) == (200, False)
    assert [form["grant_type"] for form in provider.grants][-1] == "refresh_token"
    assert httpx.get(running.url, headers={"cookie": f"{name}={aged(name, value, 1240)}"}, timeout=60).status_code == 302


def test_sessions_outlive_a_restart_and_belong_to_their_policy(site, provider: FakeProvider) -> None:
    running = site(OIDC % provider.issuer)
    with Browser() as browser:
        browser.log_in(running, provider)
        name = browser.names("gw_oidc_s_")[0]
        value = browser.cookies[name]
    text = running.path.read_text()
    running.write(text[text.index("gateways:"):].replace("scopes: [email]", "scopes: [email, groups]"))
    deadline = time.monotonic() + 40
    while httpx.get(running.url, headers={"cookie": f"{name}={value}"}, timeout=60).status_code == 200:
        assert time.monotonic() < deadline, "another policy takes the session"
        time.sleep(0.1)
    fresh = next(line.split("=")[0] for line in httpx.get(running.url, timeout=60).headers.get_list("set-cookie"))
    renamed = fresh.split(".")[0].replace("gw_oidc_t_", "gw_oidc_s_")
    assert httpx.get(running.url, headers={"cookie": f"{renamed}={value}"}, timeout=60).status_code == 302


def test_the_configuration_is_checked(gateway) -> None:
    import os
    import sys

    def refused(policy: str, environment: dict[str, str]) -> str:
        text = "gateways: {default: {port: 1}}\nroutes:\n- policies:\n" + indented(policy) + "\n  backends: []\n"
        done = subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", "-c", text, "--validate-only"],
            capture_output=True, text=True, check=False, env={**os.environ, **environment},
        )  # fmt: skip
        assert done.returncode != 0
        return done.stdout + done.stderr

    good = (OIDC % "https://idp.test").replace("{port}", "1")
    assert "OIDC_COOKIE_SECRET" in refused(good, {})
    assert "64 hexadecimal digits" in refused(good, {"OIDC_COOKIE_SECRET": "abc"})
    for change, message in (
        (("/login/done", "/"), "needs a path other than /"),
        (("/login/done", "/x?y"), "cannot have a user, a query or a fragment"),
        (("[email]", "['a b']"), "is not a valid scope"),
        (("scopes:", "tokenEndpoint: 'https://x.test/t'\n  scopes:"), "belong together"),
        (("scopes:", "tokenEndpointAuth: clientSecretPost\n  scopes:"), "discovery provides it"),
        (("https://idp.test", "idp.test"), "must begin with http"),
    ):
        assert message in refused(good.replace(*change), ENVIRONMENT), change


# -- a real provider ---------------------------------------------------------------------------------------------------------
@pytest.mark.node
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("node") is None or not PROVIDER.exists(), reason="run `make node-peers`")
def test_a_real_provider(gateway, echo) -> None:
    text = "gateways:\n  default: {port: {port}}\nroutes:\n- name: web\n  policies:\n    directResponse: {status: 200, body: x}\n"
    running = gateway(text, 2, ENVIRONMENT)
    command = ["node", str(ROOT / "tests" / "peers" / "oidc_provider.mjs"), str(PROVIDER), f"{running.url}/login/done", "600"]
    peer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert peer.stdout is not None
        issuer = peer.stdout.readline().strip()
        running.write(
            "gateways:\n  default: {port: {port}}\nroutes:\n- name: web\n  policies:\n"
            + indented(OIDC % issuer + "transformations: {request: {set: {x-sub: jwt.sub, x-mail: jwt.email}}}\n")
            + f'\n  backends: [{{host: "127.0.0.1:{echo}"}}]\n'
        )
        deadline = time.monotonic() + 40
        while httpx.get(running.url, timeout=60).status_code != 302:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with Browser() as browser:
            answer = browser.get(running.url + "/page")
            for _ in range(20):
                if answer.status_code in (302, 303):
                    answer = browser.get(urljoin(str(answer.url), answer.headers["location"]))
                elif "<form" in answer.text:
                    action = re.search(r'action="([^"]+)"', answer.text)
                    assert action
                    fields = dict(re.findall(r'name="(prompt)" value="(\w+)"', answer.text))
                    if 'name="login"' in answer.text:
                        fields |= {"login": "ada", "password": "x"}
                    answer = browser.post(urljoin(str(answer.url), action[1]), data=fields)
                else:
                    break
            assert answer.status_code == 200, answer.text
            assert str(answer.url) == f"{running.url}/page"
            assert (backend_saw(answer, "x-sub"), backend_saw(answer, "x-mail")) == (["ada"], ["ada@a.test"])
            name, first = browser.session()
            old = aged(name, first, 500)     # of the 600 seconds of the ID token
            for cookie in list(browser.cookies.jar):
                if cookie.name == name:
                    cookie.value = old
            for _ in range(4):
                assert browser.get(running.url).status_code == 200
            renewed = browser.session()[1]
            assert renewed != old, "renewed with the refresh token"
            assert end_of(name, renewed) > end_of(name, first) - 1
            goodbye = browser.get(running.url + "/login/done/logout")
            assert goodbye.headers["location"].startswith(f"{issuer}/session/end?")
            assert browser.get(goodbye.headers["location"]).status_code == 200
            assert browser.get(running.url).status_code == 302
    finally:
        peer.terminate()
        peer.wait()

# -- cookies stay here -------------------------------------------------------------------------------------------------

TWO_ROUTES = """
frontendPolicies: {{accessLog: {{add: {{cookies: 'request.headers["cookie"]', all: 'toJson(variables().request)'}}}}}}
gateways:
  default: {{port: {{port}}}}
routes:
- name: plain
  matches: [{{path: {{pathPrefix: /plain}}}}]
  policies:
    requestMirror: {{backend: {{host: "127.0.0.1:{mirror}"}}, percentage: 1.0}}
  backends: [{{host: "127.0.0.1:{echo}"}}]
- name: told
  matches: [{{path: {{pathPrefix: /told}}}}]
  policies: {{directResponse: {{status: 200, bodyExpression: 'toJson(request.headers) + toJson(variables())'}}}}
- name: copied
  matches: [{{path: {{pathPrefix: /copied}}}}]
  policies:
    transformations: {{request: {{set: {{x-copy: 'request.headers.join()["cookie"]', x-all: 'toJson(variables())'}}}}}}
  backends: [{{host: "127.0.0.1:{echo}"}}]
- name: web
  policies:
{policy}
  backends: [{{host: "127.0.0.1:{echo}"}}]
"""


def test_no_backend_gets_a_session(
    gateway: Callable[..., Any], upstream: Callable[..., int], echo: int, provider: FakeProvider
) -> None:
    """Neither those of other routes, nor mirrors; expressions do not see it, so that none can copy it; nor does the log show it."""
    copies: queue.Queue[list[bytes]] = queue.Queue()

    def record(connection: Any) -> None:
        stream = connection.makefile("rb")
        while line := stream.readline():
            cookies = []
            while line.strip():
                cookies += [line] if line.lower().startswith(b"cookie:") else []
                line = stream.readline()
            copies.put(cookies)
            connection.sendall(b"HTTP/1.1 204 No\r\n\r\n")

    text = TWO_ROUTES.format(policy=indented(OIDC % provider.issuer), echo=echo, mirror=upstream(record))
    running = gateway(text, 1, ENVIRONMENT)
    browser = Browser()
    browser.log_in(running, provider, "/web")
    name, value = browser.session()
    cookies = f"theme=dark; {name}={value}; gw_oidc_t_other.1=x; gw_oidc_s_other=y"
    for path in ("/plain", "/web"):
        answer = ask(running, path=path, headers={"cookie": cookies})
        assert (answer.status, answer.got("cookie")) == (200, ["theme=dark"]), path
    assert ask(running, path="/plain", headers={"cookie": f"{name}={value}"}).got("cookie") == []
    assert sorted(copies.get(timeout=60) for _ in range(2)) == [[], [b"cookie: theme=dark\r\n"]]
    answer = ask(running, path="/copied", headers={"cookie": cookies})
    assert (answer.got("x-copy"), len(answer.got("x-all")), value in answer.body.decode()) == (["theme=dark"], 1, False)
    told = ask(running, path="/told", headers={"cookie": cookies}).body.decode()
    assert ("theme=dark" in told, value in told) == (True, False)
    assert ask(running, path="/web", headers={"cookie": f"{name}=x{value}"}).status == 302
    running.wait_log("http.path=/told")
    assert value not in running.log()
