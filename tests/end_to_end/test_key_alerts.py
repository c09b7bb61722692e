"""Limits that come to their warning: one signed message in a window, to a receiver that hangs, fails or is away."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from postgres_rig import postgres
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.end_to_end.provider_stand_in import chat as answer
from tests.end_to_end.running import free_port
from tests.end_to_end.stored_rig import ask
from tests.end_to_end.virtual_keys_rig import FILE, Start, chat, make, settings

SECRET = "it is signed with this"


class Receiver:
    """An HTTP server that keeps what it gets. `behaviour` says what it does with each, the last for all others."""

    def __init__(self, port: int, *behaviour: str) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.leave = threading.Event()
        left = list(behaviour)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler) -> None:
                body = handler.rfile.read(int(handler.headers["content-length"]))
                self.got.append(({name.lower(): value for name, value in handler.headers.items()}, body))
                what = left.pop(0) if len(left) > 1 else left[0]
                if what == "by name":
                    what = {"bad": "500", "slow": "hang"}.get(json.loads(body)["name"], "200")
                if what == "hang":
                    self.leave.wait(300)
                    return
                handler.send_response(int(what))
                handler.send_header("content-length", "0")
                handler.end_headers()

            def log_message(handler, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]

    def close(self) -> None:
        self.leave.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Callable[..., Receiver]]:
    made: list[Receiver] = []

    def start(*behaviour: str, port: int = 0) -> Receiver:
        made.append(Receiver(port, *behaviour))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.fixture
def provider(stand_in: Any) -> StandIn:
    found: StandIn = stand_in(whole(answer() | {"usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}}))
    return found


def started(gateway: Start, provider: StandIn, url: str, port: int, timeout: str = "30s") -> Gateway:
    alerts = {"url": f"http://127.0.0.1:{port}/hook/token", "secret": SECRET, "timeout": timeout}
    text = FILE.replace("PORT", str(provider.port)) + f"virtualKeys: {json.dumps({'alerts': alerts})}\n"
    return gateway(text, 2, settings=settings(url))


def test_a_warning_is_sent_once_in_a_window_and_signed(
    gateway: Start, provider: StandIn, receiver: Callable[..., Receiver], tmp_path: Path
) -> None:
    hook, url = receiver("200"), f"sqlite://{tmp_path}/keys.db"
    running = started(gateway, provider, url, hook.port)
    ask(running, "PUT", "/api/teams/t", {"limits": [{"dollars": "1", "per": "month", "warnAtPercent": 1}]})
    key = make(running, "ci", team="t", limits=[{"requests": 10, "per": "month", "warnAtPercent": 50}, {"tokens": 1000, "per": "day"}])
    assert [chat(running, key, max_tokens=7).status_code for _ in range(4)] == [200] * 4
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: chat(running, key, max_tokens=7), range(20)))
    running.wait(lambda: hook.got)
    headers, body = hook.got[0]
    found = json.loads(body)
    assert {name: found[name] for name in ("type", "scope", "name", "unit", "window", "limit")} == {
        "type": "budget.warning", "scope": "key", "name": "ci", "unit": "requests", "window": "month", "limit": 10,
    }  # fmt: skip
    assert 5 <= found["used"] <= 10
    assert found["percent"] == found["used"] * 10
    assert found["starts"] < found["at"] < found["ends"]
    when, _, signed = headers["x-headgate-signature"].partition(",v1=")
    expected = hmac.new(SECRET.encode(), f"{when.removeprefix('t=')}.".encode() + body, hashlib.sha256)
    assert signed == expected.hexdigest()
    assert (headers["x-headgate-alert"], headers["content-type"]) == (found["id"], "application/json")
    running.wait_metric('gw_key_alerts_total{outcome="delivered"}', 1)
    running.wait_metric('gw_key_warnings_total{scope="key",unit="requests",window="month"}', 1)
    # Neither more requests, nor a reload or a restart tell it again; another limit does.
    make(running, "another")
    assert running.stop() == 0
    again = started(gateway, provider, url, hook.port)
    assert chat(again, key).status_code == 429
    other = make(again, "other", limits=[{"requests": 1, "per": "day", "warnAtPercent": 100}])
    assert chat(again, other).status_code == 200
    again.wait(lambda: len(hook.got) == 2)
    assert [(one["name"], one["percent"]) for one in hook.documents()][1:] == [("other", 100)]
    shown = ask(again, "GET", "/config_dump")[1]
    assert "hook/token" not in json.dumps(shown)
    assert SECRET not in json.dumps(shown)


def test_a_receiver_that_hangs_and_fails_gets_it_later_and_no_request_waits(
    gateway: Start, provider: StandIn, receiver: Callable[..., Receiver], tmp_path: Path
) -> None:
    hook = receiver("hang", "500", "429", "200")
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db", hook.port, "500ms")
    key = make(running, "ci", limits=[{"requests": 100, "per": "month", "warnAtPercent": 1}])
    assert chat(running, key).status_code == 200
    running.wait(lambda: hook.got)
    # The receiver hangs meanwhile.
    assert [chat(running, key).status_code for _ in range(5)] == [200] * 5
    running.wait(lambda: len(hook.got) == 4)
    assert len({body for _, body in hook.got}) == 1
    assert [headers["x-headgate-attempt"] for headers, _ in hook.got] == ["1", "2", "3", "4"]
    running.wait_metric('gw_key_alerts_total{outcome="delivered"}', 1)


def test_a_receiver_that_is_away_gets_it_when_it_is_back_and_one_that_refuses_is_not_asked_again(
    gateway: Start, provider: StandIn, receiver: Callable[..., Receiver], tmp_path: Path
) -> None:
    port = free_port()
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db", port)
    key = make(running, "ci", limits=[{"requests": 100, "per": "month", "warnAtPercent": 1}])
    assert chat(running, key).status_code == 200
    running.wait_log("an alert could not be sent, and is sent again later")
    hook = receiver("200", "404", port=port)
    running.wait(lambda: len(hook.got) == 1)
    other = make(running, "other", limits=[{"requests": 100, "per": "month", "warnAtPercent": 1}])
    assert chat(running, other).status_code == 200
    running.wait_metric('gw_key_alerts_total{outcome="failed"}', 1)
    assert len(hook.got) == 2
    assert "hook/token" not in running.log()


def test_of_two_gateways_one_tells(gateway: Start, provider: StandIn, receiver: Callable[..., Receiver]) -> None:
    with postgres() as server:
        hook, url = receiver("200"), server.url(server.database())
        both = [started(gateway, provider, url, hook.port) for _ in range(2)]
        key = make(both[0], "ci", limits=[{"requests": 8, "per": "month", "warnAtPercent": 25}])
        both[1].wait_log("configuration reloaded")
        assert [chat(one, key).status_code for one in both for _ in range(4)] == [200] * 8
        for one in both:
            one.wait(lambda one=one: ask(one, "GET", "/api/keys/ci")[1]["usage"]["month"]["requests"] == 8)
        for one in both:
            # Each of them has looked, and told another one that nobody has told before.
            other = make(one, f"of-{one.port}", limits=[{"requests": 1, "per": "day", "warnAtPercent": 100}])
            assert chat(one, other).status_code == 200
            one.wait(lambda one=one: any(found["name"] == f"of-{one.port}" for found in hook.documents()))
        assert sum(found["name"] == "ci" for found in hook.documents()) == 1


def test_an_alert_that_fails_or_hangs_holds_up_no_later_one(
    gateway: Start, provider: StandIn, receiver: Callable[..., Receiver], tmp_path: Path
) -> None:
    hook = receiver("by name")
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db", hook.port, "200s")
    limits = [{"requests": 100, "per": "month", "warnAtPercent": 1}]
    assert chat(running, make(running, "slow", limits=limits)).status_code == 200
    running.wait(lambda: hook.got)
    assert chat(running, make(running, "bad", limits=limits)).status_code == 200
    running.wait(lambda: len(hook.got) >= 4)
    # The first one has no answer yet, the second has failed three times and waits for its next turn.
    assert chat(running, make(running, "good", limits=limits)).status_code == 200
    running.wait_metric('gw_key_alerts_total{outcome="delivered"}', 1)
    assert running.metric('gw_key_alerts_total{outcome="failed"}') == 0
    assert [one["name"] for one in hook.documents()].count("good") == 1
