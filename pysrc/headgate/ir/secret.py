"""A secret with the place it came from."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRef:
    """`secret` as read when the configuration was loaded; `file` names its file, None when it was inline."""

    secret: Secret
    file: str | None = None
