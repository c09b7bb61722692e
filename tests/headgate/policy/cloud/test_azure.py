from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from tests.headgate.policy.cloud.calls_rig import Scripted

from headgate.document.secret import Secret
from headgate.ir.policy.cloud_auth import AzureAuth, AzureClient
from headgate.policy.cloud.azure import ASSERTION, Entra
from headgate.policy.cloud.refresher import CredentialError, Fetched

TOKEN = (200, {"access_token": "T", "expires_in": 3599, "token_type": "Bearer"})
OPENAI = "https://cognitiveservices.azure.com/.default"
APP = {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s"}


def token(auth: AzureAuth, calls: Scripted, environ: Mapping[str, str] | None = None) -> Fetched:
    return asyncio.run(Entra(auth, calls, environ or {})())


def test_a_client_with_a_secret() -> None:
    calls = Scripted(TOKEN)
    auth = AzureAuth(kind="clientSecret", client=AzureClient(tenant="t", client="c", secret=Secret("s")))
    assert token(auth, calls) == Fetched(b"T", 3599)
    [(method, url, headers, form)] = calls.seen
    assert (method, url) == ("POST", "https://login.microsoftonline.com/t/oauth2/v2.0/token")
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert form == {"grant_type": "client_credentials", "scope": OPENAI, "client_id": "c", "client_secret": "s"}


def test_a_workload_identity_reads_its_assertion_anew(tmp_path: Path) -> None:
    path = tmp_path / "token"
    environ = {**APP, "AZURE_FEDERATED_TOKEN_FILE": str(path), "AZURE_AUTHORITY_HOST": "login.test/"}
    auth = AzureAuth(kind="workloadIdentity", scope="https://ai.azure.com/.default")
    calls = Scripted(TOKEN)
    with pytest.raises(CredentialError, match="cannot be read: FileNotFoundError"):
        token(auth, calls, environ)
    for text in ("one", "two"):
        path.write_text(text + "\n")
        token(auth, calls, environ)
        _, url, _, form = calls.seen[-1]
        assert url == "https://login.test/t/oauth2/v2.0/token"
        assert form == {"grant_type": "client_credentials", "scope": "https://ai.azure.com/.default", "client_id": "c",
                        "client_assertion_type": ASSERTION, "client_assertion": text}  # fmt: skip
    with pytest.raises(CredentialError, match="needs AZURE_TENANT_ID"):
        token(auth, calls)


@pytest.mark.parametrize(
    ("identity", "environ", "place", "query", "header"),
    [
        (None, {}, "http://169.254.169.254/metadata/identity/oauth2/token", {"api-version": "2018-02-01"}, "metadata"),
        (("msi_res_id", "/r"), {}, "http://169.254.169.254/metadata/identity/oauth2/token",
         {"msi_res_id": "/r", "api-version": "2018-02-01"}, "metadata"),
        (("msi_res_id", "/r"), {"IDENTITY_ENDPOINT": "http://127.0.0.1:41/msi", "IDENTITY_HEADER": "h"}, "http://127.0.0.1:41/msi",
         {"mi_res_id": "/r", "api-version": "2019-08-01"}, "x-identity-header"),
    ],
)  # fmt: skip
def test_managed_identities(identity: Any, environ: Any, place: str, query: dict[str, str], header: str) -> None:
    calls = Scripted((200, {"access_token": "T", "expires_in": "86399"}))
    assert token(AzureAuth(kind="managedIdentity", identity=identity), calls, environ) == Fetched(b"T", 86399)
    [(method, url, headers, _)] = calls.seen
    parts = urlsplit(url)
    assert (method, f"{parts.scheme}://{parts.netloc}{parts.path}") == ("GET", place)
    assert dict(parse_qsl(parts.query)) == {"resource": "https://cognitiveservices.azure.com", **query}
    assert header in headers


def test_what_the_environment_has_decides(tmp_path: Path) -> None:
    calls = Scripted(TOKEN)
    token(AzureAuth(), calls, APP)
    assert calls.seen[-1][3]["client_secret"] == "s"
    (tmp_path / "token").write_text("a")
    identity = {name: APP[name] for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID")}
    token(AzureAuth(), calls, {**identity, "AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "token")})
    assert calls.seen[-1][3]["client_assertion"] == "a"
    token(AzureAuth(), calls, identity)
    assert "client_id=c" in calls.seen[-1][1]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((401, {"error": "invalid_client", "error_description": "CANARY"}), "answered 401 \\(invalid_client\\)"),
        ((500, b"CANARY"), "answered 500"),
        ((200, {}), "without a token"),
        ((200, {"access_token": "t\u00e9", "expires_in": 1}), "without a token"),
        ((200, {"access_token": "t", "expires_in": "soon"}), "without an expiry time"),
        ((200, [1]), "a JSON object"),
    ],
)
def test_answers_that_are_no_good(answer: Any, error: str) -> None:
    auth = AzureAuth(kind="clientSecret", client=AzureClient(tenant="t", client="c", secret=Secret("s")))
    with pytest.raises(CredentialError, match=error) as caught:
        token(auth, Scripted(answer))
    assert "CANARY" not in str(caught.value)


def test_the_developer_s_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    auth = AzureAuth(kind="developerImplicit")

    def tool(name: str, told: Any) -> None:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho '{json.dumps(told)}'\n" if told is not None else "#!/bin/sh\nexit 1\n")
        path.chmod(0o755)

    tool("az", None)
    with pytest.raises(CredentialError, match="neither az nor azd"):
        token(auth, Scripted(TOKEN))
    tool("azd", {"token": "D", "expiresOn": "2100-01-01T00:00:00Z"})
    assert token(auth, Scripted(TOKEN)).value == b"D"
    tool("az", {"accessToken": "A", "expires_on": 4102444800})
    fetched = token(auth, Scripted(TOKEN))
    assert fetched.value == b"A"
    assert fetched.lives_s > 86400
    tool("az", {"accessToken": 1})
    with pytest.raises(CredentialError, match="without a token"):
        token(auth, Scripted(TOKEN))
