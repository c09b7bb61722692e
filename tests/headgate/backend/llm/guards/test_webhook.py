"""Where the masks of a webhook go that is told several texts as one message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.backend.llm.guards.webhook import decide
from headgate.dialect.llm.transcript.table import request_texts


def masked(form: str, document: dict[str, Any], *masks: tuple[str, str]) -> Any:
    """The body after a webhook has replaced these in each message that it was told."""
    body = json.dumps(document).encode()
    turns = request_texts(body, form).turns
    told = []
    for turn in turns:
        content = turn.text(body).decode()
        for old, new in masks:
            content = content.replace(old, new)
        told.append({"role": turn.role, "content": content})
    found = decide({"action": {"body": {"messages": told}}}, "request", turns, body)
    assert isinstance(found, bytes)
    return json.loads(found)


@pytest.mark.parametrize("form", ["responses", "converse"])
def test_each_variable_of_a_stored_prompt_keeps_its_own_text(form: str) -> None:
    def variables(**values: str) -> dict[str, Any]:
        if form == "responses":
            return {"input": "hi", "prompt": {"id": "p", "variables": values}}
        return {"messages": [], "promptVariables": {name: {"text": value} for name, value in values.items()}}

    found = masked(form, variables(name="Ann", city="new york", code="Ann 7", end="x"), ("Ann", "*"), ("york", "***"))
    assert found == variables(name="*", city="new ***", code="* 7", end="x")


def test_a_document_between_two_masks_stays_where_it_is() -> None:
    def said(title: str, text: str) -> dict[str, Any]:
        document = {"type": "document", "title": title, "source": {"type": "text", "media_type": "text/plain", "data": "a long\ntext"}}
        return {"max_tokens": 9, "messages": [{"role": "user", "content": [document, {"type": "text", "text": text}]}]}

    assert masked("messages", said("of Ann", "Ann says"), ("Ann", "*")) == said("of *", "* says")


def test_a_mask_with_blanks_of_its_own_keeps_all_other_text() -> None:
    """Where each text ends cannot be told then: what lies between the masks stands in the last of them."""
    values = {name: {"text": text} for name, text in (("a", "Ann"), ("b", "in York"), ("c", "of Ann"), ("d", "x"))}
    found = masked("converse", {"messages": [], "promptVariables": values}, ("Ann", "a name"))["promptVariables"]
    assert " ".join(filter(None, (one["text"] for one in found.values()))) == "a name in York of a name x"
    assert found["d"]["text"] == "x"
