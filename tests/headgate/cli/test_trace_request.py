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
    command = prepare((url, "-H", "a: b"), 8080, here=False).command
    assert command[1:] == ("-s", "-S", "--connect-to", mapping, url, "-H", "a: b")


@pytest.mark.parametrize(
    ("arguments", "expression"),
    [
        (("http://a/shop/cart?id=1",), 'request.path == "/shop/cart"'),
        (("http://a", "-d", "x"), 'request.path == "/"'),
        (("http://a/x", "http://a/y"), None),
        (("http://a/a/../b",), None),
        (("http://a/%41",), None),
        (("http://a/x", "--request-target", "/y"), None),
    ],
)
def test_a_request_of_a_cluster_is_told_from_others_by_its_path(arguments: tuple[str, ...], expression: str | None) -> None:
    assert prepare(arguments, 8080, here=False).expression == expression


def test_a_request_of_this_machine_is_told_from_others_by_its_port() -> None:
    found = prepare(("http://a/x",), 8080, here=True)
    first, last = found.command[-1].split("-")
    assert found.command[-2] == "--local-port"
    assert found.expression == f"source.rawPort >= {first} && source.rawPort <= {last}"
    assert int(first) <= int(last) <= 65535
    own = prepare(("http://a/x", "--local-port", "7000"), 8080, here=True)
    assert (own.command.count("--local-port"), own.expression) == (1, 'request.path == "/x"')


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
        prepare(arguments, 8080, here=True)
