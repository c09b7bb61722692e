"""The `host` that goes to a backend."""

from __future__ import annotations

import pytest

from headgate.ir.endpoint import Endpoint
from headgate.ir.tls import BackendTls
from headgate.net.authority import own_authority, rewritten_authority


@pytest.mark.parametrize(
    ("endpoint", "rewritten", "own"),
    [
        (Endpoint(key="a", host="a.test", port=80), b"a.test", "a.test"),
        (Endpoint(key="a", host="a.test", port=8080), b"a.test:8080", "a.test:8080"),
        (Endpoint(key="a", host="a.test", port=443, tls=BackendTls()), b"a.test", "a.test"),
        (Endpoint(key="a", host="a.test", port=80, tls=BackendTls()), b"a.test:80", "a.test:80"),
        (Endpoint(key="a", host="10.0.0.1", port=8080), None, "10.0.0.1:8080"),
        (Endpoint(key="a", host="::1", port=8080), None, "[::1]:8080"),
        (Endpoint(key="a", unix_path="/run/a"), None, "localhost"),
        (Endpoint(key="a", host="bücher.test", port=80), b"xn--bcher-kva.test", "xn--bcher-kva.test"),
    ],
)
def test_named_hosts_get_their_own_name(endpoint: Endpoint, rewritten: bytes | None, own: str) -> None:
    assert rewritten_authority(endpoint) == rewritten
    assert own_authority(endpoint) == own
