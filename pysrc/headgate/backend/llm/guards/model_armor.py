"""Google Model Armor: sanitizeUserPrompt and sanitizeModelResponse of its v1 API.

Source: https://cloud.google.com/security-command-center/docs/reference/model-armor/rest
"""

from __future__ import annotations

from typing import Any, Final

from headgate.backend.llm.guards.contract import Answer, GuardCheck, GuardRefusal
from headgate.backend.llm.guards.service import GuardServiceClient, want
from headgate.ir.policy.prompt_guard import ModelArmorGuard
from headgate.policy.environment import Environment

FOUND: Final = "MATCH_FOUND"
FILTERS: Final = (
    "raiFilterResult", "piAndJailbreakFilterResult", "maliciousUriFilterResult", "csamFilterResult",
    "csamFilterFilterResult", "virusScanFilterResult",
)  # fmt: skip
SDP: Final = ("inspectResult", "deidentifyResult")


class ModelArmor:
    """Refuses texts that match a filter of the template."""

    kind = "googleModelArmor"
    asks = True

    def __init__(self, guard: ModelArmorGuard, env: Environment) -> None:
        self.path = f"/v1/projects/{guard.project}/locations/{guard.location}/templates/{guard.template}"
        self.service = GuardServiceClient(guard.service, env)

    async def judge(self, asked: GuardCheck) -> Answer:
        """Check texts."""
        texts = asked.texts()
        if not texts:
            return None
        request = asked.phase == "request"
        verb = "sanitizeUserPrompt" if request else "sanitizeModelResponse"
        data = "user_prompt_data" if request else "model_response_data"
        answer = await self.service.post(f"{self.path}:{verb}", {data: {"text": "\n".join(texts)}})
        result = want(want(answer, dict, "document").get("sanitizationResult"), dict, "sanitizationResult")
        return GuardRefusal(rule="match") if matched(result) else None


def matched(result: dict[str, Any]) -> bool:
    """Return True if any filter matches."""
    if result.get("filterMatchState") == FOUND:
        return True
    entries = result.get("filterResults") or ()
    if isinstance(entries, dict):
        entries = entries.values()
    for entry in want(list(entries), list, "filterResults"):
        if not isinstance(entry, dict):
            continue
        found = [entry.get(name) for name in FILTERS]
        sdp = entry.get("sdpFilterResult")
        if isinstance(sdp, dict):
            found += [sdp.get(name) for name in SDP]
        if any(isinstance(one, dict) and one.get("matchState") == FOUND for one in found):
            return True
    return False
