"""The books: what providers billed, to the token, beside what log lines, metrics, token limits and the catalog counted,
for every format and however a call ends.
"""

from __future__ import annotations

import gzip
import http.client
import json
import re
import tempfile
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.llm_formats import WAYS, Spoken, Tokens
from tests.end_to_end.provider_stand_in import Answer, StandIn, reset, stream, whole
from tests.end_to_end.running import Pool
from tests.end_to_end.tracing import wait_for

LIMIT = 9_000_000
CONFIG = """
gateways:
  default: {port: {port}}
llm:
  providers:
  - {name: o, provider: openai, params: {baseUrl: "http://127.0.0.1:PORT/v1", apiKey: k}, defaults: {streamTimeouts: {stall: 1s}}}
  - {name: a, provider: anthropic, params: {baseUrl: "http://127.0.0.1:PORT", apiKey: k}, defaults: {streamTimeouts: {stall: 1s}}}
  - {name: g, provider: gemini, params: {baseUrl: "http://127.0.0.1:PORT", apiKey: k}, defaults: {streamTimeouts: {stall: 1s}}}
  - {name: b, provider: bedrock, params: {baseUrl: "http://127.0.0.1:PORT", apiKey: k}, defaults: {streamTimeouts: {stall: 1s}}}
  - {name: c, provider: cohere, params: {baseUrl: "http://127.0.0.1:PORT", apiKey: k}}
  models:
MODELS
  - {name: probe, provider: {reference: o}}
  virtualModels:
VIRTUAL
  policies:
    localRateLimit: [{maxTokens: LIMIT, tokensPerFill: 0, fillInterval: 24h, type: tokens}]
"""
RATES = {"input": "2", "output": "8.000001", "cacheRead": "0.5", "cacheWrite": "2.5", "reasoning": "8.000001"}
PROVIDERS = {"o": "openai", "a": "anthropic", "g": "gcp.gemini", "b": "aws.bedrock", "c": "cohere"}


class Books:
    """One gateway with one provider. `calls`: how many were made, for model names of their own."""

    def __init__(self, folder: Path) -> None:
        self.provider = StandIn(whole({}))
        self.calls = 0
        models = "".join(
            f'  - {{name: "{one}-*", provider: {{reference: {one}}}}}\n'
            f'  - {{name: "{one}hasty-*", provider: {{reference: {one if one == "c" else one + "hasty"}}}}}\n'
            f"  - {{name: {one}first, provider: {{reference: {one}}}}}\n"
            f"  - {{name: {one}second, provider: {{reference: {one}}}}}\n"
            for one in PROVIDERS
        )
        virtual = "".join(
            f"  - {{name: {one}either, routing: {{failover: {{targets: "
            f"[{{model: {one}first, priority: 1}}, {{model: {one}second, priority: 2}}]}}}}}}\n"
            for one in PROVIDERS
        )
        text = CONFIG.replace("MODELS\n", models).replace("VIRTUAL\n", virtual)
        # Each is there a second time, with little patience.
        patient = [line for line in text.splitlines() if "stall: 1s" in line]
        for line in patient:
            own = line.replace("stall: 1s", "stall: 60s")
            text = text.replace(line, f"{own}\n{line.replace(', provider', 'hasty, provider', 1)}")
        text = text.replace("PORT", str(self.provider.port)).replace("LIMIT", str(LIMIT))
        names = {name: {"rates": RATES} for name in ("real", "claude-real")}
        names |= {f"{one}{which}": {"rates": RATES} for one in PROVIDERS for which in ("first", "second")}
        catalog = {"providers": {name: {"models": names} for name in PROVIDERS.values()}}
        settings = "modelCatalog:\n- inline: " + json.dumps(json.dumps(catalog))
        pool = Pool(lambda: Path(tempfile.mkdtemp(dir=folder)))
        self.running = pool.take(text, (2, "{}", settings))

    def close(self) -> None:
        self.running.stop()
        self.provider.close()
        assert "Traceback" not in self.running.log()

    def left(self) -> int:
        """Tokens that the limit has left; asking costs none."""
        found = self.send("/v1/messages/count_tokens", b'{"model":"probe","messages":[]}')
        assert found.status == 200
        return int(found.headers["x-ratelimit-remaining"])

    def send(self, path: str, body: bytes) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.running.port, timeout=30)
        headers = {"content-type": "application/json", "connection": "close"}
        connection.request("POST", path, body, headers)
        return connection.getresponse()

    def leave(self, path: str, body: bytes, behind: bytes) -> None:
        """Ask, and go as soon as that text has come."""
        answer = self.send(path, body)
        found = b""
        while behind not in found:
            piece = answer.read1()
            assert piece, found
            found += piece
        answer.close()

    def line(self, model: str) -> str:
        """The log line of a model, which one request had."""
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline:
            for line in self.running.log().splitlines():
                if f"gen_ai.request.model={model} " in line:
                    return line
            time.sleep(0.01)
        raise AssertionError(f"no line of {model}")

    def metrics(self) -> dict[str, str]:
        _, page = self.running.fetch(f"http://127.0.0.1:{self.running.stats}/metrics")
        return dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Books]:
    found = Books(tmp_path_factory.mktemp("books"))
    yield found
    found.close()


