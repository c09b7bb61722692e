"""A type for secrets that keeps them from being printed or logged by accident."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NoReturn

REDACTED: Final = "<redacted>"

# A random key per process, so that fingerprints can be compared within the process, but do not help to guess a secret.
_FINGERPRINT_KEY: Final = secrets.token_bytes(32)
_MAY_TRAVEL: Final[ContextVar[bool]] = ContextVar("headgate_secrets_may_travel", default=False)


@contextmanager
def private_channel() -> Iterator[None]:
    """Allow secrets to be pickled inside the block. Use it only for the transfer between supervisor and worker.

    Only pickling needs this permission; unpickling is always allowed.
    """
    token = _MAY_TRAVEL.set(True)
    try:
        yield
    finally:
        _MAY_TRAVEL.reset(token)


class Secret:
    """A text that shows as `<redacted>` wherever it is printed, formatted, logged or dumped.

    Only `reveal()` and `reveal_bytes()` return the text. The time of a comparison does not depend on the content of
    texts of equal length. Pickling raises TypeError outside `private_channel()`. Copying returns the object itself.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text. The caller must not store, log or format it."""
        return self._text

    def reveal_bytes(self) -> bytes:
        """Return the text as UTF-8."""
        return self._text.encode()

    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits that are equal for equal secrets of this process and reveal nothing else."""
        return hmac.new(_FINGERPRINT_KEY, self.reveal_bytes(), hashlib.sha256).hexdigest()[:16]

    def __repr__(self) -> str:
        return REDACTED

    def __str__(self) -> str:
        return REDACTED

    def __format__(self, spec: str) -> str:
        return REDACTED

    def __len__(self) -> NoReturn:
        raise TypeError("the length of a secret is a secret")

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.reveal_bytes(), other.reveal_bytes())

    def __hash__(self) -> int:
        return hash((Secret, self.fingerprint()))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Secret:
        return self

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        if not _MAY_TRAVEL.get():
            raise TypeError("a secret leaves its process only through private_channel()")
        return Secret, (self._text,)

    def __getstate__(self) -> NoReturn:
        raise TypeError("a secret leaves its process only through private_channel()")
