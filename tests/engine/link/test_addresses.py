"""Addresses of connections as text."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate_engine.link.addresses import address_of, address_text


class Facts(asyncio.BaseTransport):
    def __init__(self, **facts: Any) -> None:
        super().__init__(facts)


@pytest.mark.parametrize(("name", "host", "port"), [
    (("10.0.0.1", 80), "10.0.0.1", 80),
    (("::ffff:10.0.0.1", 80, 0, 0), "10.0.0.1", 80),
    (("2001:db8::1", 443, 0, 0), "2001:db8::1", 443),
    ("/run/x", "", 0),
    (None, "", 0),
], ids=str)
def test_an_end_has_a_host_and_a_port(name: object, host: str, port: int) -> None:
    assert address_of(Facts(peername=name), "peername") == (host, port)


@pytest.mark.parametrize(("host", "port", "text"), [
    ("10.0.0.1", 80, "10.0.0.1:80"), ("2001:db8::1", 443, "[2001:db8::1]:443"), ("", 0, "unix")])
def test_an_address_is_written_as_in_a_url(host: str, port: int, text: str) -> None:
    assert address_text(host, port) == text
