"""Bedrock guardrails: ApplyGuardrail of the Amazon Bedrock Runtime API.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ApplyGuardrail.html
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from headgate.backend.llm.guards.contract import Answer, GuardCheck, GuardFailure, GuardRefusal
from headgate.backend.llm.guards.service import GuardServiceClient, want
from headgate.dialect.llm.transcript.edit import Changes, difference
from headgate.ir.policy.prompt_guard import BedrockGuard
from headgate.policy.environment import Environment


class Guardrail:
    """Refuses blocked texts and replaces texts that the guardrail has masked."""

    kind = "bedrockGuardrails"
    asks = True

    def __init__(self, guard: BedrockGuard, env: Environment) -> None:
        identifier, version = (quote(text, safe="") for text in (guard.identifier, guard.version))
        self.path = f"/guardrail/{identifier}/version/{version}/apply"
        self.service = GuardServiceClient(guard.service, env)

    async def judge(self, asked: GuardCheck) -> Answer:
        """Check the texts of a body. Raises GuardFailure."""
        runs = [run for run in asked.runs if run.text(asked.body)]
        if not runs:
            return None
        texts = [run.text(asked.body).decode("utf-8", "replace") for run in runs]
        payload = {
            "source": "INPUT" if asked.phase == "request" else "OUTPUT",
            "content": [{"text": {"text": text}} for text in texts],
        }
        answer = want(await self.service.post(self.path, payload), dict, "document")
        action = want(answer.get("action"), str, "action")
        if action == "NONE":
            return None
        if action != "GUARDRAIL_INTERVENED":
            raise GuardFailure(f"the action {action!r} of the response is unknown")
        actions = set(_actions(answer.get("assessments")))
        outputs = answer.get("outputs")
        if "BLOCKED" in actions or "ANONYMIZED" not in actions:
            return GuardRefusal(rule="blocked")
        if not isinstance(outputs, list) or len(outputs) != len(runs):
            return GuardRefusal(rule="blocked")
        changes = Changes(asked.body)
        for run, output, old in zip(runs, outputs, texts, strict=True):
            new = want(want(output, dict, "output").get("text"), str, "text")
            changes.text(run.pieces, run.joiner, difference(old.encode(), new.encode("utf-8", "replace")))
        try:
            return changes.done() if changes else None
        except ValueError as error:
            raise GuardFailure(f"a mask broke the JSON of a tool's input or output: {error}") from None


def _actions(value: Any) -> list[str]:
    """Return every `action` in the assessments, at any depth."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if isinstance(one.get("action"), str):
                found.append(one["action"])
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return found
