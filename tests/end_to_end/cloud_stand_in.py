"""The clouds' token endpoints and metadata services on loopback, and the check of a signature by the vendor's signer."""

from __future__ import annotations

import base64
import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest import mock
from urllib.parse import parse_qs, urlsplit

from botocore import auth as vendor
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from tests.end_to_end.provider_stand_in import Asked

Key = tuple[str, str, str | None]
# What the container's endpoint gives, and what a role's session has.
CONTAINER: Key = ("ASIACONTAINER", "CANARY-container-secret", "CANARY-container-token")
GOOGLE = "/computeMetadata/v1/"


def role_key(session: str) -> Key:
    """The keys that the stand-in of STS gives to a session."""
    return f"ASIA{session.upper()}", f"CANARY-secret-of-{session}", f"CANARY-token-of-{session}"


def verify(asked: Asked, key: Key, region: str, service: str, scheme: str = "http") -> None:
    """The signature of a request is what the vendor's own signer makes of it."""
    access, secret, token = key
    told = asked.headers["authorization"]
    assert told.startswith(f"AWS4-HMAC-SHA256 Credential={access}/"), told
    names = told.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    for name in ("host", "x-amz-date", *(["content-type"] if "content-type" in asked.headers else [])):
        assert name in names
    assert all(name in names for name in asked.headers if name.startswith("x-amz-"))
    assert asked.headers.get("x-amz-security-token") == token
    request = AWSRequest(asked.method, f"{scheme}://{asked.headers['host']}{asked.path}", data=asked.body)
    for name in names:
        if name not in ("host", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"):
            request.headers[name] = asked.headers[name]
    kind: Any = vendor.S3SigV4Auth if service == "s3" else vendor.SigV4Auth
    moment = datetime.strptime(asked.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - moment).total_seconds()) < 60
    with mock.patch.object(vendor, "get_current_datetime", return_value=moment):
        kind(Credentials(access, secret, token), service, region).add_auth(request)
    assert told == request.headers["Authorization"]


class Clouds:
    """All of them at one port. `seen`: what they were asked; `lives`: of tokens, in seconds; `down`: they answer 500."""

    def __init__(self) -> None:
        self.seen: list[Asked] = []
        self.lives = 3600
        self.down = False
        self.lock = threading.Lock()
        self.gate = threading.Event()        # tokens of the client "slow" wait for it
        clouds = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_ANY(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, self.path, headers, body)
                with clouds.lock:
                    clouds.seen.append(asked)
                status, told = (500, {"error": "server_error"}) if clouds.down else clouds.answer(asked)
                raw = told.encode() if isinstance(told, str) else json.dumps(told).encode()
                self.send_response(status)
                self.send_header("content-type", "application/text" if isinstance(told, str) else "application/json")
                self.send_header("metadata-flavor", "Google")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_PUT = do_ANY

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self, folder: Any) -> dict[str, str]:
        """What leads a gateway here, and away from everything else of this machine."""
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.url}/aws-container",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": "CANARY-container-bearer",
            "AWS_ENDPOINT_URL_STS": f"{self.url}/sts",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": "eu-central-1",
            "AZURE_AUTHORITY_HOST": self.url,
            "AZURE_POD_IDENTITY_AUTHORITY_HOST": self.url,
            "GCE_METADATA_HOST": f"127.0.0.1:{self.port}",
            "GCE_METADATA_IP": f"127.0.0.1:{self.port}",
            "GOOGLE_CLOUD_PROJECT": "p1",
            "HOME": str(folder),
            "CLOUDSDK_CONFIG": str(folder),
        }

    def asked(self, start: str) -> list[Asked]:
        """What was asked at paths that begin so."""
        with self.lock:
            return [one for one in self.seen if one.path.startswith(start)]

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """Status and what is told: text as it is, everything else as JSON."""
        place = urlsplit(asked.path)
        form = {name: values[0] for name, values in parse_qs(asked.body.decode("latin-1")).items()}
        query = {name: values[0] for name, values in parse_qs(place.query).items()}
        until = datetime.now(UTC) + timedelta(seconds=self.lives)
        if place.path == "/aws-container":
            if asked.headers.get("authorization") != "CANARY-container-bearer":
                return 403, {}
            access, secret, token = CONTAINER
            return 200, {"AccessKeyId": access, "SecretAccessKey": secret, "Token": token,
                         "Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ")}  # fmt: skip
        if place.path in ("", "/"):
            return 200, "ok"        # what tells that this is Google's metadata service
        if place.path == "/sts":
            return self._role(asked, form, until)
        if place.path.startswith(GOOGLE):
            return self._google(asked, place.path.removeprefix(GOOGLE), query)
        if place.path == "/google-token":
            return 200, {"access_token": f"google-{form['grant_type'].rpartition(':')[2]}", "expires_in": self.lives,
                         "token_type": "Bearer", "id_token": unsigned({"aud": "x", "exp": int(until.timestamp())})}  # fmt: skip
        if place.path.endswith("/oauth2/v2.0/token"):
            if form["client_id"] == "short":
                # A token that tells which one it is, and soon ends.
                return 200, {"access_token": f"entra-{len(self.asked('/short/'))}", "expires_in": 1}
            if form["client_id"] == "slow":
                self.gate.wait(100)
            if form.get("client_secret") == "wrong":
                return 401, {"error": "invalid_client", "error_description": "CANARY-description"}
            return 200, {"access_token": f"entra-{form['client_id']}-{form['scope']}", "expires_in": self.lives}
        if place.path == "/metadata/identity/oauth2/token":
            assert asked.headers["metadata"] == "true"
            who = next((query[name] for name in ("client_id", "object_id", "msi_res_id") if name in query), "system")
            return 200, {"access_token": f"managed-{who}-{query['resource']}", "expires_in": str(self.lives)}
        return 404, {}

    def _role(self, asked: Asked, form: dict[str, str], until: datetime) -> tuple[int, Any]:
        verify(asked, CONTAINER, "eu-central-1" if "eu-central-1" in asked.headers["authorization"] else "us-east-1", "sts")
        if "forbidden" in form["RoleArn"]:
            return 403, {"Error": {"Code": "AccessDenied", "Message": "CANARY-message"}}
        access, secret, token = role_key(form["RoleSessionName"])
        keys = {"AccessKeyId": access, "SecretAccessKey": secret, "SessionToken": token,
                "Expiration": until.timestamp()}  # fmt: skip
        return 200, {"AssumeRoleResponse": {"AssumeRoleResult": {"Credentials": keys}}}

    def _google(self, asked: Asked, path: str, query: dict[str, str]) -> tuple[int, Any]:
        assert asked.headers["metadata-flavor"] == "Google"
        if path.endswith("/token"):
            return 200, {"access_token": "google-metadata", "expires_in": self.lives, "token_type": "Bearer"}
        if path.endswith("/identity"):
            until = int(datetime.now(UTC).timestamp()) + self.lives
            return 200, unsigned({"aud": query["audience"], "exp": until})
        if path.startswith("instance/service-accounts/default"):
            return 200, {"aliases": ["default"], "email": "a@b.c", "scopes": []}
        return 200, "p1"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def unsigned(claims: dict[str, Any]) -> str:
    """A token whose claims can be read."""
    parts = [json.dumps(one).encode() for one in ({"alg": "none"}, claims)]
    return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), "c2ln"])
