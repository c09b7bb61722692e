"""Limits of virtual keys: reserved before the call, exact for many callers and workers, and equal to the ledger."""

from __future__ import annotations

import csv
import io
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
from postgres_rig import Server, postgres
from tests import forked_rig
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.page_rig import ask_admin
from tests.end_to_end.provider_stand_in import DONE, StandIn, chunk, event, reset, stream, whole
from tests.end_to_end.provider_stand_in import chat as answer
from tests.end_to_end.stored_rig import ask, kill
from tests.end_to_end.virtual_keys_rig import FILE, Start, chat, make, settings, started

WORKERS = 3
CALLERS = 64
# 11 tokens in at 2 and 7 out at 8 dollars per million.
COST = 11 * 2 + 7 * 8
PICO = 10**12
USED = 18


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


@pytest.fixture
def provider(stand_in: Any) -> StandIn:
    # Without tokens that were cached: their price would be another one.
    found: StandIn = stand_in(whole(answer() | {"usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": USED}}))
    return found


def spend(running: Gateway, query: str = "by=key") -> list[dict[str, Any]]:
    status, found = ask(running, "GET", f"/api/spend?{query}")
    assert status == 200, found
    rows: list[dict[str, Any]] = found["rows"]
    return rows


def used(running: Gateway, name: str, scope: str = "keys") -> dict[str, Any]:
    found: dict[str, Any] = ask(running, "GET", f"/api/{scope}/{name}")[1]["usage"]
    return found


def dollars(micros: int) -> str:
    return f"{micros / 10**6:.6f}"


def test_requests_are_limited_over_all_workers(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db", WORKERS)
    key = make(running, "ci", limits=[{"requests": 10, "per": "month"}])
    with ThreadPoolExecutor(CALLERS) as pool:
        found = list(pool.map(lambda _: chat(running, key), range(CALLERS)))
    assert sorted(one.status_code for one in found) == [200] * 10 + [429] * (CALLERS - 10)
    refused = next(one for one in found if one.status_code == 429)
    error = refused.json()["error"]
    assert error["code"] == "rate_limit_exceeded"
    now = datetime.now(UTC)
    end = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=UTC)
    assert 'the key "ci" has a limit of 10 requests a month, of which 0 requests are left' in error["message"]
    assert f"the limit ends at {end:%Y-%m-%dT%H:%M:%SZ}" in error["message"]
    assert 0 < int(refused.headers["retry-after"]) <= 31 * 86400
    assert len(provider.seen) == 10
    assert used(running, "ci")["month"]["requests"] == 10


