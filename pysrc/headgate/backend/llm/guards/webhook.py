"""Guards that call a webhook of the operator."""

from __future__ import annotations

from typing import Any, Final

from headgate.backend.llm.guards.contract import Answer, GuardCheck, GuardFailure, GuardRefusal, Pairs
from headgate.backend.llm.guards.service import GuardServiceClient, encoded, want
from headgate.dialect.llm.transcript.contract import Turn, piece_text
from headgate.dialect.llm.transcript.edit import Changes, Edit, difference
from headgate.ir.policy.prompt_guard import WebhookGuard
from headgate.policy.environment import Environment
from headgate_engine.context.request import Reply

REASON: Final = "Guardrail"


class Webhook:
    """Sends the conversation and applies the action in the response."""

    kind = "webhook"
    asks = True

    def __init__(self, guard: WebhookGuard, env: Environment) -> None:
        self.guard = guard
        self.service = GuardServiceClient(guard.service, env)

    async def judge(self, asked: GuardCheck) -> Answer:
        """Check texts."""
        body = asked.body
        turns = asked.transcript.turns
        told = [{"role": turn.role, "content": turn.text(body).decode("utf-8", "replace")} for turn in turns]
        if asked.phase == "request":
            payload: Any = {"body": {"messages": told}}
        else:
            payload = {"body": {"choices": [{"message": one} for one in told]}}
        answer = await self._ask(asked, encoded(payload))
        return decide(answer, asked.phase, turns, body)

    async def _ask(self, asked: GuardCheck, payload: bytes) -> Any:
        pseudo = {name: value for name, value in asked.headers if name.startswith(":")}
        plain: Pairs = [(name, value) for name, value in asked.headers if not name.startswith(":")]
        path = pseudo.get(":path", f"/{asked.phase}")
        if not path.startswith("/"):
            raise GuardFailure("a ':path' does not begin with a slash")
        line = (pseudo.get(":method", "POST"), path)
        try:
            return await self.service.call(line, plain, payload, pseudo.get(":authority"))
        except UnicodeEncodeError:
            raise GuardFailure("an ':authority' is not ASCII") from None


def decide(answer: Any, phase: str, turns: list[Turn], body: bytes) -> Answer:
    """Return the verdict of a webhook's response; raises GuardFailure unless it has exactly one of the three shapes."""
    action = want(want(answer, dict, "document").get("action"), dict, "action")
    if action.get("reason") is not None:
        want(action["reason"], str, "reason")
    if "body" not in action:
        if "status_code" in action:
            raise GuardFailure("the answer has a 'status_code' without a 'body'")
        return None
    told = action["body"]
    if isinstance(told, str):
        status = want(action.get("status_code"), int, "status_code")
        if not 200 <= status <= 599:
            raise GuardFailure(f"the answer's status_code {status} is none")
        return GuardRefusal(Reply(status, told.encode("utf-8", "replace"), (), REASON), rule=action.get("reason") or "")
    if "status_code" in action:
        raise GuardFailure("the answer has a 'status_code' beside a mask")
    name = "messages" if phase == "request" else "choices"
    entries = want(want(told, dict, "body").get(name), list, name)
    if phase == "response":
        entries = [want(entry, dict, "choice").get("message") for entry in entries]
    if len(entries) != len(turns):
        raise GuardFailure(f"webhook {phase} message count mismatch: {len(entries)} for {len(turns)}")
    return _masked(entries, turns, body)


def _masked(entries: list[Any], turns: list[Turn], body: bytes) -> bytes | None:
    changes = Changes(body)
    for entry, turn in zip(entries, turns, strict=True):
        message = want(entry, dict, "message")
        content = want(message.get("content"), str, "content").encode("utf-8", "replace")
        if message.get("role", turn.role) != turn.role:
            raise GuardFailure(f"the answer has {message['role']!r} where {turn.role!r} was sent")
        old = turn.text(body)
        if content == old:
            continue
        if not turn.pieces:
            raise GuardFailure("the answer has text for a message without any")
        pieces = [piece for piece in turn.pieces if piece.stop - piece.start > 2 or not old]
        if not old:
            pieces = pieces[:1]
        changes.text(pieces, turn.joiner, _edits([piece_text(body, one) for one in pieces], turn.joiner, content))
    return changes.done() if changes else None


def _edits(texts: list[bytes], joiner: bytes, content: bytes) -> list[Edit]:
    """Return what makes `content` of joined texts, each of which keeps its own part where that can be told.

    A variable of a stored prompt, or a document, must not get the text of another. A mask mostly leaves as many blanks
    or lines as there were; then each text has as many of them as before.
    """
    old = joiner.join(texts)
    words = content.split(joiner)
    if len(texts) < 2 or len(words) != old.count(joiner) + 1:
        return difference(old, content)
    found: list[Edit] = []
    at = word = 0
    for text in texts:
        count = text.count(joiner) + 1
        changes = difference(text, joiner.join(words[word : word + count]))
        found += [(at + start, at + stop, new) for start, stop, new in changes]
        at += len(text) + len(joiner)
        word += count
    return found
