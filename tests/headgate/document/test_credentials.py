"""URLs of the configuration as they may be shown."""

from __future__ import annotations

import pytest

from headgate.document.credentials import is_marked_url, names_credential, names_option, shown_message, shown_url

SHOWN = [
    ("https://h.test/keys", "https://h.test/keys"),
    ("https://h.test/keys?token=CANARY", "https://h.test/keys?token=<redacted>"),
    ("https://h.test/keys?v=1&key=CANARY&page=2", "https://h.test/keys?v=1&key=<redacted>&page=2"),
    ("https://h.test/keys?a=1;key=CANARY", "https://h.test/keys?a=1;key=<redacted>"),
    ("https://h.test/keys?key=CANARY;CANARY", "https://h.test/keys?key=<redacted>"),
    ("https://h.test/keys?a=1;b=2;token=CANARY&c=3", "https://h.test/keys?a=1;b=2;token=<redacted>&c=3"),
    ("https://h.test/keys?Access_Token=CANARY#top", "https://h.test/keys?Access_Token=<redacted>#top"),
    ("https://h.test/keys?t%6Fken=CANARY", "https://h.test/keys?t%6Fken=<redacted>"),
    ("https://h.test/keys?t%256Fken=CANARY", "https://h.test/keys?t%256Fken=<redacted>"),
    ("https://h.test/keys?sig=CANARY&se=2030", "https://h.test/keys?sig=<redacted>&se=2030"),
    ("https://h.test/keys?X-Amz-Signature=CANARY", "https://h.test/keys?X-Amz-Signature=<redacted>"),
    ("https://h.test/keys?functions-key=CANARY", "https://h.test/keys?functions-key=<redacted>"),
    ("https://h.test/keys?a?token=CANARY", "https://h.test/keys?a?token=<redacted>"),
    ("/mcp?api_key=CANARY", "/mcp?api_key=<redacted>"),
    ("https://user:CANARY@h.test/keys", "https://<redacted>@h.test/keys"),
    ("https://CANARYCANARYCANARYCANARY@h.test/", "https://<redacted>@h.test/"),
    ("postgres://u:CANARY@h.test/d?sslmode=require", "postgres://<redacted>@h.test/d?sslmode=require"),
    # Nothing to hide.
    ("https://h.test/keys?token=${TOKEN}", "https://h.test/keys?token=${TOKEN}"),
    ("https://h.test/keys?token=", "https://h.test/keys?token="),
    ("https://h.test/keys?tokens=3&monkey=4", "https://h.test/keys?tokens=3&monkey=4"),
    ("https://h.test/token=1", "https://h.test/token=1"),
    ('request.path == "/x?token=1"', 'request.path == "/x?token=1"'),
    ("use /x?token=1 here", "use /x?token=1 here"),
    ("mailto:a@b.test?token=1", "mailto:a@b.test?token=1"),
    ("", ""),
]


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_a_url_shows_no_credential(text: str, shown: str) -> None:
    assert shown_url(text) == shown
    assert shown_url(shown) == shown
    assert is_marked_url(shown) is ("<redacted>" in shown)


@pytest.mark.parametrize("text", ["<redacted>", "say <redacted>", "https://h.test/<redacted>", "/a?b=<redacted>", "/a?token=x"])
def test_a_mark_stands_where_a_credential_stood(text: str) -> None:
    assert not is_marked_url(text)


@pytest.mark.parametrize("name", ["authorization", "Set-Cookie", "x-api-key", "x-upstream-token", "db_password", "client_secret"])
def test_names_of_credentials(name: str) -> None:
    assert names_credential(name)
    assert names_option(name)


@pytest.mark.parametrize(("name", "option"), [("key", True), ("ssh-key", True), ("monkey", False), ("country-code", False), ("tokens", False)])
def test_options_have_shorter_names(name: str, option: bool) -> None:
    assert not names_credential(name)
    assert names_option(name) is option


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("'/new?a=1;key=CANARY#x' is not a path", "'/new?a=1;key=<redacted>#x' is not a path"),
        ("not here: 'http://u:CANARY@h.test/?token=CANARY' (a.yaml:1)", "not here: 'http://<redacted>@h.test/?token=<redacted>' (a.yaml:1)"),
        ("routes: expected /a or /b?c=d", "routes: expected /a or /b?c=d"),
    ],
)
def test_a_message_quotes_urls_without_credentials(text: str, shown: str) -> None:
    assert shown_message(text) == shown
