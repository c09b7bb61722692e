"""`server/discover` for several targets: the revisions that all of them support, and their merged capabilities."""

from __future__ import annotations

import json
from typing import Any

from headgate.backend.mcp.failure import McpFailure, PassedRefusal, TargetRefusal, error_of
from headgate.backend.mcp.federation.group import LinkGroup, Outcome
from headgate.backend.mcp.federation.target_answer import Fields
from headgate.backend.mcp.request_telemetry import decoded
from headgate.dialect.mcp import merge, modern, versions
from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND, RpcMessage
from headgate.dialect.mcp.methods import DISCOVER


async def nobody(_text: bytes) -> None:
    """Drop a message that the client did not request."""


async def discover(
    group: LinkGroup, message: RpcMessage, fields: Fields, tolerant: bool, info: dict[str, Any]
) -> dict[str, Any]:
    """Return the merged result of several targets; raises McpFailure.

    If a target needs a session, the error is "method not found": the client then initializes a session, as it would
    with the server itself. Targets without sessions are bridged in that session (ModernLink).
    """
    outcomes = await group.ask_all(list(group.links), message, fields, nobody)
    results = {name: outcome.result for name, outcome in outcomes.items() if outcome.result is not None}
    legacy = [name for name, outcome in outcomes.items() if _wants_session(outcome)]
    failed = [name for name in outcomes if name not in results and name not in legacy]
    if failed and (not tolerant or len(failed) == len(outcomes)):
        raise failure_of(failed[0], outcomes[failed[0]])
    offered = {name: _versions(result) for name, result in results.items()}
    found = [one for one in versions.KNOWN if all(one in known for known in offered.values())]
    if legacy or not found:
        raise not_found(DISCOVER)
    return merge.discover(results, found, info)


def _versions(result: dict[str, Any]) -> set[str]:
    known = result.get("supportedVersions")
    return {one for one in known if isinstance(one, str)} if isinstance(known, list) else set()


def _wants_session(outcome: Outcome) -> bool:
    if outcome.error is not None:
        return outcome.unknown_method or modern.is_legacy_error(outcome.error)
    failure = outcome.failure
    if not isinstance(failure, TargetRefusal):
        return False
    if failure.status in (404, 405):
        return True
    if modern.is_legacy_refusal(failure.status, failure.body):
        return True
    error = decoded(failure.body).get("error")
    return isinstance(error, dict) and error.get("code") == METHOD_NOT_FOUND


def not_found(method: str) -> McpFailure:
    """Return the error for a method that revision 2026-07-28 does not have."""
    return McpFailure(404, f"method not found: {method[:80]}", METHOD_NOT_FOUND)


def failure_of(target: str, outcome: Outcome) -> McpFailure:
    """Return the client's error for a target that fails a request of revision 2026-07-28."""
    if outcome.error is not None:
        found = error_of(target, outcome.error)
        found.status = modern.STATUSES.get(found.code or 0, 200)
        return found
    failure = outcome.failure
    if isinstance(failure, TargetRefusal):
        return relayed(failure)
    return McpFailure(503, f"failed to send message: {target}: {failure}", INTERNAL_ERROR)


def relayed(failure: TargetRefusal) -> PassedRefusal:
    """Return a target's refusal for the client."""
    try:
        in_answer = "jsonrpc" in json.loads(failure.body)
    except (ValueError, TypeError):
        in_answer = False
    return PassedRefusal(failure.status, failure.fields, failure.body, in_answer)
