"""Sealed texts: encrypted and authenticated state that a client carries for the gateway.

The cipher is AES-256-GCM (NIST SP 800-38D, https://csrc.nist.gov/pubs/sp/800/38/d/final).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

NONCE_BYTES: Final = 12
KEY_BYTES: Final = 32


class Sealer:
    """Encrypts and decrypts texts with a key of 32 bytes.

    `purpose` is authenticated with every text, so that a text sealed for another purpose cannot be opened.
    """

    def __init__(self, key: bytes, purpose: str) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        self._key = key
        self._purpose = purpose.encode()

    @functools.cached_property
    def _cipher(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # takes 9 MB, so it is imported when first used

        return AESGCM(self._key)

    def stable(self) -> StableSealer:
        """Return what seals with the same key and purpose, equal contents as equal texts."""
        return StableSealer(self._key, self._purpose.decode())

    def seal(self, content: bytes) -> str:
        """Return the encrypted content in URL-safe Base64 without padding."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, content, self._purpose)
        return base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def open(self, text: str | bytes) -> bytes | None:
        """Return the content of a text that was sealed with this key and purpose, None for any other text."""
        from cryptography.exceptions import InvalidTag

        raw = text.encode("ascii", "replace") if isinstance(text, str) else text
        try:
            whole = base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True)
            if base64.urlsafe_b64encode(whole).rstrip(b"=") != raw:
                return None  # another spelling of the same bytes
            return self._cipher.decrypt(whole[:NONCE_BYTES], whole[NONCE_BYTES:], self._purpose)
        except (ValueError, InvalidTag):
            return None


class StableSealer:
    """Encrypts and decrypts texts so that equal contents get equal texts, for ids that must not change.

    The cipher is AES-SIV with 256-bit keys (RFC 5297, https://www.rfc-editor.org/rfc/rfc5297). `key` has 32 bytes, from
    which a key for the purpose is derived.
    """

    def __init__(self, key: bytes, purpose: str) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        self._key = hashlib.blake2b(purpose.encode(), key=key, digest_size=64).digest()

    @functools.cached_property
    def _cipher(self) -> AESSIV:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # imported when first used, like AESGCM

        return AESSIV(self._key)

    def seal(self, content: bytes, context: bytes) -> bytes:
        """Return the encrypted content in URL-safe Base64 without padding. `context` is needed to open it."""
        return base64.urlsafe_b64encode(self._cipher.encrypt(content, [context])).rstrip(b"=")

    def open(self, text: bytes, context: bytes) -> bytes | None:
        """Return the content of a text that was sealed with this key, purpose and context, None for any other text."""
        from cryptography.exceptions import InvalidTag

        try:
            whole = base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
            if base64.urlsafe_b64encode(whole).rstrip(b"=") != text:
                return None  # another spelling of the same bytes
            return self._cipher.decrypt(whole, [context])
        except (ValueError, InvalidTag):
            return None