def test_money_holds_with_64_callers_and_is_spent_to_the_end(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    """What is let pass never exceeds the limit, ledger, account and provider agree to the last digit, nothing stays reserved."""
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db", WORKERS)
    limit = 20 * COST
    key = make(running, "ci", limits=[{"dollars": dollars(limit), "per": "day"}])
    with ThreadPoolExecutor(CALLERS) as pool:
        found = list(pool.map(lambda _: chat(running, key, max_tokens=7).status_code, range(4 * CALLERS)))
    passed = found.count(200)
    assert set(found) <= {200, 429}
    assert passed == len(provider.seen)
    [row] = spend(running)
    assert row["costPicos"] == passed * COST * PICO // 10**6 <= limit * PICO // 10**6
    assert (row["calls"], row["inputTokens"], row["outputTokens"]) == (passed, passed * 11, passed * 7)
    assert row["cost"] == f"{passed * COST / 10**6:.12f}"
    account = used(running, "ci")
    assert account["day"]["dollars"] == account["month"]["dollars"] == row["costPicos"]
    assert account["reserved"] == {"requests": 0, "tokens": 0, "dollars": 0}
    # One at a time, until not even one fits any more.
    while (last := chat(running, key, max_tokens=7)).status_code == 200:
        pass
    assert "of which" in last.json()["error"]["message"]
    [row] = spend(running)
    assert limit - 2 * COST < row["costPicos"] * 10**6 // PICO <= limit


def test_what_does_not_fit_costs_nothing_and_what_fits_later_does(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    key = make(running, "ci", limits=[{"tokens": 100, "per": "day"}])
    refused = chat(running, key, max_tokens=1000)
    assert refused.status_code == 429
    assert "this request may take 10" in refused.json()["error"]["message"]
    # Without a bound the answer is assumed to be long, and several answers are so many times as long.
    assert [chat(running, key).status_code, chat(running, key, max_tokens=40, n=3).status_code] == [429, 429]
    assert provider.seen == []
    assert chat(running, key, max_completion_tokens=40).status_code == 200
    assert used(running, "ci")["day"]["tokens"] == USED


@pytest.mark.parametrize(
    "more",
    [
        '"metadata": {"max_tokens": "1"}',
        '"metadata": {"max_tokens": 1}',
        '"maxTokens": 1',
        '"max_tokens": -1',
        '"max_tokens": 1, "max_completion_tokens": 1000',
        '"max_tokens": 1e3',
        '"max_tokens": "1000"',
        '"max_tokens": 10000000000000',
        '"max_tokens": 1, "max_tok\\u0065ns": 1000',
        '"max_tokens": 40, "\\u006e": 3',
        '"max_tokens": 1, "tools": [{"type": "function", "function": {"name": "f", "description": "TEXT"}}]',
    ],
)
def test_what_bounds_no_answer_is_not_taken_for_its_bound(more: str, gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    """A body cannot say a small bound in a place or in a form that the provider reads otherwise."""
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    key = make(running, "ci", limits=[{"tokens": 100, "per": "day"}])
    messages = '"messages": [{"role": "user", "content": "hi"}]'
    found = httpx.post(
        f"{running.url}/v1/chat/completions", headers={"authorization": f"Bearer {key}"}, timeout=60,
        content="{" + ", ".join(['"model": "real"', messages, more.replace("TEXT", "what it does " * 40)]) + "}",
    )  # fmt: skip
    assert (found.status_code, provider.seen) == (429, [])
    assert chat(running, key, max_tokens=40, metadata={"max_tokens": "1"}).status_code == 200


def test_long_requests_are_reserved_as_short_ones_are(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    """Bodies that are read beside the loop: their prompt, their definitions, and the last of several bounds."""
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    text = "a word of a turn, " * 20_000
    # 100,000 tokens with a quarter on top.
    fits, small = (make(running, name, limits=[{"tokens": most, "per": "day"}]) for name, most in (("fits", 200_000), ("small", 1000)))
    messages = [{"role": "user", "content": text}]
    assert chat(running, small, messages=messages, max_tokens=7).status_code == 429
    tools = [{"type": "function", "function": {"name": "f", "description": text}}]
    assert chat(running, small, tools=tools, max_tokens=7).status_code == 429
    padded = {"metadata": {"padding": "x" * 200_000}}
    assert chat(running, small, **padded, max_tokens=7, max_completion_tokens=2000).status_code == 429
    assert provider.seen == []
    assert chat(running, small, **padded, max_tokens=7).status_code == 200
    assert chat(running, fits, messages=messages, max_tokens=7).status_code == 200
    assert used(running, "fits")["reserved"]["tokens"] == 0


def test_a_team_has_limits_of_its_own_and_gives_some_to_its_keys(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    team = {"limits": [{"requests": 5, "per": "month"}], "keyLimits": [{"requests": 3, "per": "month"}]}
    assert ask(running, "PUT", "/api/teams/t", team)[0] == 200
    one, other = make(running, "one", team="t"), make(running, "other", team="t", limits=[])
    assert [chat(running, one).status_code for _ in range(4)] == [200, 200, 200, 429]
    assert [chat(running, other).status_code for _ in range(3)] == [200, 200, 429]
    assert 'the team "t" has a limit of 5 requests a month' in chat(running, other).json()["error"]["message"]
    # What the team refuses is not counted for the key.
    assert used(running, "other")["month"]["requests"] == 2
    assert used(running, "t", "teams")["month"]["requests"] == 5
    # A limit that is raised holds at once, with what was used before.
    team["limits"] = [{"requests": 6, "per": "month"}]
    assert ask(running, "PUT", "/api/teams/t", team)[0] == 200
    assert [chat(running, other).status_code for _ in range(2)] == [200, 429]
    assert [(row["team"], row["requests"]) for row in spend(running, "by=team")] == [("t", 6)]


def test_failures_and_clients_that_leave_release_what_was_reserved(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    key = make(running, "ci", limits=[{"tokens": 100, "per": "day"}])
    provider.answers[:] = [whole({"error": {"message": "no"}}, 500)]
    assert [chat(running, key, max_tokens=60).status_code for _ in range(3)] == [500] * 3
    provider.answers[:] = [reset]
    assert [chat(running, key, max_tokens=60).status_code for _ in range(3)] == [503] * 3
    begun, leave = threading.Event(), threading.Event()

    def waits(_: StandIn, handler: BaseHTTPRequestHandler) -> None:
        begun.set()
        leave.wait(60)

    provider.answers[:] = [waits]
    body = {"model": "real", "max_tokens": 60, "messages": [{"role": "user", "content": "hi"}]}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{running.url}/v1/chat/completions", json=body, headers={"authorization": f"Bearer {key}"}, timeout=httpx.Timeout(60, read=1))
    assert begun.is_set()
    running.wait(lambda: used(running, "ci")["reserved"]["tokens"] == 0)
    leave.set()
    provider.answers[:] = [whole(answer())]
    assert used(running, "ci")["day"]["tokens"] == 0
    assert chat(running, key, max_tokens=60).status_code == 200


def test_streams_are_charged_with_what_the_provider_counts(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    key = make(running, "ci", limits=[{"dollars": 1, "per": "day"}])
    counted = event({"choices": [], "model": "real", "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": USED}})
    provider.answers[:] = [stream(chunk("a"), chunk("b", "stop"), counted, DONE)]
    assert chat(running, key, stream=True, max_tokens=50).status_code == 200
    running.wait(lambda: spend(running)[0]["calls"] == 1)
    assert spend(running)[0]["costPicos"] == COST * PICO // 10**6
    # One that does not count is charged with its prompt and its words.
    provider.answers[:] = [stream(chunk("a"), chunk("b", "stop"), DONE)]
    assert chat(running, key, stream=True, max_tokens=50).status_code == 200
    running.wait(lambda: spend(running)[0]["calls"] == 2)
    found = spend(running)[0]
    assert (found["outputTokens"], found["inputTokens"] > 11) == (7 + 2, True)
    assert used(running, "ci")["day"]["dollars"] == found["costPicos"]
    assert used(running, "ci")["reserved"]["dollars"] == 0


def spoken(path: str) -> bytes:
    """An event with a word, in the provider's own format: that of the path where it has it, else its chat completions."""
    if path != "responses":
        return chunk(" word")
    return b"event: response.output_text.delta\n" + event({"type": "response.output_text.delta", "delta": " word"})


@pytest.mark.parametrize("path", ["chat/completions", "messages", "responses"])
def test_a_stream_whose_client_leaves_is_charged_with_what_it_said(
    path: str, gateway: Start, provider: StandIn, tmp_path: Path
) -> None:
    """Twenty words, of which the provider does not come to tell; also where they are translated."""
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    key = make(running, "ci", limits=[{"dollars": 1, "per": "day"}])
    leave = threading.Event()

    def speaks(_: StandIn, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        for _ in range(20):
            handler.wfile.write(spoken(path))
        handler.wfile.flush()
        leave.wait(60)

    provider.answers[:] = [speaks]
    said = "input" if path == "responses" else "messages"
    body = {"model": "real", "stream": True, "max_tokens": 500, said: [{"role": "user", "content": "hi"}]}
    heard = b""
    with httpx.stream("POST", f"{running.url}/v1/{path}", json=body, headers={"authorization": f"Bearer {key}"}, timeout=60) as found:
        for piece in found.iter_raw():
            heard += piece
            if heard.count(b" word") == 20:
                break
    leave.set()
    running.wait(lambda: spend(running)[0]["calls"] == 1)
    [row] = spend(running)
    assert row["outputTokens"] == 20
    assert row["costPicos"] == (row["inputTokens"] * 2 + 20 * 8) * PICO // 10**6
    assert used(running, "ci")["day"]["dollars"] == row["costPicos"]
    assert used(running, "ci")["reserved"]["dollars"] == 0


@pytest.mark.parametrize(
    ("path", "last"),
    [
        ("chat/completions", b'data: {"error":{'),
        ("messages", b'event: error\ndata: {"type":"error"'),
        ("responses", b"event: error\n"),
    ],
)
def test_a_stream_stops_where_its_limit_has_no_more_if_that_is_wanted(
    path: str, last: bytes, gateway: Start, provider: StandIn, tmp_path: Path
) -> None:
    """The answer is longer than was assumed; it ends with an event of the client's format, and the provider is left."""
    text = FILE.replace("PORT", str(provider.port)) + "virtualKeys: {assumedOutputTokens: 10, stopStreams: true}\n"
    running = gateway(text, settings=settings(f"sqlite://{tmp_path}/keys.db"))
    key = make(running, "ci", limits=[{"tokens": 150, "per": "day"}])
    gone = threading.Event()

    def speaks(_: StandIn, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        try:
            for _ in range(100_000):
                handler.wfile.write(spoken(path))
                handler.wfile.flush()
        except OSError:
            gone.set()

    provider.answers[:] = [speaks]
    said = "input" if path == "responses" else "messages"
    body = {"model": "real", "stream": True, said: [{"role": "user", "content": "hi"}]}
    found = httpx.post(f"{running.url}/v1/{path}", json=body, headers={"authorization": f"Bearer {key}"}, timeout=60)
    assert gone.wait(60)
    words = found.content.count(b" word")
    assert 74 <= words < 1000
    end = found.content.rpartition(b" word")[2]
    assert last in end
    assert b"the limit of the api key is reached" in end
    running.wait(lambda: spend(running)[0]["calls"] == 1)
    assert words <= spend(running)[0]["outputTokens"]


def test_what_a_request_spends_is_in_the_ledger_though_its_key_has_changed_meanwhile(
    gateway: Start, provider: StandIn, tmp_path: Path
) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    key = make(running, "ci")
    begun, go = threading.Event(), threading.Event()
    answered = provider.answers[0]

    def waits(found: StandIn, handler: BaseHTTPRequestHandler) -> None:
        begun.set()
        assert go.wait(60)
        answered(found, handler)

    provider.answers[:] = [waits]
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(chat, running, key)
        assert begun.wait(60)
        assert ask(running, "POST", "/api/keys/ci/rotate", {})[0] == 200
        go.set()
        assert late.result().status_code == 200
    assert [(row["model"], row["calls"]) for row in spend(running, "by=model")] == [("", 0), ("real", 1)]


def test_a_model_without_a_price_is_refused_where_money_is_limited(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    rich, free = make(running, "rich", limits=[{"dollars": 100, "per": "day"}]), make(running, "free")
    refused = chat(running, rich, "other")
    assert (refused.status_code, "the model has no price" in refused.json()["error"]["message"]) == (403, True)
    assert chat(running, free, "other").status_code == 200


def test_a_warning_comes_before_the_end(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    key = make(running, "ci", limits=[{"requests": 4, "per": "month", "warnAtPercent": 75}])
    found = [chat(running, key).headers.get("x-headgate-budget-warning") for _ in range(4)]
    assert found[:2] == [None, None]
    assert found[2].startswith('key; limit="4 requests"; window=month; left="1 requests"; ends=20')
    assert 'left="0 requests"' in found[3]


def test_limits_survive_restarts_and_reloads(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/keys.db"
    running = started(gateway, provider, url, WORKERS)
    key = make(running, "ci", limits=[{"requests": 5, "per": "month"}, {"dollars": dollars(10 * COST), "per": "month"}])
    assert [chat(running, key, max_tokens=7).status_code for _ in range(3)] == [200] * 3
    # A reload, by another key.
    make(running, "another")
    assert used(running, "ci")["month"]["requests"] == 3
    before = spend(running)
    assert running.stop() == 0
    again = started(gateway, provider, url)
    assert spend(again) == before
    account = used(again, "ci")["month"]
    assert (account["requests"], account["dollars"], account["tokens"]) == (3, 3 * COST * PICO // 10**6, 3 * USED)
    assert [chat(again, key, max_tokens=7).status_code for _ in range(3)] == [200, 200, 429]


def test_what_was_spent_just_before_the_end_is_in_the_ledger(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db", WORKERS)
    key = make(running, "ci")
    assert chat(running, key).status_code == 200
    assert running.stop() == 0
    again = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    assert [(row["model"], row["calls"]) for row in spend(again, "by=model")] == [("", 0), ("real", 1)]


def test_a_kill_of_the_whole_gateway_loses_nothing(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    """Supervisor and workers are killed right behind the last answer: the next start knows of it, in ledger, day and minute."""
    url, key = f"sqlite://{tmp_path}/keys.db", ""
    for asked in (5, 10, 15):
        running = started(gateway, provider, url, 2)
        key = key or make(running, "ci", limits=[{"requests": 1000, "per": "minute"}])
        with ThreadPoolExecutor(5) as pool:
            assert {one.result().status_code for one in [pool.submit(chat, running, key) for _ in range(5)]} == {200}
        minute = used(running, "ci")["minute"]
        kill(running)
        again = started(gateway, provider, url)
        assert sum(row["calls"] for row in spend(again)) == asked == len(provider.seen)
        account = used(again, "ci")
        assert account["month"]["dollars"] == asked * COST * PICO // 10**6
        assert again.stop() == 0
        if account["minute"]["ends"] == minute["ends"] and minute["requests"] >= 5:
            # The clock did not come to the next minute meanwhile, nor among the five requests.
            assert account["minute"]["requests"] == minute["requests"]
            break
    else:
        pytest.fail("no gateway was started within a minute of the clock")


def test_what_a_killed_worker_had_reserved_is_free_again(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db", 2)
    key = make(running, "ci", limits=[{"tokens": 100, "per": "day"}])
    assert chat(running, key, max_tokens=7).status_code == 200
    begun, leave = threading.Event(), threading.Event()

    def waits(_: StandIn, handler: BaseHTTPRequestHandler) -> None:
        begun.set()
        leave.wait(60)

    provider.answers[:] = [waits]
    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(chat, running, key, max_tokens=60)
        assert begun.wait(60)
        before = running.worker_pids()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(httpx.HTTPError):
            lost.result(60)
    leave.set()
    running.wait(lambda: len(set(running.worker_pids()) - set(before)) == 2)
    running.wait(lambda: used(running, "ci")["reserved"]["tokens"] == 0)
    assert used(running, "ci")["day"]["tokens"] == USED
    provider.answers[:] = [whole(answer())]
    running.wait(lambda: chat(running, key, max_tokens=60).status_code == 200)


def test_the_ledger_by_key_team_model_and_day_as_json_and_csv(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db")
    ask(running, "PUT", "/api/teams/t", {})
    one, other = make(running, "one", team="t"), make(running, "other")
    for key, model in ((one, "real"), (one, "other"), (other, "real"), (one, "real")):
        assert chat(running, key, model, max_tokens=7).status_code == 200
    # The answers come from the model that has a price, whatever it was asked for as.
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    rows = [(row["day"], row["key"], row["team"], row["model"], row["requests"], row["calls"], row["costPicos"]) for row in spend(running, "")]
    price = COST * PICO // 10**6
    assert rows == [
        (today, "one", "t", "", 3, 0, 0), (today, "one", "t", "other", 0, 1, price), (today, "one", "t", "real", 0, 2, 2 * price),
        (today, "other", "", "", 1, 0, 0), (today, "other", "", "real", 0, 1, price),
    ]  # fmt: skip
    _, fields, raw = ask_admin(running, "GET", "/api/spend?by=model&format=csv")
    assert fields["content-type"] == "text/csv; charset=utf-8"
    found = list(csv.DictReader(io.StringIO(raw.decode())))
    assert [(row["model"], row["requests"], row["calls"], row["cost"]) for row in found] == [
        ("", "4", "0", "0.000000000000"), ("other", "0", "1", f"{COST / 10**6:.12f}"), ("real", "0", "3", f"{3 * COST / 10**6:.12f}"),
    ]  # fmt: skip
    [total] = spend(running, "by=day")
    assert total["costPicos"] == 4 * price
    assert spend(running, "from=2020-01-01&to=2020-12-31") == []
    assert ask(running, "GET", "/api/spend?by=nonsense")[0] == 400
    assert ask(running, "GET", "/api/spend?from=yesterday")[0] == 400


def test_replicas_know_each_others_spending(gateway: Start, provider: StandIn, server: Server) -> None:
    url = server.url(server.database())
    one, other = started(gateway, provider, url), started(gateway, provider, url)
    key = make(one, "ci", limits=[{"requests": 6, "per": "month"}])
    assert [chat(one, key).status_code for _ in range(4)] == [200] * 4
    other.wait(lambda: used(other, "ci")["month"]["requests"] == 4)
    assert [chat(other, key).status_code for _ in range(3)] == [200, 200, 429]
    one.wait(lambda: used(one, "ci")["month"]["requests"] == 6)
    assert chat(one, key).status_code == 429
    # Both have one ledger, and a restart knows all of it.
    assert [row["requests"] for row in spend(one)] == [row["requests"] for row in spend(other)] == [6]
    assert one.stop() == 0
    again = started(gateway, provider, url)
    assert used(again, "ci")["month"]["requests"] == 6
    assert chat(again, key).status_code == 429


def test_a_name_that_the_database_has_no_place_for_does_not_stop_the_ledger(
    gateway: Start, provider: StandIn, server: Server
) -> None:
    """PostgreSQL has no texts with U+0000, and a client may name any model where the provider knows which there are."""
    text = FILE.replace("name: other", "name: '*'").replace("PORT", str(provider.port))
    running = gateway(text, settings=settings(server.url(server.database())))
    key = make(running, "ci")
    assert chat(running, key, "a\0b").status_code == 200
    assert chat(running, key).status_code == 200
    assert [(row["model"], row["calls"]) for row in spend(running, "by=model")] == [("", 0), ("a\ufffdb", 1), ("real", 1)]


def test_days_and_months_need_a_database(tmp_path: Path) -> None:

    text = "virtualKeys: {teams: [{name: t, limits: [{requests: 1, per: minute}, {requests: 1, per: day}]}]}\n"
    path = tmp_path / "config.yaml"
    path.write_text(text)
    done = forked_rig.run("headgate.cli.main", "--validate-only", "-f", str(path))
    assert done.returncode != 0
    assert "virtualKeys.teams[0].limits[1].per" in done.stdout + done.stderr
    assert "has to survive a restart" in done.stdout + done.stderr
