"""`config.dns` and its environment variables."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.config import extras
from headgate.ir.gateway import Gateway
from headgate.ir.process import DnsSettings


def config(dns: str, more: str = "") -> str:
    return f"config: {{{more}dns: {dns}}}\ngateways: {{default: {{port: 1}}}}"


@pytest.mark.parametrize(
    ("dns", "more", "environ", "wanted"),
    [
        ("{}", "", {}, DnsSettings(family="V4Preferred", edns0=None, servers=())),
        ("null", "", {}, DnsSettings()),
        ("{lookupFamily: Auto}", "", {}, DnsSettings(family="V4Preferred")),
        ("{lookupFamily: Auto}", "enableIpv6: false, ", {}, DnsSettings(family="V4Only")),
        ("{lookupFamily: All}", "enableIpv6: false, ", {}, DnsSettings(family="V4Only")),
        ("{lookupFamily: all}", "", {}, DnsSettings(family="All")),
        ("{lookupFamily: v6Only}", "", {}, DnsSettings(family="V6Only")),
        ("{edns0: true}", "", {}, DnsSettings(edns0=True)),
        ("{edns0: true}", "", {"DNS_EDNS0": "false"}, DnsSettings(edns0=False)),
        ("{lookupFamily: All}", "", {"DNS_LOOKUP_FAMILY": "V4Only"}, DnsSettings(family="V4Only")),
        ("{}", "", {"IPV6_ENABLED": "0"}, DnsSettings(family="V4Only")),
        ("{servers: [10.0.0.1, '[fd00::1]', '::1', '127.0.0.1:5353', '[::1]:54']}", "", {},
         DnsSettings(servers=("10.0.0.1:53", "[fd00::1]:53", "[::1]:53", "127.0.0.1:5353", "[::1]:54"))),
    ],
)  # fmt: skip
def test_settings(
    loaded: Callable[..., Gateway], dns: str, more: str, environ: dict[str, str], wanted: DnsSettings
) -> None:
    assert loaded(config(dns, more), environ=environ).process.dns == wanted


@pytest.mark.parametrize(
    ("dns", "more", "environ", "message"),
    [
        ("{lookupFamily: V4}", "", {}, "config.dns.lookupFamily"),
        ("{lookupFamily: V6Only}", "enableIpv6: false, ", {}, "no name would have an address"),
        ("{}", "", {"DNS_LOOKUP_FAMILY": "four"}, "environment variable DNS_LOOKUP_FAMILY: not one of All, Auto"),
        ("{}", "", {"DNS_EDNS0": "maybe"}, "environment variable DNS_EDNS0: not true or false"),
        ("{servers: [dns.test]}", "", {}, "a name server must be ip or ip:port"),
        ("{servers: ['dns.test:53']}", "", {}, "a name server must be ip or ip:port"),
        ("{servers: ['10.0.0.1:0']}", "", {}, "config.dns.servers[0]"),
        ("{server: 10.0.0.1}", "", {}, "did you mean 'servers'"),
    ],
)
def test_faults(
    faults: Callable[..., list[str]], dns: str, more: str, environ: dict[str, str], message: str
) -> None:
    [line] = faults(config(dns, more), environ=environ)
    assert message in line


@pytest.mark.parametrize("dns", ["{edns0: false}", "{servers: [10.0.0.1]}"])
def test_what_the_c_library_cannot_do_needs_the_extra(
    faults: Callable[..., list[str]], loaded: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch, dns: str
) -> None:
    monkeypatch.setattr(extras, "installed", lambda _module: False)
    [line] = faults(config(dns), environ={})
    assert "needs the library pycares, which is not installed: pip install 'headgate[dns]'" in line
    assert loaded(config("{lookupFamily: All}"), environ={}).process.dns.family == "All"
