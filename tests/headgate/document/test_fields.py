"""Scalar fields."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.document import fields
from headgate.document.fields import ConnectTarget
from headgate.document.secret import Secret

GOOD: list[tuple[Callable[[str], object], str, object]] = [
    (fields.duration_ns, "300ms", 300_000_000),
    (fields.duration_ns, "1h2m3s", 3_723_000_000_000),
    (fields.duration_ns, "1.5s", 1_500_000_000),
    (fields.duration_ns, ".5m", 30_000_000_000),
    (fields.duration_ns, "7ns", 7),
    (fields.duration_ns, "2us3µs", 5_000),
    (fields.duration_ns, "0", 0),
    (fields.duration_ms, "1ns", 1),
    (fields.duration_ms, "10m0s", 600_000),
    (fields.byte_size, "4096", 4096),
    (fields.byte_size, "2Mi", 2 * 2**20),
    (fields.byte_size, "2M", 2_000_000),
    (fields.byte_size, "3k", 3_000),
    (fields.header_name, "X-Api", "x-api"),
    (fields.header_or_pseudo, ":path", ":path"),
    (fields.header_value, "a b\tc", "a b\tc"),
    (fields.hostname, "API.Test", "api.test"),
    (fields.hostname, "*.a.test", "*.a.test"),
    (fields.hostname, "*", "*"),
    (fields.pattern, "^/a(b|c)+$", "^/a(b|c)+$"),
    (fields.secret, "  k\n", Secret("k")),
    (fields.target, "a.test:80", ConnectTarget("a.test", 80)),
    (fields.target, "[::1]:80", ConnectTarget("::1", 80)),
    (fields.target, "127.0.0.1:9", ConnectTarget("127.0.0.1", 9)),
    (fields.target, "unix:/run/a.sock", ConnectTarget("", 0, "/run/a.sock")),
    (fields.target, "https://h", ConnectTarget("h", 443, scheme="https")),
    (fields.target, "http://h:81/", ConnectTarget("h", 81, scheme="http")),
    (fields.url, "https://H:1/v1", ConnectTarget("h", 1, scheme="https", path="/v1")),
    (fields.url, "http://[::1]", ConnectTarget("::1", 80, scheme="http")),
    (fields.host_url, "https://h/", ConnectTarget("h", 443, scheme="https")),
    (fields.grpc_method, "/a.v1.B/C", "/a.v1.B/C"),
    (fields.server_name, "A.test", "a.test"),
    (fields.server_name, "::1", "::1"),
]


@pytest.mark.parametrize(("parse", "text", "value"), GOOD, ids=[f"{c[0].__name__} {c[1]!r}" for c in GOOD])
def test_good_texts_are_read(parse: Callable[[str], object], text: str, value: object) -> None:
    assert parse(text) == value


BAD: list[tuple[Callable[[str], object], str]] = [
    *((fields.duration_ns, text) for text in ("", "5", "-5s", "5 s", "5S", "s", ".s", "1e3s", "9" * 40 + "h")),
    *((fields.byte_size, text) for text in ("", "-1", "1.5Mi", "2KB", "9" * 20)),
    *((fields.header_name, text) for text in ("", "a b", "a:", ":path", "é", "a" * 257)),
    *((fields.header_or_pseudo, text) for text in (":host", ":")),
    *((fields.header_value, text) for text in ("a\r\nb", "a\0", " a", "a ", "\u20ac")),
    *((fields.hostname, text) for text in ("", "a..b", "*.", "a.*", "*a.test", "a_b!", "http://a", "a:80", "-a")),
    *((fields.pattern, text) for text in ("(", "(?=a)", r"(a)\1", "a" * 5000)),
    *((fields.cel, text) for text in ("", "a" * 16_385)),
    *((fields.secret, text) for text in ("", "  ", "a\nb", "\u20ac")),
    *(
        (fields.target, text)
        for text in ("a", "a:", ":80", "a:0", "a:65536", "a:+1", "a b:1", "::1:80", "999.1.1.1:80", "unix:run",
                     "unix:/" + "a" * 107, "https://h/path", "ftp://h", "a:80/x", "http://u@h")
    ),
    *(
        (fields.url, text)
        for text in ("h", "//h", "http://", "http://h?x", "http://h#x", "http://u:p@h", "http://h:0", "http://h:x",
                     "http://a b", "http://[::1", "http://h/\n", "gopher://h")
    ),
    *((fields.server_name, text) for text in ("", "a b", "a:b:c:z")),
]  # fmt: skip


@pytest.mark.parametrize(("parse", "text"), BAD, ids=[f"{c[0].__name__} {c[1][:20]!r}" for c in BAD])
def test_bad_texts_raise_value_error_and_nothing_else(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(text)
    assert type(caught.value) in (ValueError, *ValueError.__subclasses__())
    assert str(caught.value)


@given(st.text(max_size=40))
def test_no_parser_raises_anything_but_value_error(text: str) -> None:
    for parse in (
        fields.duration_ns, fields.byte_size, fields.header_name, fields.header_value, fields.hostname,
        fields.pattern, fields.cel, fields.secret, fields.target, fields.url, fields.server_name,
        fields.host_url, fields.grpc_method,
    ):  # fmt: skip
        try:
            parse(text)
        except ValueError:
            continue


@given(st.integers(0, 2**62))
def test_whole_nanoseconds_survive(value: int) -> None:
    assert fields.duration_ns(f"{value}ns") == value


@pytest.mark.parametrize("number", [0, -1, 65_536])
def test_ports_have_bounds(number: int) -> None:
    with pytest.raises(ValueError):
        fields.port(number)


@pytest.mark.parametrize("text", ["", "a.B/C", "/B", "/a.B/", "/a b/C", "/a/b/C", "/a.B/C\n"])
def test_grpc_methods_are_full_paths(text: str) -> None:
    with pytest.raises(ValueError, match="a gRPC method must be"):
        fields.grpc_method(text)


@pytest.mark.parametrize("text", ["http://h/v1", "http://h?x", "h:1", "ftp://h"])
def test_host_urls_have_no_path(text: str) -> None:
    with pytest.raises(ValueError):
        fields.host_url(text)
