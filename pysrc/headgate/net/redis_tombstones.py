"""What replicas tell one another has ended, in a Redis server: a key for each name, and word to who listens.

A key holds a digest of the name and expires; names themselves are told only to who listens.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final, NamedTuple

from headgate.ir.shared_state import SharedState
from headgate.net.redis_store import RedisCalls, StoreFailure

# Silence after which the server is asked whether it is still there.
QUIET_S: Final = 5.0
DIGEST_BYTES: Final = 16


class EndedWord(NamedTuple):
    """A name that has ended, and for how long that is kept."""

    name: str
    seconds: int


class RedisTombstones(RedisCalls):
    """Ended names of one kind. `kind` is part of the keys and of the channel's name."""

    def __init__(self, settings: SharedState, kind: str) -> None:
        # One connection more, which listens.
        super().__init__(settings, settings.max_connections + 1)
        self._channel = f"{settings.key_prefix}{kind}"

    def _key(self, name: str) -> str:
        return f"{self._channel}:{hashlib.blake2b(name.encode(), digest_size=DIGEST_BYTES).hexdigest()}"

    async def add(self, name: str, seconds: int) -> None:
        """Note a name for some seconds, and tell who listens. Raises StoreFailure; then it may have been noted."""
        async with self.answering(), self._client.pipeline(transaction=True) as pipeline:
            pipeline.set(self._key(name), 1, ex=seconds)
            pipeline.publish(self._channel, f"{seconds} {name}")
            await pipeline.execute()

    async def restore(self, names: Mapping[str, int]) -> None:
        """Note names again, each for its seconds: the server may have lost its memory. Raises StoreFailure."""
        async with self.answering(), self._client.pipeline(transaction=False) as pipeline:
            for name, seconds in names.items():
                pipeline.set(self._key(name), 1, ex=seconds)
            await pipeline.execute()

    async def has(self, names: Sequence[str]) -> list[bool]:
        """Tell which names have ended. Raises StoreFailure."""
        async with self.answering():
            found = await self._client.mget([self._key(name) for name in names])
        return [one is not None for one in found]

    async def words(self) -> AsyncGenerator[EndedWord | None, None]:
        """Yield None when subscribed, then what is published. Raises StoreFailure when the server is lost."""
        listening = self._client.pubsub()
        try:
            async with self.answering():
                await listening.subscribe(self._channel)
            asked = False
            while True:
                async with self.failing():
                    found = await listening.get_message(timeout=self._timeout_s if asked else QUIET_S)
                    if found is None:
                        if asked:
                            raise StoreFailure("no response to a ping")
                        await listening.ping()
                        asked = True
                        continue
                asked = False
                if found["type"] == "subscribe":
                    yield None
                elif found["type"] == "message":
                    word = _word_of(found["data"])
                    if word is not None:
                        yield word
        finally:
            with contextlib.suppress(StoreFailure):
                async with self.answering():
                    await listening.aclose()  # type: ignore[no-untyped-call]


def _word_of(data: bytes) -> EndedWord | None:
    """Return what was published, None for messages of others."""
    seconds, _, name = data.decode("utf-8", "replace").partition(" ")
    if not (seconds.isascii() and seconds.isdigit() and len(seconds) < 12 and name):
        return None
    return EndedWord(name, int(seconds))
