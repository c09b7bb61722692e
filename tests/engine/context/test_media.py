"""Media types of messages."""

from __future__ import annotations

import pytest

from headgate_drivers.requests import is_media_type
from headgate_engine.context.headers import MessageHead


def head(value: str | None) -> MessageHead:
    found = MessageHead()
    if value is not None:
        found.add("content-type", value)
    return found


@pytest.mark.parametrize(
    ("value", "same"),
    [
        ("application/json", True),
        ("Application/JSON", True),
        ("application/json; charset=utf-8", True),
        ("application/json ;charset=utf-8", True),
        ("application/json\t", True),
        ("application/jsonl", False),
        ("application/json+x", False),
        ("application/jso", False),
        ("application/json x", False),
        ("text/event-stream", False),
        ("", False),
        (None, False),
    ],
)
def test_a_type_is_known_whatever_its_case_and_parameters(value: str | None, same: bool) -> None:
    assert is_media_type(head(value), b"application/json") is same


def test_the_first_of_several_counts() -> None:
    found = head("text/plain")
    found.add("content-type", "application/json")
    assert not is_media_type(found, b"application/json")