def field(line: str, name: str) -> int:
    found = re.search(rf"gen_ai\.usage\.{re.escape(name)}=(\d+)", line)
    return int(found[1]) if found else 0


def counted(page: dict[str, str], model: str, kind: str) -> int:
    start = f'gw_gen_ai_client_token_usage_sum{{gen_ai_token_type="{kind}"'
    return sum(int(value) for key, value in page.items() if key.startswith(start) and f'request_model="{model}"' in key)


def price(billed: Tokens, reasoning: int) -> Decimal:
    """In dollars, by hand."""
    plain = billed.input - billed.cached - billed.written
    return (
        plain * Decimal(2) + billed.cached * Decimal("0.5") + billed.written * Decimal("2.5")
        + billed.output * Decimal("8.000001") + 0 * reasoning
    ) / 10**6  # fmt: skip


def audit(books: Books, model: str, before: int, billed: Tokens | None, outcome: str = "") -> str:
    """Everything that counts tokens says what the provider billed."""
    line = books.line(model)
    told = billed or Tokens()
    names = ("input_tokens", "output_tokens", "cache_read.input_tokens", "cache_creation.input_tokens")
    assert tuple(field(line, name) for name in names) == (told.input, told.output, told.cached, told.written), line
    page = books.metrics()
    kinds = ("input", "output", "input_cache_read", "input_cache_write")
    assert tuple(counted(page, model, kind) for kind in kinds) == (told.input, told.output, told.cached, told.written)
    assert before - books.left() == told.total
    cost = [Decimal(value) for key, value in page.items()
            if key.startswith("gw_gen_ai_client_cost_usd_total") and f'request_model="{model}"' in key]  # fmt: skip
    priced = "request_model" if billed is None or not billed.total else "real"
    if billed is not None and (priced in line or model.endswith("second")):
        assert sum(cost) == price(billed, 0), (cost, line)
        logged = re.search(r"gw\.ai\.usage\.cost\.total=(\S+)", line)
        assert logged is not None
        assert Decimal(logged[1]) == price(billed, 0)
    else:
        assert not cost
    if billed is None and "http.status=200" in line:
        assert "gw.ai.usage.source=none" in line
    assert outcome in line
    return line


def begin(books: Books, way: Spoken, *answers: Answer, hasty: bool = False) -> tuple[str, int]:
    """A model name of its own, and what the limit had left before."""
    books.calls += 1
    books.provider.answers[:] = answers
    return f"{way.model}{'hasty' if hasty else ''}-{books.calls}", books.left()


