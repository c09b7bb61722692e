"""Answers to requests that a client loses, or that a target wants it to come back for: event ids lead to the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, SAMPLE, Raw, config
from tests.end_to_end.resumption_rig import resumable

__all__ = ["resumable"]
pytestmark = pytest.mark.warm
REVISION = "2025-11-25"
SLOW = {"arguments": {"seconds": 1.5}, "_meta": {"progressToken": 7}}


def begun(running: Any, revision: str = REVISION, **fields: str) -> Raw:
    """A client of a revision with a session."""
    raw = Raw(running, **fields)
    raw.http.headers["mcp-protocol-version"] = revision
    return raw


def events(answer: httpx.Response) -> Iterator[dict[str, str]]:
    """The events of a stream as they come; comments are none."""
    found: dict[str, str] = {}
    for line in answer.iter_lines():
        name, _, value = line.partition(": ")
        if line and name:
            found[name] = value
        elif found:
            yield found
            found = {}


def rest(raw: Raw, event_id: str) -> list[dict[str, Any]]:
    """What a client gets that comes back, on a connection of its own: at any worker."""
    fields = {**raw.http.headers, "accept": "text/event-stream", "last-event-id": event_id}
    with httpx.stream("GET", f"{str(raw.http.base_url).rstrip('/')}/mcp", headers=fields, timeout=60) as answer:
        assert answer.status_code == 200
        return [json.loads(event["data"]) for event in events(answer)]


def call(raw: Raw, name: str, number: int, **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, **params}}
    return httpx.stream("POST", f"{str(raw.http.base_url).rstrip('/')}/mcp", json=message, headers=raw.http.headers, timeout=60)


@pytest.mark.parametrize("targets", [{"a": SAMPLE}, {"a": SAMPLE, "b": SAMPLE}], ids=["process", "several"])
def test_a_client_that_loses_its_answer_comes_back_for_the_rest(gateway: Callable[..., Any], targets: dict[str, str]) -> None:
    raw = begun(gateway(config(targets), 2))
    for number in (11, 12, 13):
        with call(raw, "slow" if len(targets) == 1 else "b_slow", number, **SLOW) as answer:
            found = events(answer)
            first, second = next(found), next(found)
            # Where to begin, before there is anything to say.
            assert (first["data"], int(first["retry"])) == ("", 1000)
            assert json.loads(second["data"])["method"] == "notifications/progress"
        # Gone in the middle of the call, which goes on.
        missed = rest(raw, second["id"])
        assert missed[-1]["id"] == number
        assert "result" in missed[-1]
        # An answer that is whole can be had again for a while.
        again = rest(raw, first["id"])
        assert again[0]["method"] == "notifications/progress"
        assert again[-1] == missed[-1]


def test_clients_of_earlier_revisions_get_ids_and_no_empty_event(gateway: Callable[..., Any]) -> None:
    raw = begun(gateway(config({"a": SAMPLE})), "2025-06-18")
    with call(raw, "slow", 5, **{**SLOW, "arguments": {"seconds": 0.2}}) as answer:
        found = list(events(answer))
    assert all(json.loads(event["data"]) and event["id"] for event in found)
    assert json.loads(found[-1]["data"])["id"] == 5


def test_a_target_that_hangs_up_has_the_client_come_back(
    gateway: Callable[..., Any], resumable: tuple[int, list[str | None]]
) -> None:
    port, asked = resumable
    targets = {"r": f'mcp: {{host: "127.0.0.1:{port}"}}', "s": SAMPLE.replace("stdio:", "stdio:")}
    remote = {"r": targets["r"]}
    for found, more in ((targets, ""), (remote, "  prefixMode: always\n")):
        raw = begun(gateway(config(found, more), 2))
        with call(raw, "r_call", 21) as answer:
            told = list(events(answer))
        # The target's own time, and nothing more: the connection is free.
        assert [(event["data"], event["retry"]) for event in told] == [("", "1000"), ("", "50")]
        [message] = rest(raw, told[-1]["id"])
        assert (message["id"], message["result"]["content"][0]["text"]) == (21, "at last")
    assert set(asked) == {"call-0"}


def test_ids_of_nobody_bring_the_stream_of_the_session(gateway: Callable[..., Any]) -> None:
    raw = begun(gateway(config({"a": SAMPLE, "b": SAMPLE}), 2))
    for event_id in ("0w00000000-1", "1w00000000-1", "ffffw00000000-1", "x", "0w-1"):
        fields = {**raw.http.headers, "accept": "text/event-stream", "last-event-id": event_id}
        with httpx.stream("GET", f"{str(raw.http.base_url).rstrip('/')}/mcp", headers=fields, timeout=60) as answer:
            assert answer.status_code == 200, event_id


def test_somebody_else_s_answer_is_not_given(gateway: Callable[..., Any]) -> None:
    running = gateway(config({"a": SAMPLE, "b": SAMPLE}, "  policies: {apiKey: {keys: [{key: ada}, {key: bob}]}}\n"), 2)
    ada = begun(running, authorization="Bearer ada")
    with call(ada, "a_slow", 31, **{**SLOW, "arguments": {"seconds": 0.1}}) as answer:
        event_id = next(events(answer))["id"]
    assert rest(ada, event_id)[-1]["id"] == 31
    bob = begun(running, authorization="Bearer bob")
    for session in (ada.session, bob.session):
        fields = {**ACCEPT, "mcp-protocol-version": REVISION, "authorization": "Bearer bob", "mcp-session-id": session, "last-event-id": event_id}
        with httpx.stream("GET", f"{running.url}/mcp", headers=fields, timeout=60) as answer:
            assert answer.status_code == (404 if session == ada.session else 200)
            if answer.status_code == 200:
                # His own stream, which says nothing of her call.
                body = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": INITIALIZE}
                assert "31" not in httpx.post(f"{running.url}/mcp", json=body, headers={**fields, "last-event-id": ""}, timeout=60).text
