"""Conversations that change vendors at every turn: whatever one pair made of an answer, every other vendor takes.

The vendors are tests/oracles/llm_strict.py (what they refuse) and llm_sdk_shapes.py (their published schemas).
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_conversation import VENDORS, Answer, Conversation
from llm_sdk_shapes import shape_faults
from llm_strict import ANTHROPIC, GEMINI, OPENAI, faults

from headgate.backend.llm.foreign_turns import foreign_history
from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Options

Json = dict[str, Any]
CLIENTS = ("completions", "messages", "responses", "converse")
# Vendors that speak a format under another name.
SPOKEN = {"compatible": "completions"}


def pair_of(client: str, upstream: str) -> pairs.Converter | None:
    return pairs.converter(client, SPOKEN.get(upstream, upstream))


REACHABLE = [(client, upstream) for client in CLIENTS for upstream in VENDORS
             if client == upstream or pair_of(client, upstream) is not None]  # fmt: skip
CALLS = st.lists(st.sampled_from(["now", "get_weather"]), max_size=2)
TEXTS = st.sampled_from(["", "Hello ☃", "Two.\nLines."])


def options_of(upstream: str) -> Options:
    """Return what a translation knows of the vendor; some clients do not name its model in the body."""
    vendor, model = VENDORS[upstream]
    return Options(vendor=vendor, model=model)


def sent(client: str, upstream: str, body: Json) -> Json:
    """Return what the vendor gets."""
    vendor, _ = VENDORS[upstream]
    if client == upstream:
        history = foreign_history(client, vendor)
        assert history is not None
        raw = json.dumps(body).encode()
        return dict(json.loads(history.clean(raw) if history.is_in(raw) else raw))
    pair = pair_of(client, upstream)
    assert pair is not None
    return pair.request(body, options_of(upstream)).body


ANSWERS = st.tuples(TEXTS, TEXTS, st.booleans(), CALLS, st.booleans(), st.booleans())
TURNS = st.lists(st.tuples(st.sampled_from(list(VENDORS)), ANSWERS), min_size=1, max_size=5)


@pytest.mark.parametrize("client", CLIENTS)
@given(turns=TURNS, keeps=st.booleans(), thinks=st.booleans())
@settings(max_examples=60, derandomize=True, deadline=None)
def test_every_vendor_takes_what_the_others_have_said(
    client: str, turns: list[tuple[str, Any]], keeps: bool, thinks: bool
) -> None:
    talk = Conversation(client, keeps, thinks)
    for number, (said_by, parts) in enumerate(turns):
        if (client, said_by) not in REACHABLE:
            continue
        reply = Answer(number, *parts).told(said_by)
        if client != said_by:
            pair = pair_of(client, said_by)
            assert pair is not None
            body = talk.body(VENDORS[said_by][1])
            reply = pair.reply(reply, pair.request(body, options_of(said_by)))
        talk.heard(reply)
        for upstream in [upstream for one, upstream in REACHABLE if one == client]:
            model = VENDORS[upstream][1]
            made = sent(client, upstream, talk.body(model))
            assert faults(upstream, made, model) == []
            assert shape_faults(upstream, made) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_a_vendor_gets_its_own_signatures_back(client: str) -> None:
    """Claude's thoughts return to Claude, wherever it runs, and Gemini's to Gemini, also behind another vendor's turn."""
    answer = Answer(1, "", "Hm", False, ["now"], False)
    other = Answer(2, "Fine", "", False, [], False)
    for said_by, returned_to in (("messages", "converse"), ("converse", "messages"), ("gemini", "gemini"), ("compatible", "compatible"), ("responses", "responses"),
                                 ("gemini", "compatible"), ("compatible", "gemini")):  # fmt: skip
        if {(client, said_by), (client, returned_to)} - set(REACHABLE):
            continue
        talk = Conversation(client, keeps=True, thinks=True)
        for vendor, one in ((said_by, answer), ("completions", other)):
            reply = one.told(vendor)
            if client != vendor:
                pair = pair_of(client, vendor)
                assert pair is not None
                reply = pair.reply(reply, pair.request(talk.body(VENDORS[vendor][1]), options_of(vendor)))
            talk.heard(reply)
        made = json.dumps(sent(client, returned_to, talk.body(VENDORS[returned_to][1])))
        vendor = {"gemini": GEMINI, "compatible": GEMINI, "responses": OPENAI}.get(said_by, ANTHROPIC)
        assert base64.b64encode(f"{vendor}:1".encode()).decode()[:-4] in made


def test_a_history_without_foreign_turns_keeps_its_bytes() -> None:
    """Prompt caches compare them."""
    for client in CLIENTS:
        history = foreign_history(client, VENDORS[client][0])
        assert history is not None
        talk = Conversation(client, keeps=False, thinks=True)
        for number in range(4):
            talk.heard(Answer(number, "Hello", "Hm", True, ["now", "now"], False).told(client))
        raw = json.dumps(talk.body("m"), indent=1).encode()
        assert not history.is_in(raw)
        assert history.clean(raw) is raw
