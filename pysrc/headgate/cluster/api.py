"""Requests to an API server."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import tempfile
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from headgate.cluster.errors import ClusterError
from headgate.cluster.kubeconfig import ClusterAccess

ANSWER_SECONDS: Final = 10.0
# Bytes of a response: a list of some thousand pods.
MAX_RESPONSE: Final = 64 << 20
QUOTED_BYTES: Final = 500


class ApiRefused(ClusterError):
    """The API server answered with another status than 200."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ApiServer:
    """Calls to the API server of a cluster, one connection each."""

    def __init__(self, access: ClusterAccess) -> None:
        """Raises ClusterError if certificates or the URL cannot be used."""
        self.access = access
        parts = urlsplit(access.server)
        try:
            self._port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            raise ClusterError(f"{access.server}: not a URL") from None
        if not parts.hostname:
            raise ClusterError(f"{access.server}: not a URL")
        self._host = parts.hostname
        self.authority = parts.netloc.rpartition("@")[2]
        self.prefix = parts.path.rstrip("/")
        self._tls = tls_context(access) if parts.scheme == "https" else None

    def connect(self) -> socket.socket:
        """Return a connected socket, over TLS if the URL says so; raises ClusterError."""
        try:
            plain = socket.create_connection((self._host, self._port), ANSWER_SECONDS)
        except OSError as error:
            why = error.strerror or error
            raise ClusterError(f"no answer from the API server {self.access.server}: {why}") from None
        if self._tls is None:
            return plain
        try:
            return self._tls.wrap_socket(plain, server_hostname=self.access.server_name or self._host)
        except OSError as error:
            plain.close()
            reason = getattr(error, "verify_message", None) or getattr(error, "reason", None) or error
            raise ClusterError(f"TLS with the API server {self.access.server} failed: {reason}") from None

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the object at a path below the server's URL.

        Raises ApiRefused for another status than 200, and ClusterError if there is no answer that can be read.
        """
        target = f"{self.prefix}{path}{f'?{urlencode(query)}' if query else ''}"
        connection = http.client.HTTPConnection(self._host, self._port)
        connection.sock = self.connect()
        try:
            headers = {**self.access.headers, "Host": self.authority, "Accept": "application/json"}
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            body = answer.read(MAX_RESPONSE)
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(f"GET {path}: the API server {self.access.server} broke off: {error}") from None
        finally:
            connection.close()
        if answer.status != 200:
            raise ApiRefused(answer.status, f"GET {path}: {refusal(answer.status, body)}")
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ClusterError(f"GET {path}: {self.access.server} did not answer with a JSON object")
        return found


def refusal(status: int, body: bytes) -> str:
    """Return the text of a refusal: the message of a Kubernetes `Status` object, else the start of the body."""
    try:
        message = json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        message = body[:QUOTED_BYTES].decode(errors="replace").strip()
    phrase = http.client.responses.get(status, "")
    return f"{status} {phrase}".rstrip() + (f": {message}" if message else "")


def tls_context(access: ClusterAccess) -> ssl.SSLContext:
    """Return what TLS with the API server needs; raises ClusterError if certificates cannot be used."""
    context = ssl.create_default_context()
    try:
        if access.authority is not None:
            context = ssl.create_default_context(cadata=access.authority.decode("ascii"))
        if not access.verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if access.certificate is not None and access.key is not None:
            _load_pair(context, access.certificate, access.key)
    except (ssl.SSLError, ValueError) as error:
        raise ClusterError(f"certificates of the kubeconfig cannot be used: {error}") from None
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a client certificate; the ssl module takes it from a file alone, which only this user can read."""
    number, name = tempfile.mkstemp()
    try:
        with os.fdopen(number, "wb") as file:
            file.write(certificate + b"\n" + key)
        # Without a password an encrypted key would ask at the terminal.
        context.load_cert_chain(name, password="")
    finally:
        os.unlink(name)
