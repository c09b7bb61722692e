"""Endpoints."""

from __future__ import annotations

import pytest

from headgate.ir.endpoint import Endpoint
from headgate.ir.tls import BackendTls


@pytest.mark.parametrize(
    ("endpoint", "address", "authority"),
    [
        (Endpoint(key="", host="h", port=80), "h:80", "h"),
        (Endpoint(key="", host="h", port=443), "h:443", "h:443"),
        (Endpoint(key="", host="h", port=443, tls=BackendTls()), "h:443", "h"),
        (Endpoint(key="", host="::1", port=81), "[::1]:81", "[::1]:81"),
        (Endpoint(key="", unix_path="/s"), "unix:/s", None),
    ],
)
def test_addresses_and_authorities(endpoint: Endpoint, address: str, authority: str | None) -> None:
    assert (endpoint.address, endpoint.authority) == (address, authority)
