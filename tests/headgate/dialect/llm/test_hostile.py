"""Whatever a client or a provider sends: a translation, Untranslatable, or UpstreamGarbage; nothing else is raised."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from llm_cases import IDS, PAIRS, asked_of, cases, events_of, framed, plain

from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Untranslatable, UpstreamGarbage
from headgate_engine.llm.translate.writers import dump_json

ODD: list[Any] = [None, True, 0, -1, 1.5, 1 << 70, "", "x", "\ud800", [], [None], [[]], {}, {"type": "text"}, {"a": 1}]
ROUNDS = 30


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in a JSON value: its holder and its name there."""
    found: list[tuple[Any, Any]] = []
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in members:
        found += [(value, name), *places(inner)]
    return found


def spoilt(value: Any, source: random.Random) -> Any:
    """Return the value with one or two places changed."""
    value = copy.deepcopy(value)
    for _ in range(source.randint(1, 2)):
        found = places(value)
        if not found:
            return value
        holder, name = source.choice(found)
        if isinstance(holder, dict) and source.random() < 0.2:
            del holder[name]
        else:
            holder[name] = copy.deepcopy(source.choice(ODD))
    return value


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_spoilt_requests_are_refused_or_translated(pair: pairs.Converter) -> None:
    source = random.Random(f"{pair.client}{pair.upstream}")
    for body in cases("requests", pair.client).values():
        for _ in range(ROUNDS):
            changed = spoilt(body, source)
            try:
                asked = asked_of(pair, changed)
            except Untranslatable:
                continue
            dump_json(asked.body)


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_spoilt_replies_are_garbage_or_translated(pair: pairs.Converter) -> None:
    source = random.Random(f"{pair.client}{pair.upstream}")
    asked = plain(pair, False)
    for body in cases("replies", pair.upstream).values():
        for _ in range(ROUNDS):
            changed = spoilt(body, source)
            try:
                reply = pair.reply(changed, asked)
            except UpstreamGarbage:
                continue
            dump_json(reply)
            pairs.usage_of(pair.upstream, changed)


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.streams],
                         ids=[name for name, pair in zip(IDS, PAIRS, strict=True) if pair.streams])  # fmt: skip
def test_spoilt_streams_end_with_one_terminal_event(pair: pairs.Converter) -> None:
    source = random.Random(f"{pair.client}{pair.upstream}")
    asked = plain(pair, True)
    for events in cases("streams", pair.upstream).values():
        for _ in range(ROUNDS):
            changed = [event if isinstance(event["data"], str) else {**event, "data": spoilt(event["data"], source)}
                       for event in events]  # fmt: skip
            stream = pair.stream(asked)
            out = b"".join(stream.feed(piece) for piece in framed(pair, changed)) + stream.end(None)
            assert stream.finished
            ends = (out.count(b"data: [DONE]") + out.count(b"event: message_stop") + out.count(b"event: error")
                    + out.count(b"event: response.completed") + out.count(b"event: response.incomplete")
                    + out.count(b"event: response.failed") + out.count(b'data: {"error":')
                    + out.count(b'"finishReason":'))  # fmt: skip
            if pair.client == "converse":
                names = [one.event for one in events_of(pair.client, out)]
                ends = names.count("metadata") + sum(name.endswith("Exception") for name in names)
            assert ends == 1


@pytest.mark.parametrize("model", ["..", ".", "...", "\ud800"])
@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.upstream.startswith(("converse", "bedrock_c"))])
def test_models_that_would_lead_elsewhere_are_refused(pair: pairs.Converter, model: str) -> None:
    body = dict(cases("requests", pair.client)["basic"])
    with pytest.raises(Untranslatable, match="model"):
        pair.request(body, pairs.Options(model=model))


def test_a_model_is_one_segment_of_the_path() -> None:
    body = dict(cases("requests", "messages")["basic"])
    asked = pairs.PAIRS["messages", "converse"].request(body, pairs.Options(model="arn:aws:x/../y?z#%2e"))
    assert asked.path_suffix == "/model/arn%3Aaws%3Ax%2F..%2Fy%3Fz%23%252e/converse"


def test_bodies_that_are_nested_too_deeply_are_refused() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = {"a": deep}
    use = {"type": "tool_use", "id": "a", "name": "f", "input": deep}
    body = {"model": "m", "max_tokens": 3, "messages": [{"role": "assistant", "content": [use]}]}
    with pytest.raises(Untranslatable, match="deeply"):
        pairs.PAIRS["messages", "completions"].request(body, pairs.Options())
    pair = pairs.PAIRS["completions", "messages"]
    with pytest.raises(UpstreamGarbage, match="deeply"):
        pair.reply({"content": [use], "stop_reason": "tool_use"}, plain(pair, False))
