"""A fixed credential: for backends, services of policies, and proxies on the way."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.policy.location import Location
from headgate.ir.secret import SecretRef

BEARER = Location()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAuth:
    """A fixed credential, which replaces what the client sent in the same place."""

    key: SecretRef
    location: Location = BEARER
