"""OpenAI moderation: https://platform.openai.com/docs/api-reference/moderations."""

from __future__ import annotations

from headgate.backend.llm.guards.contract import Answer, GuardCheck, GuardFailure, GuardRefusal
from headgate.backend.llm.guards.service import GuardServiceClient, want
from headgate.ir.policy.prompt_guard import ModerationGuard
from headgate.policy.environment import Environment


class Moderation:
    """Refuses flagged texts."""

    kind = "openAIModeration"
    asks = True

    def __init__(self, guard: ModerationGuard, env: Environment) -> None:
        self.model = guard.model
        self.service = GuardServiceClient(guard.service, env)

    async def judge(self, asked: GuardCheck) -> Answer:
        """Check texts. Raises GuardFailure."""
        texts = asked.texts()
        if not texts:
            return None
        answer = await self.service.post("/v1/moderations", {"input": texts, "model": self.model})
        results = want(want(answer, dict, "document").get("results"), list, "results")
        if any(isinstance(one, dict) and one.get("flagged") is True for one in results):
            # Checked before the response is validated: with fail open, an invalid response would let the text pass.
            return GuardRefusal(rule="flagged")
        if len(results) != len(texts):
            raise GuardFailure(f"{len(results)} results for {len(texts)} texts")
        for one in results:
            want(want(one, dict, "result").get("flagged"), bool, "flagged")
        return None
