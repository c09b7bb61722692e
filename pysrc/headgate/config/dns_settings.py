"""`config.dns` and the environment variables that win over it, to DnsSettings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.extras import missing
from headgate.config.shape.process import DNS_FAMILY
from headgate.errors import Problem
from headgate.ir.process import DnsSettings, LookupFamily

# What asks name servers. Without it names are resolved by the C library, which takes no settings.
LIBRARY: Final = "pycares"
AUTO: Final = "Auto"


def _family(text: str) -> str:
    found = DNS_FAMILY.spellings().get(text)
    if found is None:
        raise ValueError(f"not one of {', '.join(DNS_FAMILY.words)}")
    return found


def flag(text: str) -> bool:
    """Parse `true`, `false`, `1` or `0`; raises ValueError."""
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError("not true or false")
    return text.lower() in ("true", "1")


def dns_settings(
    context: Context, process: Record, variable: Callable[[str, Callable[[str], Any]], Any], *, ipv6: bool
) -> DnsSettings:
    """Return how names are resolved. `process` is `config`; `variable` reads the environment."""
    record = process.get("dns") or Record(process.node, "config.dns", {})
    family = variable("DNS_LOOKUP_FAMILY", _family) or record.get("lookupFamily") or AUTO
    edns0 = variable("DNS_EDNS0", flag)
    if edns0 is None:
        edns0 = record.get("edns0")
    servers = tuple(dict.fromkeys(record.get("servers") or ()))
    if family == "V6Only" and not ipv6:
        message = "V6Only is not possible without IPv6 (enableIpv6): no name would have an address"
        context.fault(Problem.CONFLICT, record, "lookupFamily", message)
    if not ipv6:
        family = "V4Only"
    elif family == AUTO:
        family = "V4Preferred"
    for key, value in (("edns0", edns0), ("servers", servers or None)):
        lacking = None if value is None else missing(LIBRARY)
        if lacking is not None:
            context.fault(Problem.ENVIRONMENT, record, key, lacking)
    return DnsSettings(family=cast(LookupFamily, family), edns0=edns0, servers=servers)
