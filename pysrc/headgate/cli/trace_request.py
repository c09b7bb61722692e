"""The request of inject mode: the system's `curl`, connected to the gateway."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from urllib.parse import urlsplit

import click

DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Injected:
    """A `curl` command line."""

    command: tuple[str, ...]

    def run(self) -> str | None:
        """Send the request; return None, or curl's error message."""
        done = subprocess.run(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode == 0:
            return None
        return done.stderr.strip() or f"curl ended with status {done.returncode}"


def prepare(arguments: tuple[str, ...], port: int) -> Injected:
    """Return the command for the user's arguments and the gateway's listener port; raises ClickException.

    The host of the URL appears in `Host` and in TLS SNI, but curl connects to 127.0.0.1. Several URLs must have the
    same host and port.
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
    return Injected((curl, "-s", "-S", "--connect-to", f"{host}:{url_port}:127.0.0.1:{port}", *arguments))


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
