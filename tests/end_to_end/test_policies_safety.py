"""Policies against requests that are made to pass them."""

from __future__ import annotations

from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.end_to_end.asking import BASE, ask, indented

pytestmark = pytest.mark.warm

# -- identity in expressions -------------------------------------------------------------------------------------------

IDENTITIES = ["jwt", "apiKey", "basicAuth", "metadata", "extauthz", "extproc", "mcpGuardrails"]


def test_absent_identities_are_null(policies) -> None:
    fields = ", ".join(f"x-{name.lower()}: 'string({name} == null)'" for name in IDENTITIES)
    answer = ask(policies(f"transformations: {{request: {{set: {{{fields}}}}}}}"))
    assert {name: answer.got(f"x-{name.lower()}") for name in IDENTITIES} == {key: ["true"] for key in IDENTITIES}


def test_a_rule_that_asks_for_a_user(policies) -> None:
    running = policies("""
basicAuth: {mode: optional, htpasswd: "ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="}
authorization: {rules: ['basicAuth != null']}
""")
    assert ask(running).status == 403
    assert ask(running, headers={"authorization": "Basic YWRhOnBhc3N3b3Jk"}).status == 200


def test_wrong_passwords_do_not_pile_up(policies, tmp_path) -> None:
    users = tmp_path / "users"
    users.write_text("ada:$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy")
    running = policies(f'basicAuth: {{htpasswd: {{file: "{users}"}}}}')
    with ThreadPoolExecutor(120) as pool:
        guesses = [{"authorization": "Basic " + b64encode(f"ada:{number}".encode()).decode()} for number in range(240)]
        answers = list(pool.map(lambda headers: ask(running, headers=headers), guesses))
    assert {answer.status for answer in answers} == {401, 429}
    assert {answer.headers["retry-after"] for answer in answers if answer.status == 429} == {"1"}
    assert ask(running, headers=guesses[0]).status == 401


# -- cors and csrf -----------------------------------------------------------------------------------------------------

ORIGINS = [
    ("https://x.app.test", True),
    ("https://x.y.app.test", True),
    ("https://part-1.test:8443", True),
    ("https://tail.test", True),
    ("https://evil.test/.app.test", False),
    ("https://evil.test:1.app.test", False),
    ("https://evil.test?.app.test", False),
    ("https://evil.test#.app.test", False),
    ("https://evil@x.app.test", False),
    ("https://part-1.test:9/.test:8443", False),
    ("https://tail.test:444", False),
]
VARIES = [
    ("GET", {}),
    ("GET", {"origin": "https://x.app.test"}),
    ("GET", {"origin": "https://evil.test"}),
    ("OPTIONS", {"origin": "https://x.app.test", "access-control-request-method": "GET"}),
    ("OPTIONS", {"origin": "https://evil.test", "access-control-request-method": "GET"}),
]


def test_cors_origins(policies) -> None:
    running = policies("cors: {allowOrigins: ['https://*.app.test', 'https://part-*.test:8443', 'https://tail*']}")
    for origin, allowed in ORIGINS:
        answer = ask(running, headers={"origin": origin})
        assert answer.headers.get("access-control-allow-origin") == (origin if allowed else None), origin
    for method, headers in VARIES:
        assert ask(running, method, headers=headers).headers.get_all("vary") == ["Origin"], (method, headers)


def test_cors_keeps_what_else_a_response_varies_by(policies) -> None:
    running = policies("""
cors: {allowOrigins: ['https://a.test']}
directResponse: {status: 200, body: x, headers: {vary: '"accept"'}}
""")
    assert sorted(ask(running).headers.get_all("vary")) == ["Origin", "accept"]


def test_an_opaque_origin_is_foreign(policies) -> None:
    running = policies("csrf: {additionalOrigins: ['https://b.test']}")
    assert ask(running, "POST", headers={"origin": "null"}).status == 403
    assert ask(running, "POST").status == 200


# -- names of headers --------------------------------------------------------------------------------------------------

SETS_A_USER = """
requestHeaderModifier: {set: {x-user: ada}}
transformations: {request: {set: {x-seen: 'string(has(request.headers.x_user))'}}}
"""


def test_names_with_underscores_do_not_reach_the_backend(policies, gateway, echo) -> None:
    running = policies(SETS_A_USER)
    answer = ask(running, headers={"X_User": "eve", "x_user": "eve", "X-User": "eve", "_": "1", "content_length": "7"})
    assert (answer.got("x-user"), answer.got("x_user"), answer.got("_")) == (["ada"], [], [])
    assert (answer.got("x-seen"), answer.got("content_length")) == (["false"], [])
    settings = "frontendPolicies: {http: {headersWithUnderscores: keep}}\n"
    kept = gateway(settings + BASE % (indented(SETS_A_USER), echo))
    answer = ask(kept, headers={"X_User": "eve"})
    assert (answer.got("x_user"), answer.got("x-user"), answer.got("x-seen")) == (["eve"], ["ada"], ["true"])
