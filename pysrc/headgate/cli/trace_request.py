"""The request of inject mode: the system's `curl`, connected to the gateway."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from urllib.parse import urlsplit

import click

DEFAULT_PORTS = {"http": 80, "https": 443}
# Ports that curl may send from: it takes the next one where it connects again, as for a redirect.
SOURCE_PORTS = 8
LAST_PORT = 65535
# Paths that nobody has a reason to encode or to shorten.
PLAIN = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")


@dataclass(frozen=True)
class Injected:
    """A `curl` command line. `expression` tells its request from others that the gateway gets, if anything does."""

    command: tuple[str, ...]
    expression: str | None = None

    def run(self) -> str | None:
        """Send the request; return None, or curl's error message."""
        done = subprocess.run(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode == 0:
            return None
        return done.stderr.strip() or f"curl ended with status {done.returncode}"


def prepare(arguments: tuple[str, ...], port: int, *, here: bool) -> Injected:
    """Return the command for the user's arguments and the gateway's listener port; raises ClickException.

    The host of the URL appears in `Host` and in TLS SNI, but curl connects to 127.0.0.1. Several URLs must have the
    same host and port. `here`: the gateway runs on this machine, so that it sees the port that curl sends from.
    """
    origins = {origin for word in arguments if (origin := _origin(word)) is not None}
    if not origins:
        raise click.ClickException("request args after -- must include at least one http:// or https:// URL")
    if len(origins) > 1:
        raise click.ClickException("all URLs after -- must have the same host and port")
    curl = shutil.which("curl")
    if curl is None:
        raise click.ClickException("curl is needed to send the request, and is not on this machine")
    host, url_port = next(iter(origins))
    # The user's ~/.curlrc applies, as for any other call of curl.
    command = (curl, "-s", "-S", "--connect-to", f"{host}:{url_port}:127.0.0.1:{port}", *arguments)
    if here and "--local-port" not in arguments:
        first = _free_port()
        last = min(first + SOURCE_PORTS - 1, LAST_PORT)
        ports = ("--local-port", f"{first}-{last}")
        return Injected((*command, *ports), f"source.rawPort >= {first} && source.rawPort <= {last}")
    return Injected(command, _expression(arguments))


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def _expression(arguments: tuple[str, ...]) -> str | None:
    """Return a CEL expression that is true for the requests of these arguments, as far as their path tells them apart.

    None where curl or the gateway may write the path in another way than the user did.
    """
    paths = {urlsplit(word).path or "/" for word in arguments if _origin(word) is not None}
    if len(paths) != 1 or "--request-target" in arguments:
        return None
    path = paths.pop()
    if not PLAIN.fullmatch(path) or {".", ".."} & set(path.split("/")):
        return None
    return f'request.path == "{path}"'


def _origin(word: str) -> tuple[str, int] | None:
    if not word.lower().startswith(("http://", "https://")):
        return None
    try:
        url = urlsplit(word)
        port = url.port or DEFAULT_PORTS[url.scheme]
    except ValueError as error:
        raise click.ClickException(f"{word}: {error}") from None
    if not url.hostname:
        raise click.ClickException(f"{word}: no host")
    return f"[{url.hostname}]" if ":" in url.hostname else url.hostname, port