@pytest.mark.parametrize("name", WAYS)
def test_a_whole_answer(books: Books, name: str) -> None:
    way = WAYS[name]
    model, before = begin(books, way, whole(way.whole))
    answer = books.send(*way.asked(model, False))
    assert (answer.status, json.loads(answer.read()) != {}) == (200, True)
    audit(books, model, before, way.billed)


@pytest.mark.parametrize("name", WAYS)
def test_a_compressed_answer(books: Books, name: str) -> None:
    way = WAYS[name]
    raw = gzip.compress(json.dumps(way.whole).encode())
    model, before = begin(books, way, whole(raw, content_encoding="gzip"))
    answer = books.send(*way.asked(model, False))
    body = answer.read()
    if answer.headers["content-encoding"] == "gzip":
        assert body == raw, "what is not edited goes on as it came"
    assert answer.status == 200
    assert books.provider.last.headers["accept-encoding"] == "identity"
    audit(books, model, before, way.billed)


STREAMS = [name for name, way in WAYS.items() if way.events]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream(books: Books, name: str) -> None:
    way = WAYS[name]
    model, before = begin(books, way, stream(*way.events, kind=way.kind))
    assert way.told in books.send(*way.asked(model, True)).read()
    audit(books, model, before, way.billed)
    started = f'request_model="{model}"'
    ticks = {key: value for key, value in books.metrics().items() if "first_token_count" in key and started in key}
    assert list(ticks.values()) == ["1"]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_whose_client_leaves_early(books: Books, name: str) -> None:
    way = WAYS[name]
    model, before = begin(books, way, stream(*way.events[: way.early], end="stall", kind=way.kind))
    books.leave(*way.asked(model, True), way.told)
    audit(books, model, before, way.known)


LAST = {
    "/v1/chat/completions": b"[DONE]",
    "/v1/messages": b"message_stop",
    "/v1/responses": b"event: response.completed",
}


# A stream of Gemini ends with its body, not with an event.
@pytest.mark.parametrize("name", [name for name in STREAMS if WAYS[name].path in LAST and WAYS[name].model != "g"])
def test_a_stream_whose_client_leaves_with_the_last_event(books: Books, name: str) -> None:
    way = WAYS[name]
    model, before = begin(books, way, stream(*way.events, end="stall", kind=way.kind))
    books.leave(*way.asked(model, True), LAST[way.path])
    assert "client closed" not in audit(books, model, before, way.billed)


@pytest.mark.parametrize("end", ["cut", "stall"])
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_breaks(books: Books, name: str, end: str) -> None:
    way = WAYS[name]
    model, before = begin(books, way, stream(*way.events[: way.early], end=end, kind=way.kind), hasty=end == "stall")
    books.send(*way.asked(model, True)).read()
    audit(books, model, before, way.known, "error=")


@pytest.mark.parametrize("fault", [whole({"error": {"message": "no"}}, 429), whole({}, 500), reset],
                         ids=["429", "500", "reset"])  # fmt: skip
@pytest.mark.parametrize("name", WAYS)
def test_a_call_that_another_provider_answers(books: Books, name: str, fault: Answer) -> None:
    way = WAYS[name]
    _, before = begin(books, way, fault, whole(way.whole))
    earlier = books.metrics()
    answer = books.send(*way.asked(f"{way.model}either", False))
    assert answer.status == 200
    answer.read()
    assert before - books.left() == way.billed.total
    # Which of the two was asked first depends on what went wrong before.
    names = [f"{way.model}{which}" for which in ("first", "second")]

    def grown() -> list[int]:
        page = books.metrics()
        return [sum(counted(page, name, kind) - counted(earlier, name, kind) for name in names) for kind in ("input", "output")]

    # The client may have its answer an instant before the books are closed.
    wait_for(lambda: grown() != [0, 0])
    assert grown() == [way.billed.input, way.billed.output]
    assert len(books.provider.seen) >= 2


