"""Azure AI Content Safety: text:analyze and text:detectJailbreak.

Source: https://learn.microsoft.com/rest/api/contentsafety/text-operations
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from headgate.backend.llm.guards.contract import Answer, GuardCheck, GuardRefusal
from headgate.backend.llm.guards.service import GuardServiceClient, want
from headgate.ir.policy.prompt_guard import ContentSafetyGuard
from headgate.policy.environment import Environment

# Maximum length of the text in one call.
MAX_CHARS = 10_000
# What a piece repeats of the one before it, so that no phrase up to this length is cut.
OVERLAP = 1_000


class ContentSafety:
    """Refuses texts with a high severity, with a term on a blocklist, or with a jailbreak attempt."""

    kind = "azureContentSafety"
    asks = True

    def __init__(self, guard: ContentSafetyGuard, env: Environment) -> None:
        self.guard = guard
        self.service = GuardServiceClient(guard.service, env)

    async def judge(self, asked: GuardCheck) -> Answer:
        """Check texts, with one call per MAX_CHARS characters."""
        for text in pieces("\n".join(asked.texts())):
            if self.guard.analyze and await self._analyzed(text):
                return GuardRefusal(rule="analyzeText")
            if self.guard.jailbreak_version is not None and asked.phase == "request" and await self._attacks(text):
                return GuardRefusal(rule="detectJailbreak")
        return None

    async def _analyzed(self, text: str) -> bool:
        guard = self.guard
        path = f"/contentsafety/text:analyze?api-version={quote(guard.version, safe='')}"
        payload = {"text": text, "blocklistNames": list(guard.blocklists), "haltOnBlocklistHit": guard.halt_on_hit}
        answer = want(await self.service.post(path, payload), dict, "document")
        if want(answer.get("blocklistsMatch") or [], list, "blocklistsMatch"):
            return True
        rated = want(answer.get("categoriesAnalysis"), list, "categoriesAnalysis")
        levels = [want(want(one, dict, "category").get("severity"), int, "severity") for one in rated]
        return any(level >= guard.threshold for level in levels)

    async def _attacks(self, text: str) -> bool:
        path = f"/contentsafety/text:detectJailbreak?api-version={quote(self.guard.jailbreak_version or '', safe='')}"
        answer = want(await self.service.post(path, {"text": text}), dict, "document")
        analysis = want(answer.get("jailbreakAnalysis"), dict, "jailbreakAnalysis")
        return bool(want(analysis.get("detected"), bool, "detected"))


def pieces(text: str) -> Iterator[str]:
    """Cut a text into pieces of at most MAX_CHARS characters, each of which repeats the last OVERLAP characters."""
    at = 0
    while at < len(text):
        yield text[at : at + MAX_CHARS]
        if at + MAX_CHARS >= len(text):
            return
        at += MAX_CHARS - OVERLAP
