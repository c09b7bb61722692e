"""Other spellings of a path that a rule denies or protects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.end_to_end.asking import ask

pytestmark = pytest.mark.warm

SPELLINGS = [
    "/admin", "/admin/", "/./admin", "/x/../admin", "/x/y/../../admin", "/../admin", "/admin/.", "/admin/x/..",
    "/%61dmin", "/%61%64%6d%69%6e", "/adm%69n", "/%2e/admin", "/x/%2e%2e/admin", "/x/%2E%2E/admin", "/x/.%2e/admin",
    "//admin", "///admin", "/x/..//admin", "//x/../admin", "/%2fadmin", "/x%2f..%2fadmin", "/x/..%2fadmin",
    "/%5cadmin", "/\\admin", "/x\\..\\admin", "/x%5c..%5cadmin", "/x/..%5cadmin", "/admin;a=b", "/x/..;/admin",
    "/;x/admin", "/%2561dmin", "/%252e/admin", "/x/%2%65%2%65/admin", "/%%361dmin",
    "/x/%252e%252e/admin", "/x/%252e%252e%252fadmin", "/admin%2f", "/admin%2fx",
]  # fmt: skip
HARMLESS = ["/", "/x", "/x%2fy", "/projects/group%2Fname", "/a//b", "/files/%41dministration", "/a;v=1", "/x/100%25", "/x/100%"]
DENY = """
authorization:
  rules:
  - deny: 'request.path == "/admin" || request.path.startsWith("/admin/")'
"""
ALLOW = """
authorization:
  rules:
  - allow: '!(request.path == "/admin" || request.path.startsWith("/admin/"))'
"""
ROUTES = """
SETTINGS
gateways:
  default: {port: {port}}
routes:
- name: admin
  matches: [{path: {pathPrefix: /admin}}]
  policies:
    authorization: {rules: ['request.headers["x-admin"] == "yes"']}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: all
  backends: [{host: "127.0.0.1:BACKEND"}]
"""
PREFIX = """
gateways:
  default: {port: {port}}
routes:
- name: api
  matches: [{path: {pathPrefix: /api}}]
  policies:
    urlRewrite: {path: {prefix: /internal/v2}}
  backends: [{host: "127.0.0.1:BACKEND"}]
"""


@pytest.fixture
def routes(gateway: Callable[..., Any], echo: int) -> Callable[..., Any]:
    def start(text: str, settings: str = "") -> Any:
        return gateway(text.replace("BACKEND", str(echo)).replace("SETTINGS", settings))

    return start


@pytest.mark.parametrize("policy", [DENY, ALLOW])
def test_a_rule_holds_for_every_reading(policies: Callable[..., Any], policy: str) -> None:
    running = policies(policy)
    assert {path: ask(running, path=path).status for path in SPELLINGS} == dict.fromkeys(SPELLINGS, 403)
    assert {path: ask(running, path=path).status for path in HARMLESS} == dict.fromkeys(HARMLESS, 200)


@pytest.mark.parametrize("mode", ["resolve", "refuse", "keep"])
def test_a_protected_route_is_protected_in_every_spelling(routes: Callable[..., Any], mode: str) -> None:
    running = routes(ROUTES, f"frontendPolicies: {{http: {{pathNormalization: {mode}}}}}")
    found = {path: ask(running, path=path).status for path in SPELLINGS}
    assert set(found.values()) <= {400, 403}, found
    assert ask(running, path="/admin", headers={"x-admin": "yes"}).status == 200
    # A path that is settled is that path; what is not reaches no route of others, allowed or not.
    assert ask(running, path="/x/../admin", headers={"x-admin": "yes"}).status == (200 if mode == "resolve" else 400)
    assert ask(running, path="//admin", headers={"x-admin": "yes"}).status == 400
    assert ask(running, path="/x%2fy").status == (400 if mode == "refuse" else 200)
    assert ask(running, path="/x/y").status == 200


def test_the_backend_gets_the_path_that_was_matched(routes: Callable[..., Any]) -> None:
    running = routes(ROUTES)
    for path, seen in (
        ("/x/../y?a=/../b", "/y?a=/../b"), ("/%7Euser/%2e/x", "/~user/x"), ("/x%2Fy%5C", "/x%2Fy%5C"), ("/a//b", "/a//b"),
    ):  # fmt: skip
        assert ask(running, path=path).seen["path"] == seen
    kept = routes(ROUTES, "frontendPolicies: {http: {pathNormalization: keep}}")
    assert ask(kept, path="/x/../%79").seen["path"] == "/x/../%79"


def test_no_path_leaves_the_prefix_that_is_rewritten(routes: Callable[..., Any]) -> None:
    running = routes(PREFIX)
    assert ask(running, path="/api/x%2fy").seen["path"] == "/internal/v2/x%2fy"
    for path in ("/api/../secret", "/api/%2e%2e/secret"):
        assert ask(running, path=path).status == 404
    for path in ("/api/..%2fsecret", "/api/..;/secret", "/api/%252e%252e/secret", "/api/..%5csecret", "/api/x/..%2f..%2fy"):
        answer = ask(running, path=path)
        assert (answer.status, answer.body) == (400, b"the path has several readings"), path


def test_a_configured_path_has_that_form_too(gateway: Callable[..., Any]) -> None:
    running = gateway("""
gateways: {default: {port: {port}}}
routes:
- matches: [{path: {exact: "/%7Euser/./x"}}]
  policies: {directResponse: {status: 200, body: found}}
""")
    for path in ("/~user/x", "/%7euser/x", "/%7Euser/./x"):
        assert ask(running, path=path).body == b"found"
