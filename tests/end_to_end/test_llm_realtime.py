"""Guards of realtime conversations, with a real WebSocket client and server: one gateway for the whole file."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.llm_rig import served
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: patterns
  gateways: [default]
  matches: [{path: {pathPrefix: /patterns}}]
  policies: {urlRewrite: {path: {prefix: /}}}
  backends:
  - ai: {name: patterns, provider: {openAI: {}}, hostOverride: "127.0.0.1:BACKEND"}
    policies:
      ai:
        routes: {/v1/realtime: realtime}
        promptGuard:
          request:
          - regex: {builtins: [Email]}
          - regex: {action: reject, rules: [{pattern: forbidden, name: words}]}
          response:
          - regex: {action: reject, rules: [{pattern: "secret plan"}]}
            rejection: {body: not for you}
          streaming: {mode: Enabled, windowBytes: 20, overlapBytes: 16}
- name: asked
  gateways: [default]
  matches: [{path: {pathPrefix: /asked}}]
  policies: {urlRewrite: {path: {prefix: /}}}
  backends:
  - ai: {name: asked, provider: {openAI: {}}, hostOverride: "127.0.0.1:BACKEND"}
    policies:
      ai:
        promptGuard:
          request: [{webhook: {target: {host: "127.0.0.1:WEBHOOK"}}}]
          response: [{webhook: {target: {host: "127.0.0.1:WEBHOOK"}}}]
          streaming: {mode: Enabled, windowBytes: 20, overlapBytes: 16}
- name: masked
  gateways: [default]
  matches: [{path: {pathPrefix: /masked}}]
  policies: {urlRewrite: {path: {prefix: /}}}
  backends:
  - ai: {name: masked, provider: {openAI: {}}, hostOverride: "127.0.0.1:BACKEND"}
    policies:
      ai:
        promptGuard:
          request:
          - regex: {builtins: [Email], rules: [{pattern: ^word}]}
          - regex: {action: reject, rules: [{pattern: forbidden}]}
          response:
          - regex: {action: mask, rules: [{pattern: "secret [a-z]+"}]}
          - regex: {action: reject, rules: [{pattern: bomb}]}
          streaming: {mode: Enabled, masks: Apply, windowBytes: 20, overlapBytes: 16}
- name: keyed
  gateways: [default]
  matches: [{path: {pathPrefix: /keyed}}]
  policies: {urlRewrite: {path: {prefix: /}}}
  backends:
  - ai: {name: keyed, provider: {openAI: {}}, hostOverride: "127.0.0.1:BACKEND"}
    policies: {backendAuth: {key: sk-own}, ai: {routes: {/v1/realtime: realtime}}}
- name: off
  gateways: [default]
  backends:
  - ai: {name: "off", provider: {openAI: {}}, hostOverride: "127.0.0.1:BACKEND"}
    policies: {ai: {promptGuard: {request: [{regex: {action: reject, rules: [{pattern: forbidden}]}}]}}}
"""
ITEM = "conversation.item.create"
# A client's event that says nothing.
SILENT = {"type": "conversation.item.retrieve"}


