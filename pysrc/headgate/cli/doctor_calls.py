"""Calls of `gwctl doctor`, and what it says of them."""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

SECONDS: Final = 15.0
MAX_BYTES: Final = 4 * 1024 * 1024
QUOTED: Final = 200
JSON_TYPE: Final = "application/json"
FORM_TYPE: Final = "application/x-www-form-urlencoded"
HTML_TYPE: Final = "text/html"
TITLE: Final = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)
# What the certificate of a server may be, by the number that OpenSSL gives it (openssl-verify(1)).
NOT_YET, EXPIRED, OTHER_NAME, OTHER_ADDRESS = 9, 10, 62, 64
# Alerts of TLS (RFC 8446 section 6), as OpenSSL names them.
NO_NAME: Final = "UNRECOGNIZED_NAME"
NO_CLIENT_CERTIFICATE: Final = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE", "BAD_CERTIFICATE")


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
        """Return the body as JSON, or that of the last event of a stream with data; None if it is neither."""
        text = self.body.decode(errors="replace")
        return _data_of(text) if self.kind == "text/event-stream" else _json(text)

    @property
    def is_page(self) -> bool:
        """Tell whether it is a web page, as proxies and sites send them."""
        return self.kind == HTML_TYPE

    @property
    def shape(self) -> str:
        """Return what it is, in words."""
        return "a web page" if self.is_page else "JSON" if self.document is not None else "no JSON"

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
        if self.is_page:
            title = TITLE.search(self.body.decode(errors="replace"))
            return f"a web page with the title {_line(title[1])!r}" if title is not None else "a web page"
        return _line(self.body[: 2 * QUOTED].decode(errors="replace")) or "without a text"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _data_of(text: str) -> Any:
    events: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("data:"):
            events[-1].append(line[5:])
        elif not line:
            events.append([])
    # An event without data only says where a stream may be taken up again.
    told = ["\n".join(lines) for lines in events if "".join(lines).strip()]
    return _json(told[-1]) if told else None


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
    authority: str | None = None,
    is_last: Callable[[Any], bool] = bool,
) -> Answered:
    """Return the answer to one request; redirects are not followed. A body is JSON, or a form if `fields` say that.
    `authority`: a file with certificates to trust. `is_last`: for which data of an event a stream has been read far
    enough. Raises StepFailed where there is no answer.
    """
    parts = urlsplit(url)
    headers = {"accept": f"{JSON_TYPE}, text/event-stream", "user-agent": "gwctl-doctor", **(fields or {})}
    content = None
    if body is not None:
        headers.setdefault("content-type", JSON_TYPE)
        content = urlencode(body) if headers["content-type"] == FORM_TYPE else json.dumps(body)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    end = time.monotonic() + SECONDS
    try:
        connection = _connection(parts.scheme, str(parts.hostname), parts.port, authority)
        connection.connect()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _unanswered(url, error) from None
    try:
        connection.request(method, target, content, headers)
        answer = connection.getresponse()
        fields_of = {name.lower(): value for name, value in answer.getheaders()}
        stream = fields_of.get("content-type", "").startswith("text/event-stream")
        return Answered(answer.status, fields_of, _events(answer, is_last, end) if stream else _whole(answer, end))
    except TimeoutError:
        why = f"{parts.scheme}://{parts.netloc} takes the request, and has no whole answer within {SECONDS:.0f} s"
        raise StepFailed(why, "look at the log of the server: it hangs, or waits for another server") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _unanswered(url, error) from None
    finally:
        connection.close()


def _whole(answer: http.client.HTTPResponse, end: float) -> bytes:
    """Return a body. Raises TimeoutError at `end` on the clock `monotonic`: it may come byte by byte."""
    found = bytearray()
    while len(found) < MAX_BYTES and (piece := answer.read1(MAX_BYTES)):
        found += piece
        _in_time(end)
    if answer.length and len(found) < MAX_BYTES:
        raise http.client.IncompleteRead(b"", answer.length)
    return bytes(found)


def _events(answer: http.client.HTTPResponse, is_last: Callable[[Any], bool], end: float) -> bytes:
    """Return a stream up to the event that was waited for: it may have no end, and others in front of that."""
    found = b""
    while len(found) < MAX_BYTES:
        line = answer.readline(MAX_BYTES)
        found += line
        if not line or (not line.strip() and is_last(_data_of(found.decode(errors="replace")))):
            break
        _in_time(end)
    return found


def _in_time(end: float) -> None:
    if time.monotonic() > end:
        raise TimeoutError


def _connection(scheme: str, host: str, port: int | None, authority: str | None) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=SECONDS)
    try:
        context = ssl.create_default_context(cafile=authority)
    except OSError as error:
        told = "no certificates in PEM form are in it" if isinstance(error, ssl.SSLError) else error.strerror
        raise StepFailed(f"{authority} cannot be used: {told}", "give --ca a file with certificates") from None
    return http.client.HTTPSConnection(host, port, timeout=SECONDS, context=context)


def _unanswered(url: str, error: Exception) -> StepFailed:
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc}"
    if isinstance(error, socket.gaierror):
        return StepFailed(f"the name {parts.hostname} cannot be resolved", "check the host in the URL, and DNS here")
    if isinstance(error, ssl.SSLCertVerificationError):
        return _untrusted(place, error)
    if isinstance(error, ssl.SSLError):
        return _no_tls(place, str(parts.hostname), error)
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


def _untrusted(place: str, error: ssl.SSLCertVerificationError) -> StepFailed:
    code, told = error.verify_code, error.verify_message.rstrip(".")
    if code == EXPIRED:
        return StepFailed(f"the certificate of {place} has expired", "renew it, or set the clock of this machine")
    if code == NOT_YET:
        change = "set the clock of this machine, or wait"
        return StepFailed(f"the certificate of {place} is not valid yet", change)
    if code in (OTHER_NAME, OTHER_ADDRESS):
        change = "use a host in the URL that its certificate names, or give it a certificate for this one"
        return StepFailed(f"the certificate of {place} is for another host: {told}", change)
    change = "let it send its whole chain, or trust its authority with --ca FILE (root of backendTLS at the gateway)"
    return StepFailed(f"the certificate of {place} is not trusted: {told}", change)


def _no_tls(place: str, host: str, error: ssl.SSLError) -> StepFailed:
    reason = error.reason or str(error)
    if isinstance(error, ssl.SSLEOFError):
        change = "look whether it wants a client certificate, and write http:// if it is a plain port"
        return StepFailed(f"{place} closes the connection during the TLS handshake", change)
    if NO_NAME in reason:
        change = "use a host that the server has a certificate for (SNI)"
        return StepFailed(f"the server at {place} does not know the name {host}", change)
    if any(alert in reason for alert in NO_CLIENT_CERTIFICATE):
        change = "look whether it wants a client certificate, or other versions of TLS: ask it by openssl s_client"
        return StepFailed(f"{place} refuses the TLS handshake: {reason}", change)
    return StepFailed(f"{place} does not speak TLS: {reason}", "write http:// if it is a plain port")
