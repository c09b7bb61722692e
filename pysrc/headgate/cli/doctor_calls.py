"""Calls of `gwctl doctor`, and what it says of them."""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

SECONDS: Final = 15.0
MAX_BYTES: Final = 4 * 1024 * 1024
QUOTED: Final = 200
JSON_TYPE: Final = "application/json"


class StepFailed(Exception):
    """A step does not work. `why` is a sentence, `change` says what to change."""

    def __init__(self, why: str, change: str) -> None:
        super().__init__(why)
        self.why, self.change = why, change


@dataclass
class Examination:
    """The steps that were walked through. `failed` is the first that does not work."""

    steps: list[dict[str, str]] = field(default_factory=list)
    failed: bool = False

    def good(self, step: str, found: str) -> None:
        """Note a step that works."""
        self.steps.append({"step": step, "result": "ok", "found": found})

    def skip(self, step: str, why: str) -> None:
        """Note a step that was not tried."""
        self.steps.append({"step": step, "result": "skipped", "found": why})

    def fail(self, step: str, error: StepFailed) -> None:
        """Note the step that does not work."""
        self.failed = True
        self.steps.append({"step": step, "result": "failed", "found": error.why, "change": error.change})


@dataclass(frozen=True)
class Answered:
    """An answer; names of header fields in lower case."""

    status: int
    fields: Mapping[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        """Return the media type without parameters."""
        return self.fields.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def document(self) -> Any:
        """Return the body as JSON, or that of the last event of a stream; None if it is neither."""
        text = self.body.decode(errors="replace")
        if self.kind == "text/event-stream":
            lines = [line[5:] for line in text.splitlines() if line.startswith("data:")]
            text = lines[-1] if lines else ""
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None

    @property
    def quoted(self) -> str:
        """Return the beginning of what it says: the reason of an error, else the text."""
        found = self.document
        if isinstance(found, dict):
            error = found.get("error")
            said = error.get("message") if isinstance(error, dict) else None
            said = said or found.get("error_description") or found.get("message") or found.get("errorSummary") or error
            if isinstance(said, str):
                return _line(said)
        return _line(self.body[: 2 * QUOTED].decode(errors="replace"))


def _line(text: str) -> str:
    line = "".join(one if one.isprintable() else " " for one in " ".join(text.split()))
    return line if len(line) <= QUOTED else f"{line[:QUOTED]}..."


def is_form(url: str) -> bool:
    """Tell whether a text is an HTTP URL."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def in_the_clear(url: str) -> bool:
    """Tell whether others may read what is sent to a URL: it is plain HTTP to another machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = host == "localhost" or host.endswith(".localhost")
    return parts.scheme == "http" and not here


def call(
    method: str,
    url: str,
    body: Any = None,
    fields: Mapping[str, str] | None = None,
    *,
    form: bool = False,
    authority: str | None = None,
) -> Answered:
    """Return the answer to one request; redirects are not followed. `form`: the body goes as a form. `authority`: a
    file with certificates to trust. Raises StepFailed where there is no answer.
    """
    parts = urlsplit(url)
    headers = {"accept": f"{JSON_TYPE}, text/event-stream", "user-agent": "gwctl-doctor", **(fields or {})}
    content = None
    if body is not None:
        content = urlencode(body) if form else json.dumps(body)
        headers["content-type"] = "application/x-www-form-urlencoded" if form else JSON_TYPE
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection = _connection(parts.scheme, str(parts.hostname), parts.port, authority)
        try:
            connection.request(method, target, content, headers)
            answer = connection.getresponse()
            fields_of = {name.lower(): value for name, value in answer.getheaders()}
            stream = fields_of.get("content-type", "").startswith("text/event-stream")
            return Answered(answer.status, fields_of, _first_event(answer) if stream else answer.read(MAX_BYTES))
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _unanswered(url, error) from None


def _first_event(answer: http.client.HTTPResponse) -> bytes:
    """Return a stream up to the end of its first event with data: it may have no end."""
    found = b""
    while len(found) < MAX_BYTES:
        line = answer.readline(MAX_BYTES)
        found += line
        if not line or (not line.strip() and b"data:" in found):
            break
    return found


def _connection(scheme: str, host: str, port: int | None, authority: str | None) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context(cafile=authority)
        return http.client.HTTPSConnection(host, port, timeout=SECONDS, context=context)
    return http.client.HTTPConnection(host, port, timeout=SECONDS)


def _unanswered(url: str, error: Exception) -> StepFailed:
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc}"
    if isinstance(error, socket.gaierror):
        return StepFailed(f"the name {parts.hostname} cannot be resolved", "check the host in the URL, and DNS here")
    if isinstance(error, ssl.SSLCertVerificationError):
        change = (
            "have it present its whole chain, or trust its authority with --ca FILE (root of backendTLS in the gateway)"
        )
        return StepFailed(f"the certificate of {place} is not trusted: {error.verify_message}", change)
    if isinstance(error, ssl.SSLError):
        return StepFailed(f"{place} does not speak TLS: {error.reason or error}", "write http:// if it is a plain port")
    if isinstance(error, TimeoutError):
        return StepFailed(
            f"{place} does not answer within {SECONDS:.0f} s", "check that it is reachable from here (firewall, proxy)"
        )
    if isinstance(error, ConnectionRefusedError):
        return StepFailed(f"nothing listens at {place}", "start the server, or check the port in the URL")
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        # What the library says quotes the field, which may be a credential.
        change = "look for line breaks and letters beyond ASCII in the URL, in tokens and in keys"
        return StepFailed(f"the request to {place} cannot be written as HTTP", change)
    told = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    change = "write https:// if it is a port with TLS" if parts.scheme == "http" else "check the URL"
    return StepFailed(f"{place} gives no HTTP answer: {told}", change)
