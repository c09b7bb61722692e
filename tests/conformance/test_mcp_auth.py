"""The authorization scenarios of the official MCP conformance suite, with the gateway as the authorization server that clients see.

Behind it is a real provider (`oidc-provider`), with its documents and endpoints where each kind of provider has them. The
suite's other auth scenarios test clients: they need a server whose metadata name the suite's own host.
`make conformance-suite` and `make node-peers` install what it takes; without it these tests are skipped.
Two kinds of providers run, and all with HEADGATE_CONFORMANCE=long (`make conformance`), where HEADGATE_REGOLD=1 writes
docs/conformance-auth.md anew.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.end_to_end.conformance import LONG, NODE, SUITE
from tests.end_to_end.conftest import free_port
from tests.end_to_end.mcp_oauth_flows_rig import KINDS, OWN_CLIENT, started
from tests.end_to_end.mcp_oauth_rig import PROVIDER, ROOT, consent

RESULTS = ROOT / "docs" / "conformance-auth.md"
VERSION = "0.2.0-alpha.12"
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
# Clients that are known by the URL of their metadata are unknown to the provider, which does not tell otherwise.
UNSERVED = "server-metadata-cimd: warning"
# One with a document of its own place, and one that knows the gateway as its client.
TRIED = list(KINDS) if LONG else ["okta", "entra"]
SCENARIOS = ("authorization-server-metadata-endpoint", "authorization-code-grant")

pytestmark = [
    pytest.mark.warm,
    pytest.mark.node,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not all(path.exists() for path in (NODE, SUITE, PROVIDER)), reason="run `make conformance-suite node-peers`"
    ),
]


def log_in(lines: list[str], line: str, port: int) -> None:
    """Do what a user does with the URL that the suite prints, and take the browser back to the suite."""
    lines.append(line)
    if line.startswith("http"):
        # The suite asks for no scope, and `oidc-provider` has no default (RFC 6749 section 3.3 leaves that to it).
        found = consent(f"{line.strip()}&scope=mcp", f"http://127.0.0.1:{port}/")
        httpx.get(f"http://127.0.0.1:{port}/callback", params=found, timeout=30)


def run(url: str, client_id: str, port: int, revision: str, folder: Path) -> dict[str, list[str]]:
    """Return the statuses of the checks of each scenario."""
    command = [str(NODE), str(SUITE), "authorization", "--url", url, "--client-id", client_id, "--resource", url,
               "-p", str(port), "--spec-version", revision, "-o", str(folder)]  # fmt: skip
    suite = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert suite.stdout is not None
    lines: list[str] = []
    ender = threading.Timer(120, suite.kill)
    ender.start()
    try:
        for line in suite.stdout:
            log_in(lines, line, port)
    finally:
        suite.wait()
        ender.cancel()
    found: dict[str, list[str]] = {}
    for path in folder.rglob("checks.json"):
        for check in json.loads(path.read_text()):
            [scenario] = [one for one in SCENARIOS if one in str(path)]
            found.setdefault(scenario, []).append(f"{check['id'].removeprefix('authorization-')}: {check['status'].lower()}")
            lines.append(json.dumps(check))
    assert set(found) == set(SCENARIOS), lines
    return found


def table(results: dict[tuple[str, str], dict[str, list[str]]]) -> str:
    """Return the results as a page."""
    lines = [
        "# MCP conformance: authorization",
        "",
        f"`@modelcontextprotocol/conformance` {VERSION}, its authorization scenarios, with the gateway as authorization server in",
        "front of `oidc-provider` that has its documents where each kind of provider has them",
        "(`tests/conformance/test_mcp_auth.py`).",
        "",
        f"| provider | {' | '.join(REVISIONS)} |",
        f"|---|{'---|' * len(REVISIONS)}",
    ]
    for kind in [kind for kind in KINDS if all((kind, revision) in results for revision in REVISIONS)]:
        rows = (results[kind, revision] for revision in REVISIONS)
        row = ["<br>".join(sorted(one for checks in found.values() for one in checks)) for found in rows]
        lines.append(f"| {kind} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def results() -> Any:
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    yield found
    complete = len(found) == len(KINDS) * len(REVISIONS)
    if complete and os.environ.get("HEADGATE_REGOLD"):
        RESULTS.write_text(table(found))
    written = RESULTS.read_text()
    assert set(table(found).splitlines()) <= set(written.splitlines())
    if complete:
        assert written == table(found)


@pytest.mark.parametrize("kind", TRIED)
def test_scenarios(kind: str, gateway: Callable[..., Any], tmp_path: Path, results: Any) -> None:
    running = gateway("gateways:\n  default: {port: {port}}\n", 2)
    # Each revision has a port of its own for the browser to come back to, so that they can run at once.
    ports = {revision: free_port() for revision in REVISIONS}
    backs = [f"http://127.0.0.1:{port}/callback" for port in ports.values()]
    own = KINDS[kind] == OWN_CLIENT
    peer, _ = started(running, kind, own, backs)
    url = f"{running.url}/mcp"
    try:
        metadata = httpx.get(f"{running.url}/.well-known/oauth-authorization-server/mcp", timeout=30).json()
        wanted = {"redirect_uris": backs, "token_endpoint_auth_method": "none", "client_name": "suite", "scope": "mcp"}
        registered = httpx.post(metadata["registration_endpoint"], json=wanted, timeout=30)
        assert registered.status_code == 201, registered.text

        def one(revision: str) -> dict[str, list[str]]:
            return run(url, registered.json()["client_id"], ports[revision], revision, tmp_path / revision)

        with concurrent.futures.ThreadPoolExecutor(len(REVISIONS)) as pool:
            for revision, found in zip(REVISIONS, pool.map(one, REVISIONS), strict=True):
                told = {one for checks in found.values() for one in checks}
                assert all(one.endswith(": success") for one in told - {UNSERVED}), found
                results[kind, revision] = found
    finally:
        peer.terminate()
        peer.wait()
