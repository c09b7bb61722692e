"""HTTP calls for credentials: to token endpoints and metadata services, through the engine's pools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.policy.document_source import DocumentSource
from headgate.policy.cloud.refresher import CredentialError
from headgate_engine.link.client import CallError, HttpClient

CALL_SECONDS: Final = 5.0
MAX_ANSWER: Final = 256 * 1024
FORM: Final = ("content-type", "application/x-www-form-urlencoded")


@dataclass(frozen=True, slots=True)
class CloudResponse:
    """A response. The names of `headers` are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self, name: str) -> dict[str, Any]:
        """Return the body as a JSON object. `name` is the name of the service in errors.

        Raises CredentialError, whose text contains nothing of the body except an OAuth error code (RFC 6749 section
        5.2).
        """
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            found = None
        if self.status != 200:
            code = found.get("error") if isinstance(found, dict) else None
            told = f" ({code[:64]})" if isinstance(code, str) and code.isprintable() else ""
            raise CredentialError(f"{name} answered {self.status}{told}")
        if not isinstance(found, dict):
            raise CredentialError(f"{name} did not answer with a JSON object")
        return found


class Calls:
    """Makes calls with `client(endpoint)`, which returns the HTTP client of the current configuration."""

    def __init__(self, client: Callable[[Endpoint], HttpClient] | None = None) -> None:
        self.client = client

    async def call(
        self,
        method: str,
        url: str,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes | None = None,
        seconds: float = CALL_SECONDS,
    ) -> CloudResponse:
        """Return the response, whatever its status; raises CredentialError if none arrives within `seconds`."""
        if self.client is None:
            raise CredentialError("calls cannot be made yet")
        try:
            source = DocumentSource.remote(url)
        except ValueError:
            raise CredentialError("the address of the token endpoint is not a URL") from None
        assert source.endpoint is not None
        where = source.endpoint.address
        try:
            async with asyncio.timeout(seconds):
                response = await self.client(source.endpoint).request(method, source.path, list(headers), body)
                try:
                    told = await response.read(MAX_ANSWER)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise CredentialError(f"{where} did not answer in time") from None
        except (CallError, ValueError, OSError) as error:
            raise CredentialError(f"{where}: {error}") from None
        return CloudResponse(response.status, {name.lower(): value for name, value in response.headers}, told)
