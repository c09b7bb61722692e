"""A fixed credential for backends, services that policies call, and proxies."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.policy.location import Location
from headgate.ir.secret import SecretRef

BEARER = Location()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAuth:
    """A fixed credential. It replaces a credential that the client has sent in the same location."""

    key: SecretRef
    location: Location = BEARER
