"""Copilot tokens, obtained from GitHub in exchange for a developer's token.

The exchange is that of the vendor's editors: the response is a JSON object with `token`, its expiry as Unix time
(`expires_at`), and the seconds after which it should be refreshed (`refresh_in`).
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from headgate import __version__
from headgate.policy.cloud.calls import Calls
from headgate.policy.cloud.refresher import CredentialError, Fetched

URL: Final = "https://api.github.com/copilot_internal/v2/token"
# Overrides the URL of the exchange, for GitHub Enterprise.
URL_VARIABLE: Final = "COPILOT_TOKEN_URL"
# Variables for the developer's token, in the order of the vendor's command-line client.
VARIABLES: Final = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
# Files below the configuration folder in which editors store the token.
FILES: Final = ("github-copilot/apps.json", "github-copilot/hosts.json")
MAX_FILE: Final = 64 * 1024
EDITOR: Final = f"headgate/{__version__}"
# Assumed lifetime of a token without an expiry.
USUAL_LIFE_S: Final = 1500.0


class Copilot:
    """Tokens of the developer in the environment. `now` returns Unix time in seconds."""

    def __init__(
        self, calls: Calls, environ: Mapping[str, str] = os.environ, now: Callable[[], float] = time.time
    ) -> None:
        self._calls = calls
        self._environ = environ
        self._now = now

    async def __call__(self) -> Fetched:
        """Return a new token; raises CredentialError."""
        token = await asyncio.to_thread(self._developer)
        headers = [
            ("authorization", f"token {token}"), ("accept", "application/json"), ("user-agent", EDITOR),
            ("editor-version", EDITOR),
        ]  # fmt: skip
        answer = await self._calls.call("GET", self._environ.get(URL_VARIABLE) or URL, headers)
        return self._read(answer.json("GitHub"))

    def _developer(self) -> str:
        for name in VARIABLES:
            if token := (self._environ.get(name) or "").strip():
                return _checked(token)
        given, home = (self._environ.get(name) for name in ("XDG_CONFIG_HOME", "HOME"))
        folder = Path(given) if given else Path(home or "/") / ".config"
        for name in FILES:
            kept = _kept(folder / name)
            if kept is not None:
                return _checked(kept)
        raise CredentialError(f"no developer's token: neither in {', '.join(VARIABLES)} nor in the files of editors")

    def _read(self, answer: dict[str, Any]) -> Fetched:
        token = answer.get("token")
        if not isinstance(token, str):
            raise CredentialError("GitHub answered without a token")
        until, renew = (_number(answer.get(name)) for name in ("expires_at", "refresh_in"))
        return Fetched(_checked(token).encode(), USUAL_LIFE_S if until is None else until - self._now(), renew)


def _checked(token: str) -> str:
    """Return the token; raises CredentialError if it cannot be a header value."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CredentialError("an invalid token")
    return token


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _kept(path: Path) -> str | None:
    """Return the token for github.com in an editor's file; None if the file or the token is missing."""
    try:
        with path.open("rb") as stream:
            told = json.loads(stream.read(MAX_FILE))
    except (OSError, ValueError, RecursionError):
        return None
    for name, entry in told.items() if isinstance(told, dict) else ():
        token = entry.get("oauth_token") if isinstance(entry, dict) else None
        if name.partition(":")[0] == "github.com" and isinstance(token, str):
            return token
    return None