class Peer:
    """A realtime server that does what it is told: an event with `"say": [events]` is answered with these, anything else with `heard`.

    `seen`: what came. `extensions`, `protocols`, `key`: what the last handshake offered.
    """

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.extensions: str | None = None
        self.protocols: list[str] = []
        self.key: str | None = None
        self.server = serve(self._talk, "127.0.0.1", 0, compression="deflate", select_subprotocol=self._choose)
        self.port = self.server.socket.getsockname()[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _choose(self, connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
        return next((one for one in offered if one == "realtime"), None)

    def _talk(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        self.extensions = connection.request.headers.get("sec-websocket-extensions")
        self.protocols = connection.request.headers.get_all("sec-websocket-protocol")
        self.key = connection.request.headers.get("authorization")
        for raw in connection:
            if isinstance(raw, bytes):
                connection.send(raw)
                continue
            told = json.loads(raw)
            self.seen.append(told)
            for event in told.get("say", [{"type": "heard"}]):
                connection.send(json.dumps(event, ensure_ascii=False))
            if told.get("then") == "close":
                return


class Judge:
    """A webhook that refuses what says `bad`, and notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))["body"]
                [one] = body.get("messages") or [choice["message"] for choice in body["choices"]]
                outer.asked.append((self.path, one["content"]))
                refused = {"body": "refused", "status_code": 403}
                raw = json.dumps({"action": refused if "bad" in one["content"] else {}}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Rig:
    def __init__(self, running: Gateway, peer: Peer, judge: Judge) -> None:
        self.running, self.peer, self.judge = running, peer, judge

    def call(self, prefix: str = "/patterns", protocols: tuple[str, ...] = ()) -> ClientConnection:
        self.peer.seen.clear()
        self.judge.asked.clear()
        return connect(f"ws://127.0.0.1:{self.running.port}{prefix}/v1/realtime?model=m", open_timeout=60,
                       subprotocols=[Subprotocol(one) for one in protocols] or None)  # fmt: skip


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    peer, judge = Peer(), Judge()
    text = CONFIG.replace("BACKEND", str(peer.port)).replace("WEBHOOK", str(judge.port))
    try:
        with served(tmp_path_factory.mktemp("realtime"), text) as running:
            yield Rig(running, peer, judge)
    finally:
        peer.server.shutdown()
        judge.server.shutdown()


def test_the_key_of_a_browser_goes_no_further_than_the_gateway(rig: Rig) -> None:
    offered = ("realtime", "openai-insecure-api-key.sk-client", "openai-beta.realtime-v1")
    with rig.call("/keyed", offered) as call:
        call.send("{}")
        assert hear(call) == {"type": "heard"}
        assert call.subprotocol == "realtime"
    assert rig.peer.protocols == ["realtime, openai-beta.realtime-v1"]
    assert rig.peer.key == "Bearer sk-own"
    # Without a key of the gateway it is the client's key that the provider is to see.
    with rig.call("/patterns", offered) as call:
        call.send(json.dumps(SILENT))
        assert hear(call) == {"type": "heard"}
        assert call.subprotocol == "realtime"
    assert rig.peer.protocols == [", ".join(offered)]
    assert "sk-client" not in rig.running.log()


def way(**item: Any) -> dict[str, Any]:
    return {"type": ITEM, "item": item}


BAD = "forbidden bad"
WAYS = [
    {"type": "session.update", "session": {"instructions": BAD}},
    {"type": "response.create", "response": {"instructions": BAD}},
    {"type": "response.create", "response": {"input": [{"role": "user", "content": [{"type": "input_text", "text": BAD}]}]}},
    way(role="user", content=BAD),
    way(role="system", content=[{"type": "input_text", "text": BAD}]),
    way(role="assistant", content=[{"type": "output_text", "text": BAD}]),
    {"type": "conversation.item.replace", "item": {"role": "user", "content": BAD}},
]


def said(*texts: str) -> str:
    content = [{"type": "input_text", "text": text} for text in texts]
    return json.dumps({"type": ITEM, "item": {"type": "message", "role": "user", "content": content}})


def hear(call: ClientConnection) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call.recv(timeout=60))
    return found


def deltas(*texts: str, last: bool = True) -> list[dict[str, Any]]:
    """The events of a response of these pieces."""
    whole = "".join(texts)
    part = {"item_id": "i", "content_index": 0}
    found: list[dict[str, Any]] = [{"type": "response.output_text.delta", **part, "delta": text} for text in texts]
    if last:
        item = {"id": "i", "content": [{"type": "output_text", "text": whole}]}
        found += [
            {"type": "response.output_text.done", **part, "text": whole},
            {"type": "response.content_part.done", **part, "part": {"type": "output_text", "text": whole}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.done", "response": {"status": "completed", "output": [item], "usage": {"input_tokens": 3}}},
        ]
    return found


@pytest.mark.parametrize("prefix", ["/patterns", "/asked"])
def test_what_a_user_says_is_judged_before_it_goes_on(rig: Rig, prefix: str) -> None:
    with rig.call(prefix) as call:
        call.send(said("all", "is well"))
        assert hear(call) == {"type": "heard"}
        call.send(said("bad and ", "forbidden"))
        refused = hear(call)
        assert (refused["type"], refused["error"]["code"]) == ("error", "guardrail_intervention")
        # So is all that a client may say to a model by other ways.
        for event in WAYS:
            call.send(json.dumps(event))
            refused = hear(call)
            assert refused["error"]["code"] == "guardrail_intervention", event
        call.send(json.dumps({"type": "session.update", "session": {"voice": "v"}}))
        assert hear(call) == {"type": "heard"}
        call.send(said("a@b.example"))
        assert hear(call) == {"type": "heard"}
    assert [one["type"] for one in rig.peer.seen] == [ITEM, "session.update", ITEM]
    # Masks let pass, as on streams.
    assert rig.peer.seen[-1]["item"]["content"][0]["text"] == "a@b.example"
    assert rig.peer.extensions is None
    if prefix == "/asked":
        asked = [text for _, text in rig.judge.asked]
        assert asked == ["all is well", "bad and  forbidden", *["forbidden bad"] * (len(WAYS) - 1), "a@b.example"]


def test_a_binary_message_cannot_be_judged_and_ends_the_conversation(rig: Rig) -> None:
    with rig.call() as call:
        call.send(said("all is well"))
        assert hear(call) == {"type": "heard"}
        call.send(json.dumps({"type": ITEM, "item": {"role": "user", "content": "forbidden"}}).encode())
        with pytest.raises(ConnectionClosed):
            call.recv(timeout=60)
    assert [one["type"] for one in rig.peer.seen] == [ITEM]


@pytest.mark.parametrize("prefix", ["/patterns", "/asked"])
def test_what_a_model_says_waits_until_it_is_judged(rig: Rig, prefix: str) -> None:
    with rig.call(prefix) as call:
        events = deltas("It is ", "a fine day for ", "everybody who is \u2013 ", "here.")
        call.send(json.dumps({**SILENT, "say": events}))
        assert [hear(call) for _ in events] == events
    if prefix == "/asked":
        texts = [text for path, text in rig.judge.asked if path == "/response"]
        assert "".join(texts).startswith("It is a fine day for ")
        assert texts[-1].endswith("here.")


@pytest.mark.parametrize("prefix", ["/patterns", "/asked"])
@pytest.mark.parametrize("pieces", [("the bad secr", "et plan is th", "at we leave"), ("bad secret plan",)])
def test_a_refused_answer_is_cancelled_and_the_next_one_passes(rig: Rig, prefix: str, pieces: tuple[str, ...]) -> None:
    with rig.call(prefix) as call:
        audio = {"type": "response.output_audio.delta", "delta": "AAAA"}
        call.send(json.dumps({**SILENT, "say": [audio, *deltas(*pieces)]}))
        assert hear(call) == audio
        refused = hear(call)
        assert (refused["type"], refused["error"]["type"]) == ("error", "guardrail_blocked")
        if prefix == "/patterns":
            assert refused["error"]["message"] == "not for you"
        # No event that says the text again passes, and the last one has lost it.
        over = hear(call)
        assert (over["type"], over["response"]["output"]) == ("response.done", [])
        assert over["response"]["usage"] == {"input_tokens": 3}
        while hear(call) != {"type": "heard"}:      # the server's answer to response.cancel
            pass
        assert rig.peer.seen[-1] == {"type": "response.cancel"}
        good = deltas("all is well")
        call.send(json.dumps({**SILENT, "say": good}))
        assert [hear(call) for _ in good] == good


def test_masks_that_apply_change_what_a_user_says_and_nothing_else(rig: Rig) -> None:
    masks = 'gw_guardrail_checks_total{phase="Request",action="Mask"'
    before = rig.running.metric(masks)
    event = (
        '{"event_id":"e1", "type":"conversation.item.create","item":{"role":"user","type":"message","content":['
        '{"type":"input_text","text":" word \\u00e9 a@b"},{"type":"input_audio","audio":"AAAA"},'
        '{"x":1.50,"type":"input_text","text":"c@d.example \\ud83d\\ude00"}]}}'
    )
    with rig.call("/masked") as call:
        call.send(said("nothing to mask"))
        assert hear(call) == {"type": "heard"}
        # In three frames: the message is one.
        call.send([event[:40], event[40:150], event[150:]])
        assert hear(call) == {"type": "heard"}
        call.send(said("a@b.example is forbidden"))
        assert hear(call)["type"] == "error"
    [plain, masked] = rig.peer.seen
    assert plain["item"]["content"][0]["text"] == "nothing to mask"
    assert masked["event_id"] == "e1"
    assert [part.get("text") for part in masked["item"]["content"]] == [
        "<masked> é a@b", None, "<EMAIL_ADDRESS> \U0001f600",
    ]  # fmt: skip
    assert masked["item"]["content"][2]["x"] == 1.5
    rig.running.wait_metric(masks, before + 2)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 64])
def test_masks_that_apply_find_what_a_model_says_however_it_is_cut(rig: Rig, size: int) -> None:
    whole = "The secret plan is \u2013 to say no secret word to anybody."
    events = deltas(*(whole[at : at + size] for at in range(0, len(whole), size)))
    with rig.call("/masked") as call:
        call.send(json.dumps({**SILENT, "say": [*events, *deltas("all is well")]}))
        heard = [hear(call) for _ in range(len(events) + len(deltas("x")))]
    told = [event for event in heard if event["type"] == "response.output_text.delta"]
    masked = "The <masked> is \u2013 to say no <masked> to anybody."
    assert "".join(event["delta"] for event in told) == masked + "all is well"
    # What repeats the text has lost it as well.
    end = heard[len(events) - 4 : len(events)]
    item = {"id": "i", "content": [{"type": "output_text", "text": masked}]}
    assert [event["type"] for event in end] == [event["type"] for event in events[-4:]]
    assert (end[0]["text"], end[1]["part"]["text"], end[2]["item"]) == (masked, masked, item)
    assert (end[3]["response"]["output"], end[3]["response"]["usage"]) == ([item], {"input_tokens": 3})


def test_audio_waits_for_no_mask_and_a_refusal_drops_what_does(rig: Rig) -> None:
    masks = 'gw_guardrail_checks_total{phase="Response",action="Mask"'
    before = rig.running.metric(masks)
    audio = {"type": "response.output_audio.delta", "delta": "AAAA"}
    with rig.call("/masked") as call:
        call.send(json.dumps({**SILENT, "say": [*deltas("one secret plan, and a long story; then a se", last=False), audio]}))
        assert hear(call) == audio
        call.send(json.dumps({**SILENT, "say": deltas("cret bomb that goes off", last=True)}))
        assert hear(call)["error"]["code"] == "guardrail_intervention"
        assert hear(call)["response"]["output"] == []
        while hear(call) != {"type": "heard"}:      # the server's answer to response.cancel
            pass
        good = deltas("no secret plan")
        call.send(json.dumps({**SILENT, "say": good}))
        assert hear(call)["delta"] == "no <masked>"
    rig.running.wait_metric(masks, before + 1)


def test_what_waits_for_a_mask_goes_out_in_front_of_the_end(rig: Rig) -> None:
    with rig.call("/masked") as call:
        call.send(json.dumps({**SILENT, "say": deltas("a text that is long enough to be judged", last=False), "then": "close"}))
        assert hear(call)["delta"] == "a text that is long enough to be judged"


def test_json_that_only_some_can_read_is_not_said(rig: Rig) -> None:
    with rig.call() as call:
        call.send(f'{{"type":"{ITEM}","x":{"[" * 600}{"]" * 600}}}')
        with pytest.raises(ConnectionClosed):
            call.recv(timeout=60)
    rig.running.wait_log("cannot be read")


def test_a_text_without_its_end_is_judged_with_the_response(rig: Rig) -> None:
    with rig.call() as call:
        events = [*deltas("a secret plan", last=False), {"type": "response.done", "response": {"output": []}}]
        call.send(json.dumps({**SILENT, "say": events}))
        assert hear(call)["type"] == "error"


def test_checks_are_counted_and_logged(rig: Rig) -> None:
    rejected = 'gw_guardrail_checks_total{phase="Request",action="Reject"'
    before = rig.running.metric(rejected)
    with rig.call() as call:
        for _ in range(2):
            call.send(said("forbidden"))
            assert hear(call)["type"] == "error"
    rig.running.wait_metric(rejected, before + 2)
    rig.running.wait_log("gw.ai.guardrail=")


def test_what_cannot_be_read_ends_the_conversation(rig: Rig) -> None:
    with rig.call() as call:
        call.socket.sendall(b"\xc1\x81\0\0\0\0x")       # an extension that nobody agreed on
        with pytest.raises(ConnectionClosed):
            call.recv(timeout=60)
    rig.running.wait_log("cannot be read")


def test_without_streaming_everything_passes(rig: Rig) -> None:
    with rig.call("") as call:
        call.send(said("forbidden"))
        assert hear(call) == {"type": "heard"}
