"""Addresses of gateways on this machine."""

from __future__ import annotations

import pytest

from headgate.cluster.deploy.address_range import AddressRange, can_listen, loopback_of
from headgate.cluster.errors import ClusterError
from headgate.cluster.snapshot import ObjectKey

KEYS = [ObjectKey("edge", f"g{number}") for number in range(6)]


def test_addresses_differ_and_stay_until_the_range_is_full() -> None:
    found: list[str] = []
    small = AddressRange("10.98.0.0/29")
    for key in KEYS:
        found.append(small.choose(key, found))
    assert sorted(found) == [f"10.98.0.{number}" for number in range(1, 7)]
    assert small.choose(KEYS[0], found[1:]) == found[0]
    with pytest.raises(ClusterError, match=r"no address of 10\.98\.0\.0/29 is free"):
        small.choose(ObjectKey("edge", "more"), found)


def test_the_machines_own_address_is_nobodys() -> None:
    assert {AddressRange("127.0.0.0/30").choose(key, ()) for key in KEYS} == {"127.0.0.2"}


def test_what_is_in_a_range() -> None:
    known = AddressRange("127.0.0.0/8")
    assert {text: text in known for text in ("127.1.2.3", "128.0.0.1", "::1", "a.test", "")} == {
        "127.1.2.3": True, "128.0.0.1": False, "::1": False, "a.test": False, "": False,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["10.98.0.0/31", "10.98.0.1/16", "a", ""])
def test_a_range_that_cannot_be_used(text: str) -> None:
    with pytest.raises(ClusterError, match="range of addresses"):
        AddressRange(text)


def test_where_this_machine_can_listen() -> None:
    assert can_listen("127.9.9.9")
    # Documentation only (RFC 5737).
    assert not can_listen("192.0.2.1")


def test_servers_of_operators_stay_on_the_loopback() -> None:
    assert loopback_of("127.5.6.7") == "127.5.6.7"
    assert loopback_of("10.98.3.4") == "127.98.3.4"
