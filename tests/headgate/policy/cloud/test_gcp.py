from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.headgate.policy.cloud.calls_rig import Scripted

from headgate.document.secret import Secret
from headgate.ir.policy.cloud_auth import GcpAuth
from headgate.ir.secret import SecretRef
from headgate.policy.cloud.gcp import Google
from headgate.policy.cloud.refresher import CredentialError, Fetched

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()
SERVICE = {"type": "service_account", "project_id": "p", "private_key_id": "k", "private_key": PEM, "client_email": "a@b.c",
           "client_id": "1", "token_uri": "https://token.test/t"}  # fmt: skip
TOKEN = (200, {"access_token": "T", "expires_in": 3600, "token_type": "Bearer"})


def auth(document: Any, **more: Any) -> GcpAuth:
    return GcpAuth(credential=SecretRef(secret=Secret(json.dumps(document))), **more)


def token(found: GcpAuth, calls: Scripted) -> Fetched:
    return asyncio.run(Google(found, calls)())


def test_a_service_account_signs_for_its_token() -> None:
    calls = Scripted(TOKEN)
    fetched = token(auth(SERVICE), calls)
    assert fetched.value == b"T"
    assert 3500 < fetched.lives_s <= 3600
    [(method, url, _, form)] = calls.seen
    assert (method, url) == ("POST", "https://token.test/t")
    claims = jwt.decode(form["assertion"], KEY.public_key(), algorithms=["RS256"], audience="https://oauth2.googleapis.com/token")
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"


def test_its_id_token_is_for_an_audience() -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 4102444800}).encode()).decode().rstrip("=")
    calls = Scripted((200, {"id_token": f"e30.{claims}.c2ln"}))
    assert token(auth(SERVICE, kind="idToken", audience="https://it"), calls).value.startswith(b"e30.")  # type: ignore[union-attr]
    asked = jwt.decode(calls.seen[0][3]["assertion"], options={"verify_signature": False})
    assert asked["target_audience"] == "https://it"


def test_an_authorized_user_refreshes() -> None:
    user = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
    calls = Scripted(TOKEN)
    assert token(auth(user), calls).value == b"T"
    [(_, url, _, form)] = calls.seen
    assert url == "https://oauth2.googleapis.com/token"
    assert form["refresh_token"] == "r"
    with pytest.raises(CredentialError, match="give no ID tokens"):
        token(auth(user, kind="idToken", audience="x"), calls)


def test_an_external_account_exchanges_its_token(tmp_path: Path) -> None:
    (tmp_path / "subject").write_text("subject")
    outside = {
        "type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": "https://sts.googleapis.com/v1/token",
        "credential_source": {"file": str(tmp_path / "subject")},
    }  # fmt: skip
    calls = Scripted((200, {"access_token": "T", "expires_in": 3600, "token_type": "Bearer",
                            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}))  # fmt: skip
    assert token(auth(outside), calls).value == b"T"
    asked = [form for _, url, _, form in calls.seen if url == outside["token_url"]]
    assert [form["subject_token"] for form in asked] == ["subject"] * len(asked) != []


def test_the_library_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(1):
        token(auth(SERVICE), Scripted((200, {"access_token": "CANARY", "expires_in": 3600})))
    assert "CANARY" not in caplog.text


@pytest.mark.parametrize("answer", [(400, {"error": "invalid_grant", "error_description": "CANARY"}), (200, {}), (200, b"CANARY")])
def test_answers_that_are_no_good(answer: Any) -> None:
    with pytest.raises(CredentialError) as caught:
        token(auth(SERVICE), Scripted(answer))
    assert "CANARY" not in str(caught.value)


def test_a_key_that_is_none() -> None:
    with pytest.raises(CredentialError) as caught:
        token(auth(SERVICE | {"private_key": "CANARY"}), Scripted(TOKEN))
    assert "CANARY" not in str(caught.value)
