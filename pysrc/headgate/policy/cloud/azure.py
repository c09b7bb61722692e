"""Tokens of Microsoft Entra. The OAuth requests are made here, because the vendor's library needs half a second to
load.

Client credentials with a secret or an assertion follow RFC 6749 section 4.4 and RFC 7523. Managed identities use the
token endpoints of virtual machines (IMDS) and of app services.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from headgate.document.regular_file import read_regular
from headgate.ir.policy.cloud_auth import AzureAuth
from headgate.policy.cloud.calls import FORM, Calls
from headgate.policy.cloud.refresher import CredentialError, Fetched

OPENAI_SCOPE: Final = "https://cognitiveservices.azure.com/.default"
AUTHORITY: Final = "https://login.microsoftonline.com"
IMDS: Final = "http://169.254.169.254"
IMDS_VERSION: Final = "2018-02-01"
APP_SERVICE_VERSION: Final = "2019-08-01"
ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
TOOL_SECONDS: Final = 5.0
# Of a federated token.
MAX_TOKEN_BYTES: Final = 65_536
# Developer tools: command, and the keys of the token and its expiry (Unix or ISO 8601 time) in the output.
TOOLS: Final = (
    (("az", "account", "get-access-token", "--output", "json", "--scope"), "accessToken", "expires_on"),
    (("azd", "auth", "token", "--output", "json", "--scope"), "token", "expiresOn"),
)


class Entra:
    """Tokens of one identity for one scope."""

    def __init__(
        self, auth: AzureAuth, calls: Calls, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._auth = auth
        self._calls = calls
        self._environ = environ
        self._scope = auth.scope or OPENAI_SCOPE

    async def __call__(self) -> Fetched:
        """Return a new token; raises CredentialError."""
        auth = self._auth
        match auth.kind:
            case "clientSecret":
                assert auth.client is not None
                return await self._secret(auth.client.tenant, auth.client.client, auth.client.secret.reveal())
            case "managedIdentity":
                return await self._managed(auth.identity)
            case "workloadIdentity":
                return await self._workload()
            case "developerImplicit":
                return await self._developer()
            case _:
                return await self._implicit()

    async def _implicit(self) -> Fetched:
        """Return the token of the first identity in the environment, in the order of the vendor's library."""
        names = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")
        tenant, client, secret = (self._environ.get(name) for name in names)
        if tenant and client and secret:
            return await self._secret(tenant, client, secret)
        if self._environ.get("AZURE_FEDERATED_TOKEN_FILE"):
            return await self._workload()
        return await self._managed(("client_id", client) if client else None)

    async def _secret(self, tenant: str, client: str, secret: str) -> Fetched:
        return await self._granted(tenant, {"client_id": client, "client_secret": secret})

    async def _workload(self) -> Fetched:
        names = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE")
        tenant, client, path = (self._environ.get(name) for name in names)
        if not tenant or not client or not path:
            raise CredentialError(f"a workload identity needs {', '.join(names)}")
        try:
            assertion = (await asyncio.to_thread(read_regular, path, MAX_TOKEN_BYTES)).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialError(f"the federated token cannot be read: {type(error).__name__}") from None
        form = {"client_id": client, "client_assertion_type": ASSERTION, "client_assertion": assertion}
        return await self._granted(tenant, form)

    async def _granted(self, tenant: str, form: dict[str, str]) -> Fetched:
        base = (self._environ.get("AZURE_AUTHORITY_HOST") or AUTHORITY).rstrip("/")
        if "://" not in base:
            base = f"https://{base}"
        url = f"{base}/{quote(tenant, safe='')}/oauth2/v2.0/token"
        body = urlencode({"grant_type": "client_credentials", "scope": self._scope, **form}).encode()
        answer = await self._calls.call("POST", url, [FORM, ("accept", "application/json")], body)
        return _token(answer.json("Microsoft Entra"))

    async def _managed(self, identity: tuple[str, str] | None) -> Fetched:
        query = {"resource": self._scope.removesuffix("/.default")}
        endpoint, header = (self._environ.get(name) for name in ("IDENTITY_ENDPOINT", "IDENTITY_HEADER"))
        if endpoint and header:
            if identity is not None:
                name, value = identity
                query["mi_res_id" if name == "msi_res_id" else name] = value
            query["api-version"] = APP_SERVICE_VERSION
            headers = [("x-identity-header", header)]
        else:
            if identity is not None:
                query[identity[0]] = identity[1]
            query["api-version"] = IMDS_VERSION
            base = (self._environ.get("AZURE_POD_IDENTITY_AUTHORITY_HOST") or IMDS).rstrip("/")
            endpoint, headers = f"{base}/metadata/identity/oauth2/token", [("metadata", "true")]
        mark = "&" if "?" in endpoint else "?"
        answer = await self._calls.call("GET", f"{endpoint}{mark}{urlencode(query)}", headers)
        return _token(answer.json("the managed identity endpoint"))

    async def _developer(self) -> Fetched:
        for command, name, until in TOOLS:
            told = await _tool_output(*command, self._scope)
            if told is not None:
                return _token_of_tool(told, name, until)
        raise CredentialError("neither az nor azd is installed and logged in")


def _token(answer: dict[str, Any]) -> Fetched:
    token = answer.get("access_token")
    if not isinstance(token, str) or not token or not token.isascii():
        raise CredentialError("the token endpoint answered without a token")
    try:
        # Managed identities send a string here.
        lives = float(answer.get("expires_in", 3600))
    except (TypeError, ValueError):
        raise CredentialError("the token endpoint answered without an expiry time") from None
    return Fetched(token.encode(), lives)


async def _tool_output(*command: str) -> Any:
    """Return the JSON output of a tool, None if the tool is not installed or fails."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return None
    try:
        async with asyncio.timeout(TOOL_SECONDS):
            out, _ = await process.communicate()
        return json.loads(out) if process.returncode == 0 else None
    except (TimeoutError, ValueError, RecursionError):
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _token_of_tool(told: Any, name: str, until: str) -> Fetched:
    from datetime import datetime

    try:
        token, end = told[name], told.get(until)
        moment = end if isinstance(end, int | float) else datetime.fromisoformat(end).timestamp()
        if not isinstance(token, str):
            raise TypeError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CredentialError("the developer's tool answered without a token") from None
    return Fetched(token.encode(), moment - time.time())
