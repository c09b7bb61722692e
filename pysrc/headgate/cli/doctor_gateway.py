"""`gwctl doctor` without a command: the gateway of this machine, and its MCP endpoints as clients meet them."""

from __future__ import annotations

import json
from typing import Any

import click

from headgate.cli.admin_client import ask
from headgate.cli.doctor_auth import AuthOptions
from headgate.cli.doctor_calls import Examination, StepFailed
from headgate.cli.doctor_mcp import examine_mcp


def examine_gateway(port: int, found: Examination) -> None:
    """Walk through a gateway; stop at the first step that fails."""
    try:
        state = _state(port)
        found.good("admin server", f"headgate {state.get('version')} at port {port}")
        if not state.get("synchronized", True):
            raise StepFailed("the newest configuration could not be loaded: an earlier one is in force",
                             "headgate -f FILE --validate-only tells the faults of the file")  # fmt: skip
        silent = [str(one.get("index")) for one in state.get("workers") or () if not one.get("answers")]
        if silent:
            raise StepFailed(
                f"worker {', '.join(silent)} does not answer", "look at its log; a worker that hangs is replaced"
            )
        found.good("configuration", f"generation {state.get('generation')}, {len(state.get('workers') or ())} workers")
        targets: dict[str, Any] = state.get("targets") or {}
        if not targets.get("ports"):
            raise StepFailed(
                "nothing is served: the configuration has no listener", "write gateways, or mcp or llm with gateways"
            )
        failing = [one["endpoint"] for one in state.get("endpoints") or () if (one.get("left") or 0) > 0]
        if failing:
            raise StepFailed(
                f"endpoints have failed and get no requests: {', '.join(failing)}", "look at the log of these servers"
            )
    except StepFailed as error:
        return found.fail("gateway", error)
    for one in targets.get("mcp") or ():
        # A listener with TLS or a name of its own is asked as its clients do, which takes its certificate.
        if one.get("tls") or one.get("host") != "localhost":
            found.skip("mcp", f"{one['host']}:{one['port']}{one['path']}: gwctl doctor mcp with its URL looks at it")
            continue
        examine_mcp(f"http://localhost:{one['port']}{one['path']}", AuthOptions(), found)
        if found.failed:
            return None
    if targets.get("mcp"):
        try:
            _targets(port, found)
        except StepFailed as error:
            found.fail("targets", error)
    return None


def _targets(port: int, found: Examination) -> None:
    """Look at MCP targets that others stand in for (failOpen), as their last calls tell."""
    told = ask(port, "GET", "/api/mcp")
    rows = json.loads(told.body)["targets"] if told.status == 200 else []
    down = [one for one in rows if one["state"] == "down"]
    if down:
        places = ", ".join(f"{one['target']} ({one['address']}: {one['error']})" for one in down)
        raise StepFailed(
            f"MCP targets do not answer: {places}", "start them, or correct their addresses in mcp.targets"
        )
    if rows:
        found.good("targets", f"{len(rows)} of MCP, none is down")


def _state(port: int) -> dict[str, Any]:
    try:
        answer = ask(port, "GET", "/api/state")
    except click.ClickException as error:
        raise StepFailed(error.message, "start headgate, or give its admin port with -p") from None
    try:
        document = json.loads(answer.body)
    except ValueError:
        document = None
    if answer.status != 200 or not isinstance(document, dict) or "generation" not in document:
        raise StepFailed(f"the server at port {port} is not an admin server of headgate", "give its admin port with -p")
    return document
