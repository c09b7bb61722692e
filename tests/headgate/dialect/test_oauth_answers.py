"""Redirect URIs, parameters and registrations of clients whose answers come back through the gateway."""

from __future__ import annotations

import json

import pytest

from headgate.dialect import oauth_answers as answers
from headgate.dialect.oauth_answers import RequestError, is_redirect_uri, is_registered


@pytest.mark.parametrize(
    ("uri", "good"),
    [
        ("https://a.test/cb", True), ("http://127.0.0.1:33418/", True), ("cursor://anysphere.cursor-mcp/oauth/cb", True),
        ("com.example.app:/cb", True), ("https://a.test/cb?x=1", True),
        ("https://a.test/cb#x", False), ("/cb", False), ("", False), ("a.test", False), ("1a://x", False),
        ("javascript:alert(1)", False), ("data:text/html,x", False), ("https://a.test/ x", False),
        ("https://a.test/\r\nset-cookie: a", False), ("https://a.test/\u00e9", False), ("https://a/" + "x" * 2000, False),
        (None, False), (7, False),
    ],
)  # fmt: skip
def test_redirect_uris(uri: object, good: bool) -> None:
    assert is_redirect_uri(uri) is good


@pytest.mark.parametrize(
    ("uri", "good"),
    [
        ("https://a.test/cb", True), ("https://a.test/cb/", False), ("https://a.test/cb?x", False), ("https://A.test/cb", False),
        ("https://a.test:443/cb", False), ("http://127.0.0.1:1/x", True), ("http://127.0.0.1/x", True),
        ("http://127.0.0.1:65535/x", True), ("http://127.0.0.1:1/y", False), ("http://127.0.0.1:1/x?y", False),
        ("https://127.0.0.1:1/x", False), ("http://localhost:1/x", False), ("http://127.0.0.1.evil.test:1/x", False),
        ("http://evil@127.0.0.1:1/x", False), ("http://127.0.0.1:99999/x", False), ("http://127.0.0.1:1/x#f", False),
        ("http://127.0.0.1:a/x", False), ("http://[::1/x", False),
    ],
)  # fmt: skip
def test_a_uri_is_a_clients(uri: str, good: bool) -> None:
    assert is_registered(uri, ("https://a.test/cb", "http://127.0.0.1:33418/x")) is good


def test_parameters_are_said_once() -> None:
    assert answers.parameters("a=1&b=&resource=x&resource=y") == {"a": "1", "b": ""}
    for text in ("a=1&a=2", "&".join(f"p{n}=1" for n in range(200))):
        with pytest.raises(RequestError):
            answers.parameters(text)
    assert answers.exchanged("a=1&b=%26&resource=x", a="2") == "a=2&b=%26&resource=x"


@pytest.mark.parametrize(
    ("uri", "extended"),
    [("https://a/", "https://a/?c=1"), ("https://a/?x=1", "https://a/?x=1&c=1"), ("https://a/?", "https://a/?c=1")],
)
def test_a_uri_keeps_its_query(uri: str, extended: str) -> None:
    assert answers.extended(uri, {"c": "1"}) == extended


def test_basic_credentials() -> None:
    assert answers.basic_client(answers.basic("a:b c", "s%")) == ("a:b c", "s%")
    for text in ("Bearer x", "Basic", "Basic !", "Basic YQ==", "Basic /w=="):
        assert answers.basic_client(text) is None


def test_registrations() -> None:
    body, uris = answers.registration(b'{"redirect_uris":["https://a/","b:c"],"client_name":"n"}', "https://g/cb")
    assert (json.loads(body), uris) == ({"redirect_uris": ["https://g/cb"], "client_name": "n"}, ("https://a/", "b:c"))
    for text in (b"", b"[]", b"{}", b'{"redirect_uris":[]}', b'{"redirect_uris":["x"]}', b'{"redirect_uris":"https://a/"}',
                 json.dumps({"redirect_uris": ["https://a/"] * 17}).encode(), b"[" * 5000):  # fmt: skip
        with pytest.raises(RequestError):
            answers.registration(text, "https://g/cb")
