"""A Redis server that replicas share: a pool of connections for each worker, and calls in time.

The client is redis-py (the extra `redis`). Errors never contain the password.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import NoScriptError, RedisError

from headgate.ir.shared_state import SharedState

logger = logging.getLogger("headgate.redis")

CLIENT_NAME: Final = "headgate"
# The library would tell the server its name and version. It reads the version from the disk for each connection, which
# holds the loop for up to 8 ms. Older releases know the second form only.
NAMELESS: Final[dict[str, None]] = (
    {"driver_info": None} if importlib.util.find_spec("redis.driver_info") else {"lib_name": None, "lib_version": None}
)


class StoreFailure(Exception):
    """The server did not answer, or not in time; the text says why and has no secret."""


class RedisCalls:
    """A pool of `connections` to a server, whose failures are StoreFailure."""

    def __init__(self, settings: SharedState, connections: int) -> None:
        self._settings = settings
        self._timeout_s = settings.timeout_ms / 1000
        options: dict[str, Any] = {}
        if settings.tls is not None:
            options = {
                "ssl_ca_certs": settings.tls.root, "ssl_certfile": settings.tls.cert, "ssl_keyfile": settings.tls.key,
                "ssl_cert_reqs": "none" if settings.tls.insecure else "required",
                "ssl_check_hostname": not settings.tls.insecure,
            }  # fmt: skip
        pool = BlockingConnectionPool.from_url(
            settings.url.reveal(), max_connections=connections, timeout=self._timeout_s,
            socket_timeout=self._timeout_s, socket_connect_timeout=self._timeout_s, retry=None,
            client_name=CLIENT_NAME, **NAMELESS, **options,
        )  # fmt: skip
        self._client: Redis = Redis(connection_pool=pool)

    @contextlib.asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Give a call the time that it may take. Raises StoreFailure."""
        async with self.failing(), asyncio.timeout(self._timeout_s):
            yield

    @contextlib.asynccontextmanager
    async def failing(self) -> AsyncIterator[None]:
        """Turn what the client and time-outs raise into StoreFailure."""
        try:
            yield
        except TimeoutError:
            raise StoreFailure(f"no answer within {self._settings.timeout_ms} ms") from None
        except (RedisError, OSError, RuntimeError) as error:
            # A connection that ends while the client greets the server on it: uvloop says so by RuntimeError.
            raise StoreFailure(self._told(error)) from None

    def _told(self, error: Exception) -> str:
        """Return the text of an error. A server may repeat in it what it was sent."""
        text = f"{type(error).__name__}: {error}"
        password = self._client.connection_pool.connection_kwargs.get("password")
        return text.replace(password, "...") if password else text

    async def ping(self) -> None:
        """Ask whether the server is there. Raises StoreFailure."""
        async with self.answering():
            await self._client.ping()

    async def aclose(self) -> None:
        """Close the connections."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._client.aclose(close_connection_pool=True)
        except (TimeoutError, RedisError, OSError) as error:
            logger.debug("connections were not closed in order", extra={"error": type(error).__name__})


class RedisStore(RedisCalls):
    """Runs one script at a server. `script` is its text."""

    def __init__(self, settings: SharedState, script: str) -> None:
        super().__init__(settings, settings.max_connections)
        self._script = script
        self._hash: str | None = None

    async def run(self, keys: Sequence[bytes], values: Sequence[int]) -> list[int]:
        """Run the script. Raises StoreFailure; then the script may have run, or may yet."""
        async with self.answering():
            answer = await self._run(keys, values)
        if not isinstance(answer, list) or not all(isinstance(one, int) for one in answer):
            raise StoreFailure("an unexpected response")
        return answer

    async def _run(self, keys: Sequence[bytes], values: Sequence[int]) -> Any:
        if self._hash is not None:
            try:
                return await self._client.evalsha(self._hash, len(keys), *keys, *values)
            except NoScriptError:
                self._hash = None
        self._hash = await self._client.script_load(self._script)
        return await self._client.evalsha(self._hash, len(keys), *keys, *values)
