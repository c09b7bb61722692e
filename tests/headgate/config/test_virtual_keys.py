"""`virtualKeys.alerts`: what a receiver may be, and what is shown of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.config.virtual_keys import dump
from headgate.ir.gateway import Gateway


def test_a_receiver_is_shown_without_what_may_be_secret(loaded: Callable[..., Gateway]) -> None:
    keys = loaded("virtualKeys: {alerts: {url: 'https://a.test:444/hidden?x=hidden', secret: hidden, timeout: 2s}}").virtual_keys
    assert keys is not None
    assert keys.alerts is not None
    assert (keys.alerts.place, keys.alerts.timeout_ms) == ("a.test:444", 2000)
    assert "hidden" not in repr(keys) + str(dump(keys))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.test/", "a.test/x", "http://", "http://user@a.test/", "http://user:hidden@a.test/", "http://:hidden@a.test/",
        "http://@a.test/", "http://a.test:99999/", "http://a.test/hid den", "http://a.test/hidden\\t", "http://a.test/\\xe4",
    ],
)  # fmt: skip
def test_what_is_no_receiver_is_refused_and_not_quoted(url: str, faults: Callable[..., list[str]]) -> None:
    [fault] = faults(f'virtualKeys: {{alerts: {{url: "{url}"}}}}')
    assert fault.startswith("virtualKeys.alerts.url")
    assert "without a login" in fault
    assert "hid" not in fault
