"""`headgate -f FILE --diff [URL]`: compare a file with the configuration of a running gateway."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import sys
import urllib.error
import urllib.parse
import urllib.request
from http import HTTPStatus
from typing import Any, Final

from headgate.config.comparison import proof
from headgate.config.difference import differences
from headgate.config.dump import Runtime, dump
from headgate.config.load import Source, load
from headgate.errors import ConfigErrors
from headgate.ir.gateway import Gateway

SECONDS: Final = 10.0
# Exit status: 0 no differences, 1 an error, 3 differences (2 is a wrong command line).
CHANGES: Final = 3


def run(source: Source, url: str) -> int:
    """Print the differences and return the exit status."""
    try:
        loaded = load(source)
    except ConfigErrors as error:
        print(error, file=sys.stderr)
        return 1
    for warning in loaded.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    try:
        running = fetch(url)
    except (OSError, ValueError, http.client.HTTPException) as error:
        print(f"headgate: no configuration from {url}: {_reason(error)}", file=sys.stderr)
        return 1
    workers = loaded.gateway.process.workers.resolve(len(os.sched_getaffinity(0)))
    try:
        found = differences(
            running, dump(loaded.gateway, Runtime(generation=0, workers=workers)), lambda: same(url, loaded.gateway)
        )
    except (OSError, ValueError, http.client.HTTPException) as error:
        print(f"headgate: no comparison from {url}: {_reason(error)}", file=sys.stderr)
        return 1
    print("\n".join(found) if found else "no differences")
    return CHANGES if found else 0


def _reason(error: Exception) -> str:
    """Return the error as a readable message."""
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(error, urllib.error.HTTPError):
        return f"status {error.code}"
    if isinstance(cause, json.JSONDecodeError | UnicodeDecodeError):
        return "the response is not JSON; is this the address of an admin server?"
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__


def same(url: str, gateway: Gateway) -> bool:
    """Ask a gateway whether its configuration is this one, secrets included. Raises OSError or ValueError.

    The digest that is sent is slow to compute and salted, so that who reads it cannot guess secrets from it.
    """
    query = urllib.parse.urlencode({"proof": proof(gateway, secrets.token_hex(16))})
    try:
        answer = _get(f"{url.rstrip('/')}/config_dump/same?{query}")
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return False  # an earlier version, which cannot tell
        raise
    return isinstance(answer, dict) and answer.get("same") is True


def _get(url: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=SECONDS) as answer:
        return json.load(answer)


def fetch(url: str) -> dict[str, Any]:
    """Return the configuration dump of a gateway. Raises OSError if the call fails, ValueError for an invalid dump."""
    if not url.startswith(("http://", "https://")):
        raise ValueError("expected an http URL")
    document = _get(f"{url.rstrip('/')}/config_dump")
    if not isinstance(document, dict) or "binds" not in document:
        raise ValueError("this is not a configuration dump")
    return document
