"""The operator's HTTP server."""

from __future__ import annotations

import pytest

from headgate.admin.web import is_local_name


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("localhost:15000", True),
        ("127.0.0.1:15000", True),
        ("[::1]:15000", True),
        ("[::1]", True),
        ("10.0.0.1", True),
        ("", True),
        ("evil.example", False),
        ("evil.example:15000", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example:15000", False),
    ],
)
def test_only_names_no_foreign_page_can_use_are_local(host: str, local: bool) -> None:
    assert is_local_name(host) is local
