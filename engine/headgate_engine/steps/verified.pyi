from typing import Any

class VerifiedToken:
    """A verified token. Only C code uses it."""

class VerifiedTokens:
    """Tokens whose signatures a key set has verified: at most 16,384, and 32 MiB of them.

    Tokens are removed when they expire. If there is no room, the oldest quarter is removed.
    """

    def claims(self, token: bytes) -> dict[str, Any] | None:
        """Return the claims of a verified token, whatever they are. None if it is unknown or has expired."""
    def remember(self, token: bytes, claims: dict[str, Any], checks: object, seconds: float) -> None:
        """Record that the claims of a verified token have passed `checks`, compared by identity.

        seconds: how long; 0 or less records nothing. A token that is already known keeps its time.
        """
    def clear(self) -> None:
        """Remove all tokens, as the keys have changed."""
    def __len__(self) -> int: ...
