"""Which requests come from this machine."""

from __future__ import annotations

import pytest

from headgate.dialect.mcp.rebinding import is_local


@pytest.mark.parametrize(
    ("authority", "origins", "local"),
    [
        ("localhost", [], True),
        ("LOCALHOST:3000", [], True),
        ("127.0.0.1:1", ["http://localhost:5173"], True),
        ("[::1]:80", ["HTTPS://[::1]"], True),
        ("evil.example", [], False),
        ("localhost.evil.example", [], False),
        ("127.0.0.1.evil.example", [], False),
        ("localhost:123456", [], False),
        ("", [], False),
        ("user@localhost", [], False),
        ("localhost", ["http://evil.example"], False),
        ("localhost", ["null"], False),
        ("localhost", [""], False),
        ("localhost", ["file://localhost"], False),
        ("localhost", ["http://localhost/"], False),
        ("localhost", ["http://localhost?x"], False),
        ("localhost", ["http://u:p@localhost"], False),
        ("localhost", ["http://localhost", "http://localhost"], False),
    ],
)
def test_host_and_origin_name_this_machine(authority: str, origins: list[str], local: bool) -> None:
    assert is_local(authority, [("x", "y"), *(("Origin", one) for one in origins)]) is local
