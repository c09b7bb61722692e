"""A secret with its source."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRef:
    """A secret as it was when the configuration was loaded. `file` is its file, None for an inline secret."""

    secret: Secret
    file: str | None = None
