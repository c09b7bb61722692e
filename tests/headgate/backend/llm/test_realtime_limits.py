"""What events of a conversation reserve: every way to ask for an answer or for a longer one, and answers that do not come."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.backend.llm.realtime_limits import LONG_EVENT, LimitedConversation
from headgate_engine.websocket.frames import FrameReader, frame

ASSUMED = 100


class Use:
    """Notes what it is told. `over`: nothing fits any more."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.assumed = ASSUMED
        self.over = False

    def said(self, tokens: int) -> None:
        """Keep it apart: most tests are not about texts."""
        self.last = tokens

    def heard(self, tokens: int) -> None:
        """Note that something of an answer has come."""
        self.told.append(("heard",))

    def __getattr__(self, name: str) -> Any:
        return lambda *values: self.told.append((name, *values[: 1 if name == "done" else 2]))


class Tunnel:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.up, self.down, self.ends = FrameReader(True, 1 << 25), FrameReader(False, 1 << 25), 0
        self.sent: list[bytes] = []

    def tunnel_send(self, to_upstream: bytes, to_client: bytes) -> None:
        """Keep the messages for the provider."""
        self.sent += [payload for _, payload, _ in self.up.feed(to_upstream)]

    def tunnel_hold(self, client: bool, held: bool) -> None:
        """Nothing."""

    def tunnel_end(self, detail: str) -> None:
        """Count it."""
        self.ends += 1


class Guard:
    """Lets nothing pass that has the word, and says so."""

    def __init__(self, tunnel: Any) -> None:
        self.tunnel = tunnel
        self.reader = FrameReader(True, 1 << 25)

    def from_client(self, data: bytes) -> None:
        """Judge what the client says."""
        for _, payload, raw in self.reader.feed(data):
            good = b"forbidden" not in payload
            self.tunnel.tunnel_send(raw if good else b"", b"" if good else frame(b"{}"))

    def from_upstream(self, data: bytes) -> None:
        """Let pass what the provider says."""
        self.tunnel.tunnel_send(b"", data)

    def closed(self) -> None:
        """Nothing."""


class Rig:
    def __init__(self, guarded: Any = None) -> None:
        self.use, self.tunnel = Use(), Tunnel()
        self.conversation = LimitedConversation(self.tunnel, self.use, guarded)  # type: ignore[arg-type]

    def client(self, raw: bytes | dict[str, Any]) -> list[tuple[Any, ...]]:
        """What an event of the client comes to."""
        payload = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
        self.conversation.from_client(frame(payload, mask=b"abcd"))
        return self._taken()

    def provider(self, event: dict[str, Any]) -> list[tuple[Any, ...]]:
        """What an event of the provider comes to."""
        self.conversation.from_upstream(frame(json.dumps(event).encode()))
        return self._taken()

    def _taken(self) -> list[tuple[Any, ...]]:
        found, self.use.told = self.use.told, []
        return found


def asks(most: int, name: str | None = None) -> list[tuple[Any, ...]]:
    return [("asks", most, name)]


PADDING = b"A" * LONG_EVENT


@pytest.mark.parametrize(("raw", "found"), [
    (b'{"type":"response.create","event_id":"a"}', asks(0, "a")),
    (b'{"type":"response\\u002ecreate"}', asks(0)),
    (b'{"type":"response.create","response":{"max_output_tokens":500}}', asks(500)),
    (b'{"type":"response.create","response":{"max_output_token\\u0073":500}}', asks(500)),
    (b'{"type":"response.create","response":{"max_output_tokens":"inf"}}', asks(ASSUMED)),
    (b'{"type":"response.create","response":{"max_response_output_tokens":500,"max_output_tokens":7}}', asks(500)),
    (b'{"type":"response.create","response":{"max_output_tokens":500},"response":{}}', asks(500)),
    (b'{"type":"response.create","x":"input_audio_buffer.append","y":"' + PADDING + b'"}', asks(0)),
    (b'{"x":"input_audio_buffer.append","y":"' + PADDING + b'","type":"response\\u002ecreate"}', asks(0)),
    (b'{"type":"input_audio_buffer.append","y":"' + PADDING + b'","type":"response.create"}', asks(0)),
    (b'{"type":"input_audio_buffer.append","audio":"' + PADDING + b'"}', []),
    (b'{"type":"input_audio_buffer.append","audio":"AAAA"}', []),
    (b'{"type":"session.update","session":{"max_output_tokens":500}}', [("bounded", 500)]),
    (b'{"type":"session.update","session":{"max_output_tokens":7}}', []),
    (b'{"type":"session.update","session":{}}', []),
    (b'{"type":"conversation.item.create","item":{"content":"\\u0041"}}', []),
])  # fmt: skip
def test_each_way_to_ask_for_an_answer_is_reserved_before_it_goes_on(raw: bytes, found: list[tuple[Any, ...]]) -> None:
    rig = Rig()
    assert rig.client(raw) == found
    assert rig.tunnel.sent == [raw]


