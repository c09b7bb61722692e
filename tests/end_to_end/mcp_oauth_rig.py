"""What tests of mcp oauth and others share."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx

ROOT = Path(__file__).resolve().parents[2]
PROVIDER = ROOT / "build" / "node" / "node_modules" / "oidc-provider" / "lib" / "index.js"

CONFIG = """
gateways:
  default: {port: {port}}
mcp:
  targets:
  - name: sample
    stdio: {cmd: "PYTHON", args: ["-m", "headgate.sample.mcp_server"]}
  policies:
    mcpAuthentication:
      issuer: ISSUER
      audiences: [api, "api://second"]
      jwks: 'JWKS'
      PROVIDER
      resourceMetadata:
        resource: http://gw.test/mcp
        scopesSupported: [read, write]
        bearerMethodsSupported: [header]
    MORE
""".replace("PYTHON", sys.executable)


# -- the official client, a real authorization server ------------------------------------------------------------------------
class Memory:
    """Where the official client keeps what it has."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


def consent(location: str, back: str = "http://localhost:9/") -> dict[str, str]:
    """What a user does: follow, sign in, agree; the parameters of the redirect back, which begins with `back`."""
    with httpx.Client(timeout=60) as browser:
        answer = browser.get(location)
        for _ in range(20):
            if answer.status_code in (302, 303):
                location = urljoin(str(answer.url), answer.headers["location"])
                if location.startswith(back):
                    return {key: values[0] for key, values in parse_qs(urlsplit(location).query).items()}
                answer = browser.get(location)
            else:
                action = re.search(r'action="([^"]+)"', answer.text)
                assert action, answer.text
                fields = dict(re.findall(r'name="(prompt)" value="(\w+)"', answer.text))
                if 'name="login"' in answer.text:
                    fields |= {"login": "ada", "password": "x"}
                answer = browser.post(urljoin(str(answer.url), action[1]), data=fields)
    raise AssertionError("the login does not end")
