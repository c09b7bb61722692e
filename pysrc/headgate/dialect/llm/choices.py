"""Several choices of one answer (`n`, `candidateCount`) at providers that make one at a time.

Such a request is sent once for each choice. What comes back, in the client's format by then, is put together here: each
choice gets its index, all of them one id, and the usage is the sum of what each call has cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headgate.dialect.llm.contract import Json, TranslatedRequest, Untranslatable
from headgate_engine.llm.translate.readers import load_json
from headgate_engine.llm.translate.writers import dump_json
from headgate_engine.sse.decode import SseDecoder

# Calls for one request, which all cost tokens and a connection.
MOST: Final = 8
# Vendors of chat completions that refuse `n` or ignore it: https://console.groq.com/docs/openai (400),
# https://docs.ollama.com/api/openai-compatibility, https://api-docs.deepseek.com/api/create-chat-completion,
# https://docs.cohere.com/docs/compatibility-api and https://openrouter.ai/docs/api-reference/parameters, which do not
# list it (OpenRouter answers with one choice: github.com/OpenRouterArchived/openrouter-runner/issues/99).
ONE_AT_A_TIME: Final = frozenset({"groq", "ollama", "deepseek", "cohere", "openrouter"})
# Client format to the members of an answer that hold its choices, its usage and its id.
MEMBERS: Final = {
    "completions": ("choices", "usage", "id"),
    "text": ("choices", "usage", "id"),
    "gemini": ("candidates", "usageMetadata", "responseId"),
}
DONE: Final = b"data: [DONE]\n\n"


def wanted(client: str, body: Json) -> Any:
    """Return the number of choices that a request asks for, None if it says nothing of it."""
    if client == "gemini":
        config = body.get("generationConfig")
        return config.get("candidateCount") if isinstance(config, dict) else None
    return body.get("n") if client in MEMBERS else None


def asked_for(client: str, upstream: str, body: Json, asked: TranslatedRequest, vendor: str) -> int:
    """Return how often a translated request has to be sent; a provider that can makes all choices of one request.

    Raises Untranslatable.
    """
    name = "generationConfig.candidateCount" if client == "gemini" else "n"
    count = wanted(client, body)
    if count is None or count == 1:
        return 1
    if type(count) is not int or count < 1:
        raise Untranslatable(name, "must be a number of choices")
    # Streams of several choices are several streams: no reader has to tell them apart.
    if not asked.stream and upstream == "completions" and vendor not in ONE_AT_A_TIME:
        asked.body["n"] = count
        return 1
    if not asked.stream and upstream == "gemini":
        asked.body.setdefault("generationConfig", {})["candidateCount"] = count
        return 1
    if count > MOST:
        raise Untranslatable(name, f"must be at most {MOST}: this provider is called once for each choice")
    return count


def total(one: Any, other: Any) -> Any:
    """Return the sum of two counts: of numbers, and of all numbers in objects."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{name: total(one[name], value) if name in one else value for name, value in other.items()}}
    counts = isinstance(one, int | float) and isinstance(other, int | float)
    return one + other if counts else one


def whole(client: str, answers: Sequence[Json]) -> Json:
    """Return one answer with the choices of all. `answers`: in the client's format, of one choice each."""
    listed, counted, _ = MEMBERS[client]
    out = dict(answers[0])
    out[listed] = [{**choice, "index": at} for at, answer in enumerate(answers) for choice in answer[listed]]
    for answer in answers[1:]:
        if counted in answer:
            out[counted] = total(out.get(counted), answer[counted]) if counted in out else answer[counted]
    return out


def _loaded(data: bytes) -> Json:
    found: Any = load_json(data)
    return dict(found)


class MergedStream:
    """One stream of events of the streams of all choices."""

    def __init__(self, client: str, count: int) -> None:
        self.listed, self.counted, self.named = MEMBERS[client]
        self.ends_with_done = client != "gemini"
        self.count = count
        self.decoders = [SseDecoder() for _ in range(count)]
        self.ended: set[int] = set()
        self.first: Json | None = None
        self.last: Json | None = None
        self.usage: Json | None = None

    def feed(self, choice: int, data: bytes) -> bytes:
        """Return the events for the client of what the stream of one choice says next."""
        out = []
        for event in self.decoders[choice].decode(data):
            if event.data == b"[DONE]":
                self.ended.add(choice)
            elif (told := self._event(choice, _loaded(event.data))) is not None:
                out.append(b"data: " + dump_json(told) + b"\n\n")
        if len(self.ended) == self.count and self.ends_with_done:
            out.append(self._end())
        return b"".join(out)

    def _event(self, choice: int, event: Json) -> Json | None:
        if "error" in event:
            return event
        if self.first is None:
            self.first = {name: event[name] for name in (self.named, "created") if name in event}
        event.update((name, value) for name, value in self.first.items() if name in event)
        used = event.pop(self.counted, None)
        if isinstance(used, dict):
            self.usage = used if self.usage is None else total(self.usage, used)
            self.last = event
        listed = event.get(self.listed)
        if not listed:
            return None
        for one in listed:
            one["index"] = choice
            if not self.ends_with_done and one.get("finishReason"):
                self.ended.add(choice)
        if not self.ends_with_done and len(self.ended) == self.count and self.usage is not None:
            event[self.counted] = self.usage
        return event

    def _end(self) -> bytes:
        if self.usage is None or self.last is None:
            return DONE
        return b"data: " + dump_json({**self.last, self.listed: [], self.counted: self.usage}) + b"\n\n" + DONE
