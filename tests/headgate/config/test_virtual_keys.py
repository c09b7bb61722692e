"""`virtualKeys`: receivers of alerts and what is shown of them, and what is warned of that would surprise."""

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


TAKES = "gateways: {default: {port: 80, apiKey: {virtualKeys: true}}}\n"
ONE = 'virtualKeys: {keys: [{name: k, keyHash: "sha256:' + "0" * 64 + '"}]}\n'


def test_keys_that_nobody_can_make_are_told(warnings: Callable[..., list[str]]) -> None:
    [told] = warnings(TAKES)
    assert told.startswith("gateways.default.apiKey.virtualKeys: there are no virtual keys, and none can be made")
    assert warnings(TAKES + ONE) == []
    assert warnings(TAKES + 'config: {storage: {mode: hybrid}, database: {url: "sqlite://keys.db"}}') == []


@pytest.mark.parametrize(("location", "told"), [("", 0), (", location: {header: {name: x-user}}", 1)])
def test_two_places_of_keys_are_told(location: str, told: int, warnings: Callable[..., list[str]]) -> None:
    route = "routes: [{name: r, gateways: [default], policies: {directResponse: {status: 200}, apiKey: {virtualKeys: trueLOCATION}}}]"
    found = warnings(TAKES + ONE + route.replace("LOCATION", location))
    assert len(found) == told
    assert all("its tokens and money for the key of the route" in one for one in found)
    # The same where the gateway takes keys that are not virtual.
    plain = TAKES.replace("virtualKeys: true", "keys: [{key: one}]") + ONE + route.replace("LOCATION", location)
    assert sum("keys of the file, from another place" in one for one in warnings(plain)) == told
