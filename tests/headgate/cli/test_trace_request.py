"""The curl command of inject mode."""

from __future__ import annotations

import click
import pytest

from headgate.cli.trace_request import prepare


@pytest.mark.parametrize(
    ("url", "mapping"),
    [
        ("http://shop.example/x", "shop.example:80:127.0.0.1:8080"),
        ("https://shop.example/x", "shop.example:443:127.0.0.1:8080"),
        ("HTTP://Shop.example:81", "shop.example:81:127.0.0.1:8080"),
        ("http://[::1]:9/", "[::1]:9:127.0.0.1:8080"),
    ],
)
def test_the_url_names_the_host_and_the_port_is_the_gateways(url: str, mapping: str) -> None:
    command = prepare((url, "-H", "a: b"), 8080).command
    assert command[1:] == ("-s", "-S", "--connect-to", mapping, url, "-H", "a: b")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-v",), "must include at least one"),
        (("http://a/", "http://b/"), "same host"),
        (("http://a/", "https://a/"), "same host"),
        (("http://a:x/",), "http://a:x/"),
        (("http:///x",), "no host"),
    ],
)
def test_what_cannot_be_sent_is_refused(arguments: tuple[str, ...], why: str) -> None:
    with pytest.raises(click.ClickException, match=why):
        prepare(arguments, 8080)
