"""What the policy servers of an MCP backend are asked about, by method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headgate.dialect.mcp.method_keys import NO_REQUEST_PHASE, most_specific
from headgate.dialect.mcp.methods import LISTEN, REQUESTS
from headgate.ir.mcp_guardrails import GuardrailProcessor

# Requests whose params a policy server is told. Of others in the request phase it is told the method.
WITH_PARAMS: Final = ("tools/call", "prompts/get", "resources/read")
NEVER: Final = "notifications, progress, requests of servers, errors of targets"


def _asked(processor: GuardrailProcessor, side: str, method: str) -> tuple[str, str]:
    phases = dict(processor.methods)
    key = most_specific(phases, method)
    if key is None or phases[key] not in (side, "full"):
        return "no", f"`methods` has no {side} phase for them"
    if side == "request":
        if method in NO_REQUEST_PHASE:
            return "no", "they have no request phase"
        return ("yes", "") if method in WITH_PARAMS else ("refusals", "checked without their params")
    return ("no", "it has no response phase") if method == LISTEN else ("yes", "")


def rows(processors: Sequence[GuardrailProcessor]) -> list[dict[str, object]]:
    """Return all that policy servers see and do not see as JSON, methods of the same kind in one row."""
    found: list[dict[str, object]] = []
    for number, processor in enumerate(processors, 1):
        for side in ("request", "response"):
            groups: dict[tuple[str, str], list[str]] = {}
            for method in sorted(REQUESTS):
                groups.setdefault(_asked(processor, side, method), []).append(method)
            groups.setdefault(("no", "policy servers only check requests and results"), []).append(NEVER)
            for (seen, why), names in groups.items():
                row: dict[str, object] = {
                    "side": side, "number": number, "guard": f"mcpGuardrails: {processor.service.name}", "shape": "mcp",
                    "text": ", ".join(names), "formats": ["mcp"], "seen": seen,
                }  # fmt: skip
                found.append(row | ({"why": why} if why else {}))
    return found
