"""What the product says of its guards (headgate.backend.llm.guards.coverage) is what happens, for every kind of guard, body and place."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.guard_coverage_rig import (
    ANSWERS,
    EVENTS,
    MASKED,
    PATHS,
    REFUSED,
    REQUESTS,
    STATUS,
    STREAMS,
    TOLD,
    Peer,
    Provider,
    Services,
    legible,
    worded,
)  # fmt: skip
from tests.end_to_end.llm_rig import served
from tests.end_to_end.running import Gateway
from websockets.sync.client import ClientConnection, connect

from headgate.backend.llm.guards.coverage import KINDS, PLACES

SCOPES = ["systemPrompt", "messages", "toolInput", "toolOutput"]
# Settings of streams with the scopes of guards that have any.
SETTINGS: dict[str, tuple[Any, list[str] | None]] = {
    "default": (None, None),
    "streaming": ({"mode": "Enabled"}, SCOPES),
    "masks": ({"masks": "Apply"}, SCOPES),
}
REJECTION = {"status": STATUS, "body": "guarded"}


def guards_of(port: int) -> dict[str, dict[str, Any]]:
    """Guards of all kinds, by a name that fits into a path."""
    place = f"http://127.0.0.1:{port}"
    key = {"policies": {"backendAuth": {"key": "k"}}}
    return {
        "reject": {"regex": {"action": "reject", "rules": [{"pattern": REFUSED}]}},
        "mask": {"regex": {"rules": [{"pattern": MASKED}]}},
        "builtin": {"regex": {"builtins": ["email"]}},
        "webhook": {"webhook": {"target": {"host": f"127.0.0.1:{port}"}}},
        "moderation": {"openAIModeration": {"baseUrl": place, **key}},
        "bedrock": {"bedrockGuardrails": {"baseUrl": place, "identifier": "g", "version": "1", "region": "eu-west-1", **key}},
        "armor": {"googleModelArmor": {"baseUrl": place, "templateId": "t", "projectId": "p", **key}},
        "azure": {"azureContentSafety": {"endpoint": place, "analyzeText": {}, **key}},
    }


NAMES = tuple(guards_of(1))


def config(setting: str, provider: int, services: int, realtime: int) -> str:
    streaming, scopes = SETTINGS[setting]
    models = []
    own = {"custom": {"formats": [{"type": "completions"}]}}
    vendors: tuple[tuple[str, Any, Any], ...] = (
        ("c", own, f"{provider}/v1"), ("o", "openai", f"{provider}/v1"), ("a", "anthropic", provider), ("g", "gemini", provider), ("b", "bedrock", provider),
        ("r", "openai", f"{realtime}/v1"),
    )  # fmt: skip
    for name, guard in guards_of(services).items():
        entry = {**guard, "rejection": REJECTION}
        asked = entry if scopes is None or next(iter(guard)) not in ("regex", "bedrockGuardrails") else {**entry, "scope": scopes}
        found: dict[str, Any] = {"request": [asked]}
        if name != "moderation":
            found["response"] = [entry]
        if streaming is not None:
            found["streaming"] = streaming
        for prefix, vendor, base in vendors:
            params = {"baseUrl": f"http://127.0.0.1:{base}", "apiKey": "k"}
            models.append({"name": f"{prefix}-{name}", "provider": vendor, "params": params, "guardrails": found})
    return f"gateways: {{default: {{port: {{port}}}}}}\nllm: {json.dumps({'models': models})}\n"


class Rig:
    """A gateway with a model for each kind of guard, and what it says of them."""

    def __init__(self, running: Gateway, provider: Provider, peer: Peer) -> None:
        self.running, self.provider, self.peer = running, provider, peer
        self.client = httpx.Client(base_url=running.url, timeout=60)
        rows = json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/api/guards")[1])["rows"]
        self.declared = {
            (row["model"].partition("-")[2], row["side"], row["shape"], row["text"], form): (row["seen"], row["guard"])
            for row in rows
            for form in row["formats"]
        }

    def compare(self, name: str, side: str, shape: str, text: str, form: str) -> Iterator[str]:
        """Send both words in a place; yield what is not as it is declared."""
        seen, guard = self.declared[name, side, shape, text, form]
        acts = KINDS[guard]
        wanted = {}
        if acts.refuses:
            wanted[REFUSED] = "passed" if seen == "no" else "refused"
        if acts.masks:
            wanted[MASKED] = "masked" if seen == "yes" else "passed"
        for word, expected in wanted.items():
            found = self.happened((name, side, shape, text, form), word)
            if found != expected:
                yield f"{side} {shape} {text!r} of {form}: declared {seen}, so {word} should be {expected}: {found}"

    def happened(self, place: tuple[str, str, str, str, str], word: str) -> str:
        name, side, shape, text, form = place
        prefix, path, _ = PATHS[form]
        model = f"{prefix}-{name}"
        if shape == "realtime":
            return self._conversation(model, side, text, word)
        if side == "response":
            return self.answered(model, form, text, word, shape == "stream")
        self.provider.told = None
        body = worded(REQUESTS[form][shape, text], word)
        answer = self._post(path, model, form, body)
        if answer.status_code == 200:
            return "passed" if word in legible(self.provider.last.body) else "masked"
        return "refused" if (answer.status_code, answer.text) == (STATUS, "guarded") else f"{answer.status_code} {answer.text}"

    def _post(self, path: str, model: str, form: str, body: dict[str, Any]) -> httpx.Response:
        if "{model}" not in path:
            body = {**body, "model": model}
        if form == "messages":
            body = {"max_tokens": 9, **body}
        return self.client.post(path.replace("{model}", model), json=body)

    def answered(self, model: str, form: str, text: str, word: str, streams: bool) -> str:
        self.provider.says(form, text, word, streams)
        _, path, stream_path = PATHS[form]
        body: dict[str, Any] = {"stream": True} if streams and not stream_path else {}
        said = REQUESTS[form]["plain", "messages"]
        answer = self._post(stream_path if streams and stream_path else path, model, form, {**worded(said, "hi"), **body})
        if "guarded" in answer.text:
            return f"refused, and told: {answer.text}" if word in answer.text else "refused"
        if answer.status_code == 200:
            return "passed" if word in answer.text else "masked"
        return f"{answer.status_code} {answer.text}"

    def _conversation(self, model: str, side: str, text: str, word: str) -> str:
        with connect(f"ws://127.0.0.1:{self.running.port}/v1/realtime?model={model}", open_timeout=60) as call:
            if side == "request":
                call.send(json.dumps(worded(EVENTS[text], word)))
                if "guardrail" in hear(call):
                    return "refused"
                return "passed" if word in self.peer.seen[-1] else "masked"
            events = [*worded(TOLD[text], word), {"type": "response.done", "response": {"status": "completed", "output": []}}]
            call.send(json.dumps({"type": "conversation.item.retrieve", "say": events}))
            heard = hear(call)
            while "response.done" not in heard:
                heard += hear(call)
        if "guarded" in heard:
            return "refused" if word not in heard else f"refused, and told: {heard}"
        return "passed" if word in heard else "masked"


def hear(call: ClientConnection) -> str:
    return str(call.recv(timeout=60))


@pytest.fixture(scope="module", params=SETTINGS)
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with contextlib.ExitStack() as stack:
        services, provider, peer = Services(), Provider(), Peer()
        for one in (services, provider, peer):
            stack.callback(one.close)
        text = config(request.param, provider.port, services.port, peer.port)
        running = stack.enter_context(served(tmp_path_factory.mktemp("coverage"), text))
        found = Rig(running, provider, peer)
        stack.callback(found.client.close)
        yield found


def test_there_is_a_body_for_every_place_of_the_table() -> None:
    for place in PLACES:
        for form in place.formats:
            if place.shape == "realtime":
                assert place.name in (EVENTS if place.side == "request" else TOLD)
            elif place.side == "request":
                assert (place.shape, place.name) in REQUESTS[form], form
            else:
                assert place.name in (STREAMS if place.shape == "stream" else ANSWERS)[form]


@pytest.mark.parametrize("name", NAMES)
def test_every_guard_sees_what_it_is_said_to_see(rig: Rig, name: str) -> None:
    places = [key for key in rig.declared if key[0] == name]
    sides = ("request",) if name == "moderation" else ("request", "response")
    assert len(places) == sum(len(place.formats) for place in PLACES if place.side in sides)
    assert [fault for place in places for fault in rig.compare(*place)] == []


@pytest.mark.parametrize("text", ["tool calls", "reasoning"])
@pytest.mark.parametrize("name", NAMES)
def test_tools_and_reasoning_of_streams_are_not_seen(rig: Rig, name: str, text: str) -> None:
    for form in STREAMS:
        prefix = PATHS[form][0]
        assert rig.answered(f"{prefix}-{name}", form, text, REFUSED, True) == "passed", form
