"""AWS Signature Version 4 in headers (AWS General Reference, "Create a signed AWS API request")."""

from __future__ import annotations

import configparser
import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from headgate.document.secret import Secret

ALGORITHM: Final = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsCredentials:
    """Key id, secret key, and the token of temporary credentials."""

    access: Secret
    secret: Secret
    token: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """What is signed. `path` and `query` as they are sent; `headers`: more that are signed, names in lower case."""

    method: str
    host: str
    path: str
    body: bytes
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _canonical_query(query: str) -> str:
    pairs = [part.partition("=") for part in query.split("&") if part]
    return "&".join(f"{name}={value}" for name, _, value in sorted(pairs))


def sign(
    signed: Signed, credentials: AwsCredentials, *, region: str, service: str, now: float | None = None
) -> list[tuple[str, str]]:
    """Return the headers that sign a request, `x-amz-date` among them. The path is encoded once more, as all services
    but S3 want it."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    added = [("x-amz-date", stamp)]
    if credentials.token is not None:
        added.append(("x-amz-security-token", credentials.token.reveal()))
    headers = sorted([("host", signed.host), *signed.headers, *added])
    names = ";".join(name for name, _ in headers)
    canonical = "\n".join(
        (
            signed.method,
            quote(signed.path or "/", safe="/-_.~"),
            _canonical_query(signed.query),
            "".join(f"{name}:{' '.join(value.split())}\n" for name, value in headers),
            names,
            hashlib.sha256(signed.body).hexdigest(),
        )
    )
    text = "\n".join((ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = b"AWS4" + credentials.secret.reveal_bytes()
    for part in (stamp[:8], region, service, "aws4_request"):
        key = _hmac(key, part)
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    value = (
        f"{ALGORITHM} Credential={credentials.access.reveal()}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return [*added, ("authorization", value)]


def ambient_credentials(environ: Mapping[str, str]) -> AwsCredentials | None:
    """Return the credentials of the environment: its variables, else the shared file; None without any."""
    access, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    if access and secret:
        return _credentials(access, secret, environ.get("AWS_SESSION_TOKEN"))
    home = environ.get("HOME", "")
    path = environ.get("AWS_SHARED_CREDENTIALS_FILE") or (f"{home}/.aws/credentials" if home else "")
    if not path:
        return None
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(Path(path).read_text())
        section = parser[environ.get("AWS_PROFILE") or "default"]
    except (OSError, UnicodeDecodeError, configparser.Error, KeyError):
        return None
    access, secret = section.get("aws_access_key_id"), section.get("aws_secret_access_key")
    return _credentials(access, secret, section.get("aws_session_token")) if access and secret else None


def _credentials(access: str, secret: str, token: str | None) -> AwsCredentials:
    return AwsCredentials(access=Secret(access), secret=Secret(secret), token=Secret(token) if token else None)
