"""Who may talk to the admin server from within a browser."""

from __future__ import annotations

import pytest

from headgate.admin.origins import cors, is_foreign, is_foreign_behind, is_local_name, preflight

ALLOWED = frozenset(("http://localhost:3000",))


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("localhost:15000", True),
        ("127.0.0.1:15000", True),
        ("[::1]:15000", True),
        ("[::1]", True),
        ("10.0.0.1", True),
        ("", True),
        ("evil.example", False),
        ("evil.example:15000", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example:15000", False),
    ],
)
def test_only_names_no_foreign_page_can_use_are_local(host: str, local: bool) -> None:
    assert is_local_name(host) is local


@pytest.mark.parametrize(
    ("headers", "to_page", "foreign"),
    [
        ({}, False, False),
        ({"origin": "http://localhost:15000"}, False, False),
        ({"origin": "http://LOCALHOST:15000"}, False, False),
        ({"origin": "http://localhost:3000"}, False, False),
        ({"origin": "http://localhost:3000", "sec-fetch-site": "same-site"}, False, False),
        ({"origin": "https://localhost:3000"}, False, True),
        ({"origin": "http://127.0.0.1:3000"}, False, True),
        ({"origin": "http://127.0.0.1:19000"}, False, True),
        ({"origin": "http://localhost:15001"}, False, True),
        ({"origin": "https://localhost:15000"}, False, True),
        ({"origin": "http://evil.example"}, False, True),
        ({"origin": "http://localhost:15000.evil.example"}, False, True),
        ({"origin": "http://[broken"}, False, True),
        ({"origin": "null"}, False, True),
        ({"origin": ""}, False, True),
        ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}, False, False),
        ({"sec-fetch-site": "same-origin"}, False, False),
        ({"sec-fetch-site": "same-site"}, False, True),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, False, True),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, False, True),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, True, False),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, True, True),
        ({"origin": "http://evil.example", "sec-fetch-mode": "navigate"}, True, True),
    ],
)
def test_requests_of_pages_that_are_not_ours_are_foreign(headers: dict[str, str], to_page: bool, foreign: bool) -> None:
    assert is_foreign(headers, "localhost:15000", to_page, ALLOWED) is foreign


@pytest.mark.parametrize(
    ("headers", "to_page", "foreign"),
    [
        ({}, False, False),
        ({"origin": "http://admin.test:8443"}, False, False),
        ({"origin": "https://ADMIN.test:8443"}, False, False),
        ({"origin": "https://admin.test:8443", "sec-fetch-site": "same-origin"}, False, False),
        # A page of the same name and port on plain HTTP: the browser knows it for another site.
        ({"origin": "http://admin.test:8443", "sec-fetch-site": "cross-site"}, False, True),
        ({"origin": "http://admin.test:8443", "sec-fetch-site": ""}, False, True),
        ({"origin": "https://admin.test"}, False, True),
        ({"origin": "https://admin.test:8443.evil.test"}, False, True),
        ({"origin": "ftp://admin.test:8443"}, False, True),
        ({"origin": "admin.test:8443"}, False, True),
        ({"origin": "null"}, False, True),
        ({"origin": ""}, False, True),
        ({"origin": "http://localhost:3000"}, False, True),
        ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}, False, False),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}, False, True),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, True, False),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, False, True),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, True, True),
    ],
)
def test_behind_a_listener_the_browser_tells_the_scheme(headers: dict[str, str], to_page: bool, foreign: bool) -> None:
    assert is_foreign_behind(headers, "admin.test:8443", to_page) is foreign


def test_a_page_of_an_allowed_origin_may_read_what_it_gets() -> None:
    asking = {"origin": "http://localhost:3000"}
    found = dict(cors(asking, ALLOWED))
    assert found["access-control-allow-origin"] == "http://localhost:3000"
    assert found["access-control-allow-credentials"] == "true"
    assert found["vary"] == "origin"
    assert cors({"origin": "http://localhost:4000"}, ALLOWED) == ()
    assert cors({}, ALLOWED) == ()
    assert cors(asking) == (), "nobody is allowed by default"
    assert is_foreign(asking, "localhost:15000", to_page=False)


def test_its_preflight_is_answered_and_nobody_else_s() -> None:
    asking = {"origin": "http://localhost:3000", "access-control-request-method": "POST"}
    found = dict(preflight("OPTIONS", asking, ALLOWED) or ())
    assert found["access-control-allow-methods"] == "GET, POST, PUT, DELETE, OPTIONS"
    assert found["access-control-allow-headers"] == "content-type, authorization, x-requested-with"
    assert found["access-control-max-age"] == "3600"
    assert preflight("OPTIONS", {**asking, "origin": "http://evil.example"}, ALLOWED) is None
    assert preflight("POST", asking, ALLOWED) is None
    assert preflight("OPTIONS", {"origin": "http://localhost:3000"}, ALLOWED) is None
    assert preflight("OPTIONS", asking) is None
