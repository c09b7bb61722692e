from typing import Any

class VerifiedToken:
    """C face only."""

class VerifiedTokens:
    """Tokens whose signatures a key set has verified: at most 16,384, and 32 MiB of them; of more the oldest quarter is
    forgotten, and each when it expires.
    """

    def claims(self, token: bytes) -> dict[str, Any] | None:
        """Return the claims of a token that was verified, whatever they say; None when it is not known any more."""
    def remember(self, token: bytes, claims: dict[str, Any], checks: object, seconds: float) -> None:
        """Note that the claims of a verified token have passed `checks`, which counts for that object alone. A token
        that is known already keeps the time it has; one that has none left is not kept.
        """
    def clear(self) -> None:
        """Forget all: the keys have changed."""
    def __len__(self) -> int: ...
    @property
    def bytes_kept(self) -> int: ...
