"""Content codings of LLM requests and answers: read where something has to be read, and otherwise left as they came."""

from __future__ import annotations

import gzip
import http.client
import json
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import brotli
import pytest
from tests.end_to_end.llm_formats import WAYS
from tests.end_to_end.processes import children_of
from tests.end_to_end.provider_stand_in import DONE, StandIn, chat, chunk, event, stream, whole
from tests.end_to_end.running import Gateway, Pool

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  providers:
  - {name: o, provider: openai, params: {baseUrl: "http://127.0.0.1:PORT/v1", apiKey: k}}
  - {name: a, provider: anthropic, params: {baseUrl: "http://127.0.0.1:PORT", apiKey: k}}
  models:
  - {name: plain, provider: {reference: o}}
  - {name: pinned, provider: {reference: o}, params: {model: real}}
  - {name: claude, provider: {reference: a}}
  - name: guarded
    provider: {reference: o}
    guardrails:
      streaming: true
      request: [{regex: {rules: [{pattern: "secret"}]}}]
      response: [{regex: {action: reject, rules: [{pattern: "hush"}]}}]
"""
CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress,
}  # fmt: skip
CHAT = "/v1/chat/completions"


class Rig:
    def __init__(self, folder: Path) -> None:
        self.provider = StandIn(whole(chat()))
        self.running: Gateway = Pool(lambda: folder).take(CONFIG.replace("PORT", str(self.provider.port)), (1, "{}", ""))

    def close(self) -> None:
        self.running.stop()
        self.provider.close()
        assert "Traceback" not in self.running.log()

    def ask(self, raw: bytes, path: str = CHAT, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.running.port, timeout=60)
        fields = {"content-type": "application/json", "connection": "close"}
        connection.request("POST", path, raw, fields | {key.replace("_", "-"): one for key, one in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def chat(self, model: str, text: str = "hi", *, path: str = CHAT, coding: str = "", **more: Any) -> Any:
        body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}], **more}).encode()
        if not coding:
            return self.ask(body, path)
        return self.ask(CODERS[coding](body), path, content_encoding=coding)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    found = Rig(tmp_path_factory.mktemp("codings"))
    yield found
    found.close()


@pytest.mark.parametrize("coding", CODERS)
def test_a_request_that_nobody_edits_goes_on_as_it_came(rig: Rig, coding: str) -> None:
    rig.provider.answers[:] = [whole(chat())]
    raw = CODERS[coding](b'{ "model":"plain",  "messages": [{"role":"user","content":"a secret"}] }')
    assert rig.ask(raw, content_encoding=coding)[0] == 200
    assert rig.provider.last.body == raw
    assert rig.provider.last.headers["content-encoding"] == coding
    assert rig.provider.last.headers["content-length"] == str(len(raw))


@pytest.mark.parametrize("coding", CODERS)
def test_a_request_that_is_edited_masked_or_translated_goes_on_plain(rig: Rig, coding: str) -> None:
    rig.provider.answers[:] = [whole(chat())]
    for model, told in (("pinned", '"real"'), ("guarded", "a <masked>")):
        assert rig.chat(model, "a secret", coding=coding)[0] == 200
        assert told in rig.provider.last.body.decode()
        assert "content-encoding" not in rig.provider.last.headers
    rig.provider.answers[:] = [whole(WAYS["messages"].whole)]
    assert rig.chat("claude", coding=coding)[0] == 200
    assert (rig.provider.last.path, rig.provider.last.json["max_tokens"]) == ("/v1/messages", 4096)


def test_another_provider_gets_the_same_bytes(rig: Rig) -> None:
    """The second try begins with what the client sent, coding and all."""
    text = CONFIG.replace("PORT", str(rig.provider.port)) + """
  virtualModels:
  - {name: either, routing: {failover: {targets: [{model: plain, priority: 1}, {model: pinned, priority: 2}]}}}
