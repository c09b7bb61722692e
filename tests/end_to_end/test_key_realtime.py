"""Limits of virtual keys in realtime conversations: reserved and settled answer by answer, with a real WebSocket client and server."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.stored_rig import ask
from tests.end_to_end.virtual_keys_rig import FILE, Start, make, settings
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

# 11 tokens in at 2 and 7 out at 8 dollars per million, in picodollars.
COST = (11 * 2 + 7 * 8) * 10**6
USED = 18


class Provider:
    """Answers each `response.create`, or what it hears. `seen`: what came; `closed`: close codes of what has ended."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.closed: list[int] = []
        self.over = threading.Event()
        self.server = serve(self._talk, "127.0.0.1", 0, compression=None)
        self.port = self.server.socket.getsockname()[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _talk(self, connection: ServerConnection) -> None:
        connection.send(json.dumps({"type": "session.created", "session": {"max_output_tokens": 100}}))
        try:
            for raw in connection:
                told = json.loads(raw)
                self.seen.append(told["type"])
                for event in self._answer(told):
                    connection.send(json.dumps(event))
        finally:
            self.closed.append(connection.close_code or 0)
            self.over.set()

    def _answer(self, told: dict[str, Any]) -> list[dict[str, Any]]:
        usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": USED}
        begun = [{"type": "response.created"}, {"type": "response.output_text.delta", "delta": "word " * 30}]
        done = [{"type": "response.done", "response": {"usage": None if told.get("event_id") == "uncounted" else usage}}]
        if told.get("event_id") == "no":
            return [{"type": "error", "error": {"code": "conversation_already_has_active_response", "event_id": "no"}}]
        if told["type"] in ("response.create", "input_audio_buffer.commit"):
            return begun if told.get("event_id") == "half" else begun + done
        return []


@pytest.fixture
def provider() -> Iterator[Provider]:
    found = Provider()
    yield found
    found.server.shutdown()


@pytest.fixture
def running(gateway: Start, provider: Provider, tmp_path: Path) -> Gateway:
    text = FILE.replace("PORT", str(provider.port)) + "virtualKeys: {assumedOutputTokens: 100}\n"
    return gateway(text, settings=settings(f"sqlite://{tmp_path}/keys.db"))


def call(running: Gateway, key: str) -> ClientConnection:
    found: ClientConnection = connect(f"ws://127.0.0.1:{running.port}/v1/realtime?model=real", open_timeout=60, additional_headers={"authorization": f"Bearer {key}"})
    assert hear(found)["type"] == "session.created"
    return found


def hear(conversation: ClientConnection) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(conversation.recv(timeout=60))
    return found


def until(conversation: ClientConnection, kind: str) -> dict[str, Any]:
    while (found := hear(conversation))["type"] != kind:
        pass
    return found


def say(conversation: ClientConnection, kind: str, **more: Any) -> None:
    conversation.send(json.dumps({"type": kind, **more}))


def used(running: Gateway) -> dict[str, Any]:
    found: dict[str, Any] = ask(running, "GET", "/api/keys/ci")[1]["usage"]
    return found


def spend(running: Gateway) -> list[tuple[int, ...]]:
    rows = ask(running, "GET", "/api/spend?by=model")[1]["rows"]
    return [(row["calls"], row["inputTokens"], row["outputTokens"], row["costPicos"]) for row in rows if row["model"]]


def refused(conversation: ClientConnection) -> None:
    """The format's error event, and then a close frame that says why."""
    error = until(conversation, "error")["error"]
    assert (error["code"], error["message"]) == ("rate_limit_exceeded", "the limit of the api key is reached")
    with pytest.raises(ConnectionClosed) as closed:
        conversation.recv(timeout=60)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "the limit of the api key is reached")


def test_each_answer_is_settled_when_it_is_done(running: Gateway, provider: Provider) -> None:
    key = make(running, "ci", limits=[{"dollars": 1, "per": "day"}, {"tokens": 10_000, "per": "day"}])
    with call(running, key) as conversation:
        for number in range(1, 4):
            # One is asked for, another begins when a turn has ended.
            say(conversation, "response.create" if number % 2 else "input_audio_buffer.commit")
            until(conversation, "response.done")
            running.wait(lambda number=number: used(running)["day"]["tokens"] == number * USED)
            # The next one, which is reserved last: what was said until now, and the bound that the session has.
            running.wait(lambda: used(running)["reserved"]["tokens"] == USED + 100)
            assert used(running)["day"]["dollars"] == number * COST
            assert spend(running) == [(number, 11 * number, 7 * number, number * COST)]
    running.wait(lambda: used(running)["reserved"]["tokens"] == 0)
    # The end adds nothing to what was settled.
    assert spend(running) == [(3, 33, 21, 3 * COST)]
    assert used(running)["day"]["dollars"] == 3 * COST
    assert used(running)["day"]["requests"] == 1


def test_a_conversation_ends_where_its_limit_has_no_more(running: Gateway, provider: Provider) -> None:
    """After some answers of 18 tokens the next one, of 118 tokens at most, does not fit any more."""
    key = make(running, "ci", limits=[{"tokens": 4 * USED + 90, "per": "day"}])
    conversation = call(running, key)
    done = 0
    while True:
        say(conversation, "response.create")
        if until_either(conversation) == "error":
            break
        done += 1
    with pytest.raises(ConnectionClosed) as closed:
        conversation.recv(timeout=60)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
    assert provider.over.wait(60)
    assert provider.closed == [1000]
    assert 1 <= done <= 4
    assert used(running)["day"]["tokens"] == len(provider.seen) * USED <= 4 * USED + 90
    running.wait(lambda: used(running)["reserved"]["tokens"] == 0)
    # A conversation whose first answer does not fit does not begin.
    with pytest.raises(InvalidStatus) as status:
        call(running, make(running, "small", limits=[{"tokens": 107, "per": "day"}]))
    assert status.value.response.status_code == 429


