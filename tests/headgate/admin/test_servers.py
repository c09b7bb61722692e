"""Where the operator's servers are found."""

from __future__ import annotations

import pytest

from headgate.admin.servers import page_url
from headgate.ir.process import ListenAddress


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:15000/ui"),
        ("0.0.0.0", "http://localhost:15000/ui"),
        ("::", "http://localhost:15000/ui"),
        ("::1", "http://[::1]:15000/ui"),
        ("10.1.2.3", "http://10.1.2.3:15000/ui"),
    ],
)
def test_the_page_is_where_a_browser_reaches_it(host: str, url: str) -> None:
    assert page_url(ListenAddress(text=host, hosts=(host,), port=15000)) == url
