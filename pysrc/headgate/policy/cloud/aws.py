"""AWS keys: from the configuration, from the environment, or from any other source that botocore knows.

botocore is loaded only if the keys are not in the configuration or in environment variables. It runs in threads,
because it blocks on files, processes and services.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from headgate.ir.policy.cloud_auth import AwsKeyPair
from headgate.policy.cloud.calls import FORM, Calls
from headgate.policy.cloud.refresher import CredentialError, CredentialRefresher, Fetched, silence
from headgate_engine.steps.aws_signature import AwsKeys, sign

# Keys without an expiry are read again after this time, because their file may have changed.
LOOK_AGAIN_SECONDS: Final = 300.0
FOR_EVER: Final = 10.0 * 365 * 86400
# botocore only reveals whether keys remain valid for longer than a given number of seconds.
STEPS: Final = (3600, 900, 300, 60, 10)
STS_VERSION: Final = "2011-06-15"
STS_REGION: Final = "us-east-1"
DOMAINS: Final = (".amazonaws.com", ".amazonaws.com.cn", ".on.aws", ".api.aws")
REGION: Final = re.compile(r"[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}")
# Host name label to the name of the service in signatures, where they differ.
SIGNING_NAMES: Final = {
    "bedrock-runtime": "bedrock",
    "bedrock-agent": "bedrock",
    "bedrock-agent-runtime": "bedrock",
    "bedrock-data-automation-runtime": "bedrock",
    "lambda-url": "lambda",
    "email": "ses",
    "data.iot": "iotdata",
}


def place_of(host: str) -> tuple[str | None, str | None]:
    """Return the AWS region and the signing name of the service that a host name contains; None for a missing part.

    Source: https://docs.aws.amazon.com/general/latest/gr/rande.html
    """
    name = host.lower().rstrip(".")
    domain = next((one for one in DOMAINS if name.endswith(one)), None)
    if domain is None:
        return None, None
    labels = name.removesuffix(domain).split(".")
    at = next((index for index, label in enumerate(labels) if REGION.fullmatch(label)), None)
    if at is None:
        service = labels[-1]
        return None, SIGNING_NAMES.get(service, service)
    # The service is the last label in `search-x.eu-west-1.es`, but not in `vpce-1.execute-api.eu-west-1.vpce`.
    last = labels[-1]
    service = last if at < len(labels) - 1 and last != "vpce" else labels[at - 1] if at else ""
    return labels[at], SIGNING_NAMES.get(service, service) or None


def region_of(environ: Mapping[str, str]) -> str | None:
    """Return the AWS region that the environment variables set, None without one."""
    return environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or None


def _keys(access: str, secret: str, token: str | None) -> AwsKeys:
    try:
        return AwsKeys(access.encode(), secret.encode(), token.encode() if token else None)
    except ValueError as error:
        raise CredentialError(str(error)) from None


class StaticKeys:
    """Keys from the configuration."""

    def __init__(self, pair: AwsKeyPair) -> None:
        self._pair = pair

    async def __call__(self) -> Fetched:
        """Return the keys."""
        pair = self._pair
        token = None if pair.token is None else pair.token.reveal()
        return Fetched(_keys(pair.access.reveal(), pair.secret.reveal(), token), FOR_EVER, FOR_EVER)


class Ambient:
    """Keys from the environment: variables, shared files, processes, web identity, containers, instances."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._found: Any = None

    async def __call__(self) -> Fetched:
        """Return the keys of the first source that has some; raises CredentialError if no source has any."""
        access, secret = (self._environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
        if access and secret:
            return Fetched(_keys(access, secret, self._environ.get("AWS_SESSION_TOKEN")), FOR_EVER, FOR_EVER)
        return await asyncio.to_thread(self._look)

    def _look(self) -> Fetched:
        # Imported late: botocore is large and slow to load.
        from botocore.credentials import RefreshableCredentials
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.session import Session

        silence("botocore", "urllib3")
        try:
            if not isinstance(self._found, RefreshableCredentials):
                # Keys that botocore does not refresh may have changed at their source.
                self._found = Session().get_credentials()
            if self._found is None:
                raise CredentialError("no AWS credentials are configured here")
            frozen = self._found.get_frozen_credentials()
        except (BotoCoreError, ClientError, OSError, ValueError, KeyError) as error:
            raise CredentialError(f"{type(error).__name__}: {error}"[:300]) from None
        keys = _keys(frozen.access_key, frozen.secret_key, frozen.token)
        if not isinstance(self._found, RefreshableCredentials):
            return Fetched(keys, FOR_EVER, LOOK_AGAIN_SECONDS)
        lives = next((step for step in STEPS if not self._found.refresh_needed(step)), 0)
        return Fetched(keys, float(lives), min(60.0, lives / 2))


class Role:
    """Keys of a role from AssumeRole of the Security Token Service, signed with the keys of `base`.

    Source: https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
    """

    def __init__(self, base: CredentialRefresher, calls: Calls, form: Mapping[str, str], region: str | None) -> None:
        self._base = base
        self._calls = calls
        self._form = form
        self._region = region or STS_REGION

    async def __call__(self) -> Fetched:
        """Return new keys; raises CredentialError."""
        await self._base.wait()
        keys = self._base.held.value
        assert isinstance(keys, AwsKeys)
        body = urlencode({"Action": "AssumeRole", "Version": STS_VERSION, **self._form}).encode()
        url = os.environ.get("AWS_ENDPOINT_URL_STS") or (
            f"https://sts.{self._region}.amazonaws.com{'.cn' if self._region.startswith('cn-') else ''}"
        )
        place = urlsplit(url)
        headers = [FORM, ("accept", "application/json")]
        signed = sign(
            "POST", place.path or "/", place.netloc, headers, body, keys, region=self._region, service="sts"
        )
        answer = await self._calls.call("POST", url, signed, body)
        if answer.status != 200:
            raise CredentialError(f"AWS STS answered {answer.status} ({_error_code(answer.body)})")
        return _assumed(answer.json("AWS STS"))


def _error_code(body: bytes) -> str:
    """Return the error code of an STS response, which is JSON or, despite the Accept header, XML."""
    try:
        told = json.loads(body)["Error"]["Code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = re.search(rb"<Code>([A-Za-z0-9.]{1,64})</Code>", body)
        return found[1].decode() if found else "no reason given"
    return told if isinstance(told, str) and re.fullmatch(r"[A-Za-z0-9.]{1,64}", told) else "no reason given"


def _assumed(answer: dict[str, Any]) -> Fetched:
    try:
        found = answer["AssumeRoleResponse"]["AssumeRoleResult"]["Credentials"]
        told = found["Expiration"]
        keys = _keys(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])
        # JSON responses have a Unix time, others an ISO 8601 time.
        until = float(told) if isinstance(told, int | float) else _moment(told)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CredentialError("AWS STS answered without credentials") from None
    return Fetched(keys, until - datetime.now(UTC).timestamp())


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def role_form(arn: str, session: str, tags: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the form parameters of AssumeRole."""
    form = {"RoleArn": arn, "RoleSessionName": session}
    for index, (key, value) in enumerate(tags, start=1):
        form[f"Tags.member.{index}.Key"] = key
        form[f"Tags.member.{index}.Value"] = value
    return form
