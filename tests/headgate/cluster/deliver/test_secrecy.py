"""Which fragments have a secret."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.cluster.deliver.secrecy import SecretFinder, has_secret
from headgate.cluster.deliver.wire import SentFragment, resource_of
from headgate.cluster.translate.fragments import Fragment

PLAIN: list[tuple[str, dict[str, Any]]] = [
    ("binds", {"port": 8080}),
    ("listeners", {"name": "http", "hostname": "a.test", "protocol": "HTTP"}),
    ("routes", {"name": "a", "matches": [{"path": {"exact": "/a"}}], "backends": [{"service": {"name": "shop/cart", "port": 80}}]}),
    ("backends", {"name": "b", "host": "b.test:80"}),
]
SECRET: list[tuple[str, dict[str, Any]]] = [
    ("listeners", {"name": "tls", "protocol": "HTTPS", "tls": {"cert": "-----BEGIN CERTIFICATE-----\nA\n", "key": "-----BEGIN PRIVATE KEY-----\nA\n"}}),
    ("routes", {"name": "a", "policies": {"apiKey": {"keys": [{"key": "abc"}]}}}),
    ("routes", {"name": "a", "backends": [{"host": "b.test:80", "policies": {"backendAuth": {"key": "abc"}}}]}),
    ("backends", {"name": "b", "host": "b.test:80", "policies": {"backendAuth": {"key": "abc"}}}),
    ("routes", {"name": "a", "policies": {"requestHeaderModifier": {"set": {"authorization": "Bearer abc"}}}}),
    ("noSuchPlace", {"name": "a"}),
]


def sent(place: str, value: dict[str, Any]) -> SentFragment:
    return resource_of(Fragment(key="k", place=place, value=value))


@pytest.mark.parametrize(("place", "value"), PLAIN)
def test_what_has_none(place: str, value: dict[str, Any]) -> None:
    assert not has_secret(sent(place, value))


@pytest.mark.parametrize(("place", "value"), SECRET)
def test_what_has_one(place: str, value: dict[str, Any]) -> None:
    assert has_secret(sent(place, value))


def test_what_cannot_be_read_counts_as_one() -> None:
    assert has_secret(SentFragment("1", b"\xff"))


def test_the_first_with_a_secret_is_found_each_time() -> None:
    finder = SecretFinder()
    plain = {f"p{index}": sent(*one) for index, one in enumerate(PLAIN)}
    assert finder.first(plain) == ""
    for _ in range(2):
        assert finder.first({**plain, "s": sent(*SECRET[1])}) == "s"
    assert finder.first(plain) == ""
