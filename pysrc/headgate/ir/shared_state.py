"""Where replicas keep the counters that they share."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret

# `share`: each replica spends tokens that it has leased. `exact`: the store makes each decision.
SharedMode = Literal["share", "exact"]
# Without the store: each replica limits by itself, or nothing is let pass.
SharedFailure = Literal["local", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTls:
    """TLS to the store: PEM files, of which those that are None are the system's or not used."""

    root: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedState:
    """A Redis server, or another that speaks its protocol.

    `url` may contain a password; `place` is what may be shown of it. A question that takes longer than `timeout_ms` has
    failed. `local_share` is how much of a limit a replica leases at once, in percent of its capacity. `replicas`: what
    limits are divided by without the store. `key_prefix` stands before the names of keys. `max_connections` is for each
    worker.
    """

    url: Secret
    place: str
    mode: SharedMode = "share"
    failure: SharedFailure = "local"
    timeout_ms: int = 250
    local_share: int = 10
    replicas: int = 1
    key_prefix: str = "headgate:"
    max_connections: int = 4
    tls: SharedTls | None = None
