"""What tests of mcp oauth flows and others share."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

from tests.end_to_end.mcp_oauth_rig import CONFIG, PROVIDER, ROOT

BACK = "http://localhost:9/cb"
OWN_CLIENT = f"\n      clientId: ours\n      redirectUris: ['{BACK}']"
# Kind, what its configuration needs more.
KINDS = {
    "auth0": "",
    "okta": "\n      jwks: {url: 'ISSUER/v1/keys'}",
    "keycloak": "",
    "descope": "",
    "authentik": OWN_CLIENT,
    "entra": OWN_CLIENT,
}


def started(running: Any, kind: str, own: bool, backs: Sequence[str] = (BACK,)) -> tuple[subprocess.Popen[str], str]:
    """Start the authorization server, and have the gateway protect its MCP server with it; returns its issuer, too."""
    resource = f"{running.url}/mcp"
    command = ["node", str(ROOT / "tests" / "peers" / "oauth_server.mjs"), str(PROVIDER), resource, kind]
    if own:
        command.append(f"{running.url}/.well-known/oauth-authorization-server/mcp/callback")
    peer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert peer.stdout is not None
    issuer = peer.stdout.readline().strip()
    text = CONFIG.replace("jwks: 'JWKS'\n", "\n").replace("PROVIDER", f"provider: {{{kind}: {{}}}}{KINDS[kind]}")
    text = text.replace("ISSUER", issuer).replace('[api, "api://second"]', f'["{resource}"]').replace("http://gw.test/mcp", resource)
    text = text.replace(BACK, "', '".join(backs))
    text = text.replace("scopesSupported: [read, write]", "scopesSupported: [mcp]")
    running.write(text.replace("MORE", "authorization: {rules: ['jwt.sub == \"ada\"']}"))
    running.wait_log("configuration reloaded")
    return peer, issuer