def test_a_session_that_bounds_nothing_any_more_is_reserved_with_what_is_assumed() -> None:
    rig = Rig()
    for most, bound in ((7, 7), ("inf", ASSUMED), (500, 500)):
        assert rig.provider({"type": "session.updated", "session": {"max_output_tokens": most}}) == [("bounded", bound)]
    assert rig.provider({"type": "session.updated", "session": {}}) == []
    assert rig.client({"type": "session.update", "session": {"max_output_tokens": 400}}) == []


@pytest.mark.parametrize(("error", "found"), [
    ({"event_id": "a", "code": "x"}, [("refused", "a")]),
    ({"event_id": None, "code": "conversation_already_has_active_response"}, [("refused", None)]),
    ({"code": "invalid_value", "param": "response.max_output_tokens"}, [("refused", None)]),
    ({"code": "invalid_value", "param": "session.voice"}, []),
    ({"code": "rate_limit_exceeded", "param": None}, []),
])  # fmt: skip
def test_an_answer_that_will_not_come_is_not_waited_for(error: dict[str, Any], found: list[tuple[Any, ...]]) -> None:
    assert Rig().provider({"type": "error", "error": error}) == found


def test_what_a_client_has_written_ends_no_answer() -> None:
    rig = Rig()
    assert rig.provider({"type": "response.created", "response": {"metadata": {"a": "response.done"}}}) == [("begun",)]
    assert rig.provider({"type": "conversation.item.created", "item": {"id": "response.done"}}) == []
    [(name, *_)] = rig.provider({"type": "response.done", "response": {}})
    assert name == "done"


def test_a_text_about_a_transcript_is_heard() -> None:
    rig = Rig()
    assert rig.provider({"type": "response.output_text.delta", "delta": "a transcript"}) == [("heard",)]
    assert rig.provider({"type": "response.output_audio_transcript.delta", "delta": "a"}) == []


def test_what_a_guard_refuses_reserves_nothing() -> None:
    rig = Rig(Guard)
    said = {"type": "response.create", "response": {"instructions": "forbidden"}}
    assert rig.client(said) == []
    assert rig.tunnel.sent == []
    assert rig.client({"type": "response.create"}) == asks(0)
    assert len(rig.tunnel.sent) == 1


def test_nothing_passes_a_guard_once_limits_have_no_more() -> None:
    rig = Rig(Guard)
    rig.use.over = True
    rig.client({"type": "response.create"})
    rig.client({"type": "response.create"})
    # The frame of the close handshake (RFC 6455 section 5.5.1), with code 1000.
    assert (rig.tunnel.sent, rig.tunnel.ends) == ([b"\x03\xe8"], 1)


def test_a_picture_counts_as_in_other_requests_and_only_where_it_is_read() -> None:
    rig = Rig()
    picture = "data:image/png;base64," + "A" * (2 * LONG_EVENT)

    def said(part: dict[str, Any]) -> int:
        rig.client({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [part]}})
        return rig.use.last

    assert 1600 < said({"type": "input_image", "image_url": picture}) < 1700
    assert 1600 < said({"type": "input_image", "image_url": "https://a.test/b.png"}) < 1700
    # One between many small values is not looked for.
    assert said({"type": "input_image", "image_url": picture, "other": [{}] * 2000}) > len(picture) // 3
    # A text that looks like one is a text.
    short = picture[:30_000]
    assert said({"type": "input_text", "text": short}) > 10_000
    assert said({"type": "input_text", "image_url": short}) > 10_000
    # It may not hide what asks for an answer.
    told = {"type": "response.create", "response": {"max_output_tokens": 70}, "item": {"content": [{"type": "input_image", "image_url": picture}]}}
    assert ("asks", 70, None) in rig.client(told)
