"""An HTTP client for the admin server of a gateway on this machine."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

import click

HOST = "127.0.0.1"
# The addresses of `localhost`. An IPv6-only gateway listens on the second one alone.
HOSTS = (HOST, "::1")
ADMIN_PORT = 15000
ANSWER_SECONDS = 10.0
# Error messages quote at most this many bytes of an unexpected response.
QUOTED_BYTES = 500
NOT_FOUND = 404


@dataclass(frozen=True)
class AdminReply:
    """Status and body of a response."""

    status: int
    body: bytes


def target(path: str, query: Mapping[str, str] | None) -> str:
    """Return the request target: the path, with the encoded query if there is one."""
    return f"{path}?{urlencode(query)}" if query else path


def connect(port: int, seconds: float | None) -> http.client.HTTPConnection:
    """Return an open connection to the admin server on `port`, whose reads time out after `seconds` (None: never).

    Raises ClickException if no address accepts the connection.
    """
    first: OSError | None = None
    for host in HOSTS:
        connection = http.client.HTTPConnection(host, port, timeout=ANSWER_SECONDS)
        try:
            connection.connect()
        except OSError as error:
            first = first or error
            continue
        connection.sock.settimeout(seconds)
        return connection
    assert first is not None
    raise unreachable(port, first) from None


def unreachable(port: int, error: Exception) -> click.ClickException:
    """Return the error for an admin server that does not answer; its text suggests what to check."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return click.ClickException(
        f"no answer from the admin server at {HOST}:{port}: {why}. Is the gateway running, and is this the port of its "
        "config.adminAddr (use -p for another)?"
    )


def ask(
    port: int, method: str, path: str, query: Mapping[str, str] | None = None, seconds: float = ANSWER_SECONDS
) -> AdminReply:
    """Send one request and return its response, whatever the status; raises ClickException if no response comes."""
    connection = connect(port, seconds)
    try:
        connection.request(method, target(path, query), headers={"content-length": "0"} if method == "POST" else {})
        answer = connection.getresponse()
        return AdminReply(answer.status, answer.read())
    except (OSError, http.client.HTTPException) as error:
        raise unreachable(port, error) from None
    finally:
        connection.close()


def fetch(port: int, method: str, path: str, query: Mapping[str, str] | None = None) -> bytes:
    """Return the body of a response with status 200; raises ClickException for any other status."""
    answer = ask(port, method, path, query)
    if answer.status != 200:
        raise unexpected(answer.status, answer.body)
    return answer.body


def unexpected(status: int, body: bytes) -> click.ClickException:
    """Return the error for a status other than 200; it quotes the response body if there is one."""
    detail = body[:QUOTED_BYTES].decode(errors="replace").strip()
    more = f": {detail}" if detail else ""
    if status == NOT_FOUND:
        more += ". Is this the port of an admin server (config.adminAddr; another one is given with -p)?"
    return click.ClickException(f"unexpected status code: {status}{more}")