def until_either(conversation: ClientConnection) -> str:
    while (kind := str(hear(conversation)["type"])) not in ("response.done", "error"):
        pass
    return kind


def test_an_answer_that_may_be_longer_than_what_is_left_is_not_asked_for(running: Gateway, provider: Provider) -> None:
    key = make(running, "ci", limits=[{"tokens": 1000, "per": "day"}])
    conversation = call(running, key)
    say(conversation, "response.create", response={"max_output_tokens": 500})
    assert until_either(conversation) == "response.done"
    say(conversation, "response.create", response={"max_output_tokens": 5000})
    refused(conversation)
    assert provider.over.wait(60)
    assert provider.seen == ["response.create"]
    assert used(running)["day"]["tokens"] == USED


def test_what_is_said_counts_before_it_is_sent_on(running: Gateway, provider: Provider) -> None:
    key = make(running, "ci", limits=[{"tokens": 1000, "per": "day"}])
    conversation = call(running, key)
    say(conversation, "conversation.item.create", item={"content": "a word " * 1000})
    refused(conversation)
    assert provider.over.wait(60)
    assert provider.seen == []
    running.wait(lambda: used(running)["reserved"]["tokens"] == 0)
    assert used(running)["day"]["tokens"] == 0


def test_an_answer_whose_client_leaves_is_charged_with_what_has_come(running: Gateway, provider: Provider) -> None:
    key = make(running, "ci", limits=[{"dollars": 1, "per": "day"}])
    with call(running, key) as conversation:
        say(conversation, "response.create")
        until(conversation, "response.done")
        say(conversation, "response.create", event_id="half")
        until(conversation, "response.output_text.delta")
    # The ledger is told last.
    running.wait(lambda: [calls for calls, *_ in spend(running)] == [2])
    [(_, taken_in, taken_out, cost)] = spend(running)
    assert used(running)["reserved"]["dollars"] == 0
    assert taken_in >= 11 + USED
    assert taken_out >= 7 + 30
    assert cost == used(running)["day"]["dollars"] == (taken_in * 2 + taken_out * 8) * 10**6


def test_answers_that_a_provider_or_a_guard_refuses_are_not_reserved_any_more(gateway: Start, provider: Provider, tmp_path: Path) -> None:
    """More of them than answers that may be asked for at once."""
    guards = 'guardrails: {streaming: {mode: Enabled}, request: [{regex: {action: reject, rules: [{pattern: forbidden}]}, scope: [systemPrompt]}]}'
    text = FILE.replace("PORT", str(provider.port)).replace("virtualKeys: true}", "virtualKeys: true}, " + guards)
    running = gateway(text + "virtualKeys: {assumedOutputTokens: 100}\n", settings=settings(f"sqlite://{tmp_path}/keys.db"))
    key = make(running, "ci", limits=[{"tokens": 10_000, "per": "day"}])
    with call(running, key) as conversation:
        for _ in range(70):
            say(conversation, "response.create", event_id="no")
            assert until(conversation, "error")["error"]["code"] == "conversation_already_has_active_response"
            say(conversation, "response.create", response={"instructions": "forbidden"})
            assert until(conversation, "error")["error"]["type"] == "guardrail_blocked"
        say(conversation, "response.create")
        until(conversation, "response.done")
        running.wait(lambda: used(running)["reserved"]["tokens"] == USED + 100)
    assert provider.seen == ["response.create"] * 71


def test_an_answer_that_its_provider_does_not_count_is_charged_with_what_has_come(running: Gateway, provider: Provider) -> None:
    key = make(running, "ci", limits=[{"tokens": 1000, "per": "day"}])
    with call(running, key) as conversation:
        say(conversation, "response.create", event_id="uncounted")
        until(conversation, "response.done")
        running.wait(lambda: used(running)["day"]["tokens"] > 30)
        # What was said and answered is the prompt of the next one.
        running.wait(lambda: used(running)["reserved"]["tokens"] > 130)
    running.wait(lambda: used(running)["reserved"]["tokens"] == 0)
    [(calls, taken_in, taken_out, cost)] = spend(running)
    assert calls == 1
    assert used(running)["day"]["tokens"] == taken_in + taken_out
    assert cost == (taken_in * 2 + taken_out * 8) * 10**6


def test_a_killed_worker_loses_the_answer_under_way_and_no_other(running: Gateway, provider: Provider) -> None:
    key = make(running, "ci", limits=[{"dollars": 1, "per": "day"}])
    conversation = call(running, key)
    for _ in range(2):
        say(conversation, "response.create")
        until(conversation, "response.done")
    say(conversation, "response.create", event_id="half")
    until(conversation, "response.output_text.delta")
    running.wait(lambda: used(running)["day"]["tokens"] == 2 * USED)
    before = running.worker_pids()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    running.wait(lambda: len(set(running.worker_pids()) - set(before)) == len(before))
    running.wait(lambda: used(running)["reserved"]["dollars"] == 0)
    assert spend(running) == [(2, 22, 14, 2 * COST)]
    assert used(running)["day"]["dollars"] == 2 * COST


def test_a_key_without_limits_is_charged_too(running: Gateway, provider: Provider) -> None:
    key = make(running, "ci")
    with call(running, key) as conversation:
        say(conversation, "response.create")
        until(conversation, "response.done")
        running.wait(lambda: spend(running) == [(1, 11, 7, COST)])
    running.wait(lambda: used(running)["day"]["tokens"] == USED)
