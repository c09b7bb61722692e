"""`cors` of the configuration."""

from __future__ import annotations

import pytest

from headgate.config.load import TextSource, load

TEXT = """
gateways: {default: {port: 3000}}
routes:
- name: web
  policies:
    cors: {allowOrigins: %s, allowCredentials: %s}
    directResponse: {status: 200, body: ok}
"""


@pytest.mark.parametrize(
    ("origins", "credentials", "warned"),
    [
        ('["*"]', "true", True),
        ('["https://a.test", "*"]', "true", True),
        ('["*"]', "false", False),
        ('["https://*.a.test"]', "true", False),
    ],
)
def test_credentials_for_every_site(origins: str, credentials: str, warned: bool) -> None:
    found = load(TextSource(TEXT % (origins, credentials))).warnings
    assert [text.partition(":")[0] for text in found] == (["routes[0].policies.cors"] if warned else [])
