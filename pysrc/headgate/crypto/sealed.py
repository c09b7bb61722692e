"""Sealed texts: what only this gateway can make and read, carried by a client. AES-256-GCM (NIST SP 800-38D)."""

from __future__ import annotations

import base64
import functools
import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE_BYTES: Final = 12
KEY_BYTES: Final = 32


class Sealer:
    """`key`: 32 bytes. `purpose` is bound into every text: one made for another purpose cannot be opened."""

    def __init__(self, key: bytes, purpose: str) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        self._key = key
        self._purpose = purpose.encode()

    @functools.cached_property
    def _cipher(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 9 MB: only where something is sealed

        return AESGCM(self._key)

    def seal(self, content: bytes) -> str:
        """Return a text of URL-safe characters without padding."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, content, self._purpose)
        return base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def open(self, text: str | bytes) -> bytes | None:
        """Return the content of a text that was sealed here for this purpose, None for any other text."""
        from cryptography.exceptions import InvalidTag

        raw = text.encode("ascii", "replace") if isinstance(text, str) else text
        try:
            whole = base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True)
            return self._cipher.decrypt(whole[:NONCE_BYTES], whole[NONCE_BYTES:], self._purpose)
        except (ValueError, InvalidTag):
            return None
