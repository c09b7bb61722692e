"""What tests of oidc and others share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from tests.end_to_end.fake_provider import FakeProvider

COOKIE_KEY = "5a" * 32
ENVIRONMENT = {"OIDC_COOKIE_SECRET": COOKIE_KEY}
OIDC = """
oidc:
  issuer: "%s"
  clientId: app
  clientSecret: "a secret/with+signs"
  redirectURI: "http://127.0.0.1:{port}/login/done"
  scopes: [email]
"""


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    found = FakeProvider()
    yield found
    found.close()


class Browser(httpx.Client):
    """Keeps cookies, follows nothing by itself."""

    def __init__(self) -> None:
        super().__init__(follow_redirects=False, timeout=60)

    def begin(self, running: Any, path: str = "/") -> httpx.Response:
        answer = self.get(running.url + path)
        assert answer.status_code == 302, answer.text
        return answer

    def log_in(self, running: Any, provider: FakeProvider, path: str = "/", **extra: str) -> httpx.Response:
        """The provider's answer to a login that begins at `path`."""
        code, query = provider.authorize(self.begin(running, path).headers["location"])
        return self.get(f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state'], **extra})}")

    def names(self, start: str) -> list[str]:
        return [cookie.name for cookie in self.cookies.jar if cookie.name.startswith(start)]

    def session(self) -> tuple[str, str]:
        """Name and value of the session cookie."""
        (name,) = self.names("gw_oidc_s_")
        return name, self.cookies[name]
