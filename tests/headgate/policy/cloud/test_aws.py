from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.headgate.policy.cloud.calls_rig import Scripted

from headgate.document.secret import Secret
from headgate.ir.policy.cloud_auth import AwsKeyPair
from headgate.net.tasks import spawn
from headgate.policy.cloud.aws import Ambient, Role, StaticKeys, place_of, role_form
from headgate.policy.cloud.refresher import CredentialError, CredentialRefresher, Fetched
from headgate_drivers.requests import same_keys
from headgate_engine.steps.aws_signature import AwsKeys

PLACES = {
    "bedrock-runtime.us-east-1.amazonaws.com": ("us-east-1", "bedrock"),
    "bedrock-agentcore.eu-west-1.amazonaws.com": ("eu-west-1", "bedrock-agentcore"),
    "abc123.execute-api.ap-southeast-2.amazonaws.com": ("ap-southeast-2", "execute-api"),
    "my.bucket.s3.eu-west-1.amazonaws.com": ("eu-west-1", "s3"),
    "lambda.us-gov-west-1.amazonaws.com": ("us-gov-west-1", "lambda"),
    "x.lambda-url.us-east-1.on.aws": ("us-east-1", "lambda"),
    "search-d-x.eu-central-1.es.amazonaws.com": ("eu-central-1", "es"),
    "vpce-1.execute-api.eu-west-1.vpce.amazonaws.com": ("eu-west-1", "execute-api"),
    "sqs.cn-north-1.amazonaws.com.cn": ("cn-north-1", "sqs"),
    "sts.amazonaws.com": (None, "sts"),
    "example.com": (None, None),
    "127.0.0.1": (None, None),
}


@pytest.mark.parametrize("host", PLACES)
def test_what_a_host_tells(host: str) -> None:
    assert place_of(host) == PLACES[host]


def found(fetch: Any) -> Fetched:
    return asyncio.run(fetch())


def same(fetched: Fetched, access: str, secret: str, token: str | None = None) -> bool:
    assert isinstance(fetched.value, AwsKeys)
    return same_keys(fetched.value, AwsKeys(access.encode(), secret.encode(), None if token is None else token.encode()))


def test_keys_of_the_file_and_of_variables_need_no_library() -> None:
    pair = AwsKeyPair(access=Secret("A"), secret=Secret("B"), token=Secret("C"))
    assert same(found(StaticKeys(pair)), "A", "B", "C")
    environ = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B"}
    assert same(found(Ambient(environ)), "A", "B")
    with pytest.raises(CredentialError):
        found(Ambient({**environ, "AWS_SESSION_TOKEN": "two\nlines"}))


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No credentials of this machine."""
    import os

    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path


def test_without_any_there_is_a_clear_error(alone: Path) -> None:
    with pytest.raises(CredentialError, match="no AWS credentials are configured here"):
        found(Ambient({}))


def test_a_shared_file_is_read_again(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = alone / "credentials"
    path.write_text("[default]\naws_access_key_id = A\naws_secret_access_key = B\n[other]\naws_access_key_id = C\n"
                    "aws_secret_access_key = D\naws_session_token = E\n")  # fmt: skip
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    ambient = Ambient({})
    fetched = found(ambient)
    assert same(fetched, "A", "B")
    assert fetched.times()[0] == 300
    path.write_text("[default]\naws_access_key_id = X\naws_secret_access_key = Y\n")
    assert same(found(ambient), "X", "Y")
    path.write_text("[default]\n[other]\naws_access_key_id = C\naws_secret_access_key = D\naws_session_token = E\n")
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert same(found(Ambient({})), "C", "D", "E")
    monkeypatch.setenv("AWS_PROFILE", "none")
    with pytest.raises(CredentialError, match="ProfileNotFound"):
        found(Ambient({}))


def test_a_process_may_give_keys_that_run_out(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    until = (datetime.now(UTC) + timedelta(minutes=20)).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "B", "SessionToken": "C", "Expiration": until}
    (alone / "told.json").write_text(json.dumps(told))
    script = alone / "tool.py"
    script.write_text(f"print(open({str(alone / 'told.json')!r}).read())")
    (alone / "config").write_text(f"[default]\ncredential_process = {sys.executable} {script}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(alone / "config"))
    fetched = found(Ambient({}))
    assert same(fetched, "A", "B", "C")
    assert (fetched.lives_s, fetched.times()[0]) == (900, 60)


ASSUMED = {"AssumeRoleResponse": {"AssumeRoleResult": {"Credentials": {
    "AccessKeyId": "R", "SecretAccessKey": "S", "SessionToken": "T", "Expiration": 4102444800.0}}}}  # fmt: skip


def assumed(calls: Scripted, region: str | None = None) -> Fetched:
    async def main() -> Fetched:
        base = CredentialRefresher("base", StaticKeys(AwsKeyPair(access=Secret("A"), secret=Secret("B"))), spawn)
        return await Role(base, calls, role_form("arn:role", "me", (("k", "v"),)), region)()

    return asyncio.run(main())


def test_a_role(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_STS", raising=False)
    calls = Scripted((200, ASSUMED))
    fetched = assumed(calls, "eu-west-1")
    assert same(fetched, "R", "S", "T")
    assert fetched.lives_s > 86400
    [(method, url, headers, form)] = calls.seen
    assert (method, url) == ("POST", "https://sts.eu-west-1.amazonaws.com")
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=A/")
    assert "/eu-west-1/sts/aws4_request" in headers["authorization"]
    assert form == {"Action": "AssumeRole", "Version": "2011-06-15", "RoleArn": "arn:role", "RoleSessionName": "me",
                    "Tags.member.1.Key": "k", "Tags.member.1.Value": "v"}  # fmt: skip
    calls = Scripted((200, ASSUMED))
    assumed(calls, "cn-north-1")
    assert calls.seen[0][1] == "https://sts.cn-north-1.amazonaws.com.cn"


@pytest.mark.parametrize(
    ("status", "told", "error"),
    [
        (403, {"Error": {"Code": "AccessDenied", "Message": "CANARY"}}, "answered 403 \\(AccessDenied\\)"),
        (403, b"<ErrorResponse><Error><Code>ExpiredToken</Code></Error></ErrorResponse>", "\\(ExpiredToken\\)"),
        (500, b"CANARY", "no reason given"),
        (403, {"Error": {"Code": "CANARY CANARY"}}, "no reason given"),
        (200, {}, "without credentials"),
        (200, b"CANARY", "a JSON object"),
    ],
)
def test_an_answer_of_the_token_service_that_is_no_good(status: int, told: Any, error: str) -> None:
    with pytest.raises(CredentialError, match=error) as caught:
        assumed(Scripted((status, told)))
    assert "CANARY" not in str(caught.value)
