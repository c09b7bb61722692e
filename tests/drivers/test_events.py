"""The vocabulary of codecs: values, equal by content, that do not change."""

from __future__ import annotations

import dataclasses

import pytest

from headgate_drivers.events import DataEvent, EndOfMessage, InformationalResponse, RequestHead, ResponseHead

EVENTS = [RequestHead("GET", "/", "a"), ResponseHead(200), InformationalResponse(103), DataEvent(b"x"), EndOfMessage()]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_are_values(event: object) -> None:
    copy = dataclasses.replace(event)  # type: ignore[type-var]
    assert copy == event
    assert hash(copy) == hash(event)
    name = dataclasses.fields(event)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(event, name, None)


def test_an_interim_response_is_no_final_one() -> None:
    assert InformationalResponse(103) != ResponseHead(103)