@pytest.mark.parametrize("name", WAYS)
def test_errors_cost_nothing(books: Books, name: str) -> None:
    way = WAYS[name]
    model, before = begin(books, way, whole({"error": {"message": "no", "type": "x"}}, 400))
    answer = books.send(*way.asked(model, False))
    assert answer.status == 400
    answer.read()
    audit(books, model, before, None)


def test_an_answer_that_cannot_be_told_was_billed_all_the_same(books: Books) -> None:
    way = WAYS["completions at anthropic"]
    strange = {"type": "message", "model": "claude-real", "content": "?", "usage": way.whole["usage"]}
    model, before = begin(books, way, whole(strange))
    answer = books.send(*way.asked(model, False))
    assert answer.status == 502
    answer.read()
    audit(books, model, before, way.billed)


def test_a_whole_answer_that_the_client_does_not_wait_for(books: Books) -> None:
    way = WAYS["completions"]
    raw = json.dumps(way.whole).encode()

    def slow(stand_in: StandIn, handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(raw)))
        handler.end_headers()
        handler.wfile.write(raw[:-1])
        handler.wfile.flush()
        handler.connection.settimeout(30)
        assert handler.connection.recv(1) == b""
        handler.close_connection = True

    model, before = begin(books, way, slow)
    books.leave(*way.asked(model, False), raw[-30:-1])
    audit(books, model, before, way.billed, "client closed")


@pytest.mark.parametrize("streams", [False, True])
def test_answers_too_long_to_be_kept(books: Books, streams: bool) -> None:
    way = WAYS["responses"]
    long = way.whole | {"output": [], "padding": 'say "usage": ' * 250_000}
    long = {name: long[name] for name in (*(set(long) - {"usage"}), "usage")}
    last = b"event: response.completed\ndata: " + json.dumps({"type": "x", "response": long}).encode() + b"\n\n"
    answer = stream(*way.events[:2], last) if streams else whole(long)
    model, before = begin(books, way, answer)
    found = books.send(*way.asked(model, streams)).read()
    assert len(found) > 3_000_000
    audit_long(books, model, before, way.billed)


def audit_long(books: Books, model: str, before: int, billed: Tokens) -> None:
    line = books.line(model)
    assert (field(line, "input_tokens"), field(line, "output_tokens")) == (billed.input, billed.output)
    assert before - books.left() == billed.total


def test_a_compressed_stream_is_read_and_passed_on_plain(books: Books) -> None:
    way = WAYS["completions"]
    raw = gzip.compress(b"".join(way.events))

    def coded(_: StandIn, handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("content-encoding", "gzip")
        handler.send_header("connection", "close")
        handler.end_headers()
        for at in range(0, len(raw), 7):
            handler.wfile.write(raw[at : at + 7])
            handler.wfile.flush()
        handler.close_connection = True

    model, before = begin(books, way, coded)
    answer = books.send(*way.asked(model, True))
    assert answer.headers["content-encoding"] is None
    assert answer.read().endswith(b"data: [DONE]\n\n")
    audit(books, model, before, way.billed)


def test_the_workers_count_together(books: Books) -> None:
    way = WAYS["completions"]
    books.calls += 1
    books.provider.answers[:] = [whole(way.whole)]
    model, before = f"o-{books.calls}", books.left()
    for _ in range(8):
        books.send(*way.asked(model, False)).read()
    deadline = time.monotonic() + 40
    # A client has its answer before the worker has written the line and the numbers.
    while counted(page := books.metrics(), model, "input") < 8 * way.billed.input and time.monotonic() < deadline:
        time.sleep(0.02)
    assert counted(page, model, "input") == 8 * way.billed.input
    assert before - books.left() == 8 * way.billed.total
    looked_up = [value for key, value in page.items() if key.startswith('gw_cost_catalog_lookups_total{status="Exact"')]
    assert int(looked_up[0]) >= 8