"""
    rig.running.write(text)
    rig.running.wait_log("configuration reloaded")
    rig.provider.answers[:] = [whole({}, 500), whole(chat())]
    assert rig.chat("either", coding="zstd")[0] == 200
    first, second = rig.provider.seen[-2:]
    assert first.headers.get("content-encoding") == second.headers.get("content-encoding")
    assert {json.loads(one.body)["model"] for one in (first, second)} == {"plain", "real"}


@pytest.mark.parametrize("coding", CODERS)
def test_answers_are_counted_and_go_on_as_they_came(rig: Rig, coding: str) -> None:
    raw = CODERS[coding](json.dumps(chat() | {"model": f"of-{coding}"}).encode())
    rig.provider.answers[:] = [whole(raw, content_encoding=coding)]
    status, headers, body = rig.chat("plain")
    assert (status, headers["content-encoding"], body) == (200, coding, raw)
    rig.running.wait_log(f"gen_ai.response.model=of-{coding}")
    line = next(one for one in rig.running.log().splitlines() if f"gen_ai.response.model=of-{coding}" in one)
    assert "gen_ai.usage.input_tokens=11" in line


def coded(raw: bytes, coding: str, kind: str) -> Any:
    def answer(_: StandIn, handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("content-type", kind)
        handler.send_header("content-encoding", coding)
        handler.send_header("connection", "close")
        handler.end_headers()
        for at in range(0, len(raw), 1 + len(raw) // 9):
            handler.wfile.write(raw[at : at + 1 + len(raw) // 9])
            handler.wfile.flush()
        handler.close_connection = True

    return answer


@pytest.mark.parametrize("coding", CODERS)
def test_coded_answers_are_translated_and_guarded(rig: Rig, coding: str) -> None:
    raw = CODERS[coding](json.dumps(WAYS["messages"].whole).encode())
    rig.provider.answers[:] = [whole(raw, content_encoding=coding)]
    status, headers, body = rig.chat("claude")
    assert (status, headers["content-encoding"]) == (200, None)
    assert json.loads(body)["choices"][0]["message"]["content"] == "hello"
    rig.provider.answers[:] = [whole(CODERS[coding](json.dumps(chat("hush now")).encode()), content_encoding=coding)]
    assert rig.chat("guarded")[0] == 403


@pytest.mark.parametrize("coding", CODERS)
def test_coded_streams_are_read_translated_and_guarded(rig: Rig, coding: str) -> None:
    events = b"".join(WAYS["messages"].events)
    rig.provider.answers[:] = [coded(CODERS[coding](events), coding, "text/event-stream")]
    status, headers, body = rig.chat("claude", stream=True)
    assert (status, headers["content-encoding"], body.endswith(DONE)) == (200, None, True)
    assert b"hel" in body
    told = chunk("a") + chunk("b") + chunk(finish="stop") + DONE
    rig.provider.answers[:] = [coded(CODERS[coding](told), coding, "text/event-stream")]
    status, headers, body = rig.chat("plain", stream=True)
    assert (status, headers["content-encoding"], body) == (200, None, told)
    rig.provider.answers[:] = [coded(CODERS[coding](chunk("hush") + told), coding, "text/event-stream")]
    assert b"guardrail_blocked" in rig.chat("guarded", stream=True)[2]


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_a_coded_stream_that_breaks_is_told(rig: Rig, coding: str) -> None:
    raw = CODERS[coding](b"".join(chunk(f"word {at}") for at in range(200)) + chunk(finish="stop") + DONE)
    rig.provider.answers[:] = [coded(raw[: len(raw) // 2] + b"\xff" * 40, coding, "text/event-stream")]
    body = rig.chat("plain", stream=True)[2]
    # An error in the stream, or a 502 where nothing of it has come yet.
    assert b"the provider's stream cannot be decoded" in body
    assert DONE not in body


def test_bodies_that_cannot_be_read(rig: Rig) -> None:
    before = len(rig.provider.seen)
    for coding in CODERS:
        answers = [rig.ask(b"\x0b\x02nothing", content_encoding=coding),
                   rig.ask(CODERS[coding](b'{"model": "plain"}' * 9)[:-6], content_encoding=coding)]  # fmt: skip
        for status, _, body in answers:
            assert (status, json.loads(body)["error"]["code"]) == (400, "request_body_decode_failed")
        long = CODERS[coding](b'{"model": "plain", "x": "' + bytes(5_000_000) + b'"}')
        status, _, body = rig.ask(long, content_encoding=coding)
        assert (status, json.loads(body)["error"]["code"]) == (413, "request_body_too_large")
    assert len(rig.provider.seen) == before


# -- a few bytes that stand for gigabytes --------------------------------------------------------------------------------
def bomb(coding: str, head: bytes, size: int) -> bytes:
    """A coded text that begins so and goes on with blanks for `size` bytes."""
    piece = b" " * (1 << 20)
    if coding == "zstd":
        # Frames in a row are one text.
        frame = zstd.compress(piece * 64)
        return zstd.compress(head) + frame * (size // (64 << 20))
    if coding == "gzip":
        member = gzip.compress(piece * 16)
        return gzip.compress(head) + member * (size // (16 << 20))
    packer = brotli.Compressor(quality=1, lgwin=24)
    return packer.process(head) + b"".join(packer.process(piece) for _ in range(size >> 20)) + packer.finish()


def peak(pid: int) -> int:
    """The most memory a process has had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))


@pytest.mark.parametrize(("coding", "size"), [("zstd", 10 << 30), ("gzip", 1 << 30), ("br", 1 << 30)])
def test_bombs_stop_at_the_limit_with_memory_flat(rig: Rig, coding: str, size: int) -> None:
    rig.provider.answers[:] = [whole(chat())]
    rig.chat("plain")
    worker = max(children_of(rig.running.process.pid), key=peak)
    chunks = chunk("a")
    heads = {"application/json": b'{"model": "plain", "x": "', "text/event-stream": chunks + b"data: "}
    raw = {kind: bomb(coding, head, size) for kind, head in heads.items()}
    before = peak(worker)
    # Requests and answers: whole ones that pass, are translated and guarded, and streams of each kind.
    if len(raw["application/json"]) < 2_000_000:
        assert rig.ask(raw["application/json"], content_encoding=coding)[0] == 413
    for model in ("claude", "guarded"):
        rig.provider.answers[:] = [whole(raw["application/json"], content_encoding=coding)]
        assert rig.chat(model)[0] in (502, 503)
    for model in ("plain", "claude", "guarded"):
        rig.provider.answers[:] = [coded(raw["text/event-stream"], coding, "text/event-stream")]
        assert len(rig.chat(model, stream=True)[2]) < 20 << 20
    rig.provider.answers[:] = [whole(raw["application/json"], content_encoding=coding)]
    status, _, body = rig.chat("plain")
    assert (status, len(body)) == (200, len(raw["application/json"])), "what nobody reads passes"
    assert peak(worker) - before < 64 << 20
    rig.provider.answers[:] = [stream(event("[DONE]"))]
