"""The cost catalog, prompts that are estimated, and what expressions and traces see of both."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests import forked_rig
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.provider_stand_in import DONE, StandIn, chat, chunk, event, message, stream, whole
from tests.end_to_end.tracing import Watch, one, wait_for
from tests.engine.llm.realtime_rig import DELTA, done, frame

from headgate_drivers.llm import tokens_of

pytestmark = pytest.mark.warm

CONFIG = """
gateways:
  default: {port: {port}}
frontendPolicies:
  accessLog:
    add:
      parts: "has(llm.cost) ? llm.cost : {}"
      rates: "llm.costRates"
      tier: "llm.serviceTier"
      told: "llm.providerTotalTokens"
      settings: "llm.params"
routes:
- gateways: [default]
  policies:
POLICIES
  backends:
  - ai:
      name: it
      hostOverride: 127.0.0.1:PORT
MEMBER
"""
MEMBER = "      provider: {openAI: {}}"
HEADERS = """
    transformations:
      response:
        set:
          x-gw-cost: string(llm.cost.total)
          x-gw-tokens: llm.totalTokens
          x-gw-model: llm.responseModel
          x-gw-provider: llm.provider
"""
PRICES = {"providers": {"openai": {"models": {"real": {"rates": {"input": "2", "output": "8", "cacheRead": "0.5"}}}}}}
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
USAGE = event({"choices": [], "model": "real", "usage": chat()["usage"]})


def config(provider: StandIn, policies: str = HEADERS, member: str = MEMBER) -> str:
    return CONFIG.replace("POLICIES", policies.strip("\n")).replace("MEMBER", member).replace("PORT", str(provider.port))


def settings(*sources: str) -> str:
    return "modelCatalog:\n" + "".join(f"- {source}\n" for source in sources)


def inline(document: Any) -> str:
    return f"inline: {json.dumps(document)}"


def ask(running: Gateway, path: str = "/v1/chat/completions", **body: Any) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    connection.request("POST", path, json.dumps(ASK | body), {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()


def last_line(running: Gateway, text: str) -> str:
    running.wait_log(text)
    return next(line for line in reversed(running.log().splitlines()) if text in line)


def test_an_answer_tells_its_cost_in_headers_logs_and_traces(gateway, stand_in) -> None:
    provider = stand_in(whole(chat() | {"service_tier": "default"}))
    running = gateway(config(provider), settings=settings(inline(PRICES)))
    watch = Watch(running)
    status, headers, body = ask(running, temperature=0.5, max_tokens=7)
    assert (status, json.loads(body)["model"]) == (200, "real")
    # 11 in, 4 of them cached, 7 out.
    assert float(headers["x-gw-cost"]) == 0.000072
    assert [headers[f"x-gw-{name}"] for name in ("tokens", "model", "provider")] == ["18", "real", "openai"]
    line = last_line(running, "gw.ai.usage.cost.total=7.2e-05")
    for told in ("gen_ai.request.temperature=0.5", "gen_ai.request.max_tokens=7", "tier=default", "told=18"):
        assert told in line
    parts = json.loads(line.split('parts="')[1].split('}"')[0].replace('\\"', '"') + "}")
    assert parts["total"] == pytest.approx(0.000072)
    assert (parts["input"], parts["cacheRead"], parts["output"], parts["reasoning"]) == (0.000014, 0.000002, 0.000056, 0)
    rates = json.loads(line.split('rates="')[1].split('}"')[0].replace('\\"', '"') + "}")
    assert (rates["input"], rates["output"], rates["cacheRead"], rates["cacheWrite"]) == (2.0, 8.0, 0.5, None)
    record = one(watch.wait(), "policyEvent llm_attempt")["details"]
    assert record["usage"] == {"inputTokens": 11, "outputTokens": 7, "cachedInputTokens": 4}
    assert (record["usageSource"], record["outcome"], record["cost"]) == ("provider", "answered", 0.000072)
    assert len(record["priceVersion"]) == 12
    _, dump = running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")
    assert json.loads(dump)["config"]["modelCatalog"]["version"] == record["priceVersion"]


def test_calls_for_one_answer_have_the_price_of_their_own_prompts(gateway, stand_in) -> None:
    """Each of two choices reads 105 tokens: the tier above 150 is for neither."""
    tiers = [{"contextOver": 150, "rates": {"input": "10", "output": "20"}}]
    prices = {"providers": {"anthropic": {"models": {"claude-real": {"rates": {"input": "1", "output": "2"}, "tiers": tiers}}}}}
    provider = stand_in(whole(message()))
    running = gateway(config(provider, member="      provider: {anthropic: {}}"), settings=settings(inline(prices)))
    status, headers, body = ask(running, n=2)
    assert (status, len(json.loads(body)["choices"])) == (200, 2)
    assert float(headers["x-gw-cost"]) == 2 * (105 * 1 + 7 * 2) / 1e6
    assert headers["x-gw-tokens"] == "224"
    last_line(running, "gw.ai.usage.cost.total=0.000238")


SOUND = {"promptTokenCount": 30, "candidatesTokenCount": 10, "promptTokensDetails": [
    {"modality": "TEXT", "tokenCount": 10}, {"modality": "AUDIO", "tokenCount": 20}],
    "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 4}, {"modality": "IMAGE", "tokenCount": 6}]}  # fmt: skip
HEARD = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hm"}]}, "finishReason": "STOP", "index": 0}],
         "usageMetadata": SOUND, "modelVersion": "real"}  # fmt: skip
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def test_sound_has_its_price_translated_or_not(gateway, stand_in) -> None:
    rates = {"input": "1", "output": "2", "inputAudio": "3", "outputAudio": "5"}
    catalog = {"providers": {"gcp.gemini": {"models": {"real": {"rates": rates}}}}}
    provider = stand_in(whole(HEARD), stream(event(HEARD)), whole(HEARD), stream(event(HEARD)))
    running = gateway(config(provider, member="      provider: {gemini: {}}"), settings=settings(inline(catalog)))
    # 10 texts and 20 sounds in, 6 and 4 out.
    price = (10 * 1 + 20 * 3 + 6 * 2 + 4 * 5) / 1e6
    status, headers, body = ask(running)
    assert (status, float(headers["x-gw-cost"])) == (200, pytest.approx(price))
    told = json.loads(body)["usage"]
    assert told["prompt_tokens_details"] == {"cached_tokens": 0, "text_tokens": 10, "audio_tokens": 20}
    assert told["completion_tokens_details"] == {"reasoning_tokens": 0, "image_tokens": 6, "audio_tokens": 4}
    ask(running, stream=True)
    ask(running, "/v1beta/models/m:generateContent", **GEMINI)
    ask(running, "/v1beta/models/m:streamGenerateContent?alt=sse", **GEMINI)
    deadline = time.monotonic() + 40
    while running.log().count("gw.ai.usage.cost.total") < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    lines = [line for line in running.log().splitlines() if "gen_ai.request.model=m" in line]
    assert len(lines) == 4
    for line in lines:
        for name, tokens in (("input_audio", 20), ("output_audio", 4), ("output_image", 6)):
            assert f"gen_ai.usage.{name}_tokens={tokens}" in line
        assert float(line.split("gw.ai.usage.cost.total=")[1].split()[0]) == pytest.approx(price)


def test_streams_are_not_held_back_for_their_cost(gateway, stand_in) -> None:
    """What comes at the end cannot stand in the head: streams go on at once, without the headers that would need it."""
    provider = stand_in(stream(chunk("a"), chunk(finish="stop"), USAGE, DONE))
    running = gateway(config(provider), settings=settings(inline(PRICES)))
    status, headers, body = ask(running, stream=True)
    assert (status, body.endswith(DONE)) == (200, True)
    assert headers["x-gw-provider"] == "openai"
    assert "x-gw-cost" not in headers
    assert "gw.ai.time_to_first_token=" in last_line(running, "gw.ai.usage.cost.total=7.2e-05")


def test_without_a_catalog_nothing_is_looked_up(gateway, stand_in) -> None:
    running = gateway(config(stand_in(whole(chat()))))
    _, headers, _ = ask(running)
    assert "x-gw-cost" not in headers
    assert headers["x-gw-tokens"] == "18"
    assert "cost" not in last_line(running, "gen_ai.usage.output_tokens=7").replace("x-gw-cost", "")
    assert running.metric("gw_cost_catalog_lookups_total") == 0
    assert "gw_cost_catalog_lookups" not in running.fetch(f"http://127.0.0.1:{running.stats}/metrics")[1]


def lookups(running: Gateway) -> dict[str, float]:
    return {
        status: running.metric(f'gw_cost_catalog_lookups_total{{status="{status}"}}')
        for status in ("Exact", "Unpriced", "Missing", "NoCatalog")
    }


def test_files_are_watched(gateway, stand_in, tmp_path: Path) -> None:
    """Written in place, replaced, gone, back again, and half written: each without a restart."""
    prices, later = tmp_path / "prices.json", tmp_path / "later.json"
    prices.write_text(json.dumps(PRICES))
    running = gateway(config(stand_in(whole(chat()))), settings=settings(f"file: {prices}", f"file: {later}"))

    def becomes(cost: str | None) -> None:
        def same() -> bool:
            return ask(running)[1].get("x-gw-cost") == cost

        wait_for(same)

    def document(rates: dict[str, str]) -> str:
        return json.dumps({"providers": {"openai": {"models": {"real": {"rates": rates}}}}})

    becomes("7.2e-05")
    prices.write_text(document({"input": "20", "output": "8", "cacheRead": "0.5"}))
    becomes("0.000198")
    fresh = tmp_path / "fresh"
    fresh.write_text(document({"input": "0", "output": "100", "cacheRead": "0"}))
    fresh.rename(prices)
    becomes("0.0007")
    later.write_text(document({"output": "0"}))
    becomes("0")
    later.unlink()
    becomes("0.0007")
    prices.write_text('{"providers": {"openai": {"models": {"real": {"rates": {"input": 3}}}}}')
    running.wait_log("Failed to reload config")
    becomes("0.0007")
    prices.unlink()
    running.wait_log("no cost catalog")
    becomes(None)
    assert lookups(running)["NoCatalog"] >= 1
    assert lookups(running)["Exact"] >= 5


def test_the_environment_takes_the_place_of_the_file(gateway, stand_in, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps(PRICES).replace('"8"', '"80"'))
    environment = {"MODEL_CATALOG_PATHS": f"{tmp_path}/none.json, {prices}"}
    running = gateway(config(stand_in(whole(chat()))), environment=environment, settings=settings(inline(PRICES)))
    assert float(ask(running)[1]["x-gw-cost"]) == pytest.approx(0.000576)


def test_what_has_no_price_is_not_free(gateway, stand_in) -> None:
    models = {"real": {"rates": {"input": "1"}}, "m": {"rates": {"input": "1", "output": "1"}}}
    catalog = {"providers": {"openai": {"models": models}}}
    answers = (whole(chat(model="real")), whole(chat(model="unknown")), whole(chat(model="x")))
    running = gateway(config(stand_in(*answers)), settings=settings(inline(catalog)))
    found = [ask(running)[1].get("x-gw-cost"), ask(running)[1].get("x-gw-cost")]
    found.append(ask(running, model="nobody knows")[1].get("x-gw-cost"))
    assert found == [None, "1.8e-05", None]
    assert lookups(running) == {"Exact": 1, "Unpriced": 1, "Missing": 1, "NoCatalog": 0}


LIMIT = """
    localRateLimit: [{maxTokens: 100, tokensPerFill: 0, fillInterval: 1h, type: tokens}]
"""
LONG = "word " * 60


@pytest.mark.cold      # limits with the same name and numbers outlive a reload
def test_prompts_are_taken_before_they_are_sent(gateway, stand_in) -> None:
    provider = stand_in(whole({"error": {"message": "no"}}, 400), whole(chat()))
    running = gateway(config(provider, LIMIT, MEMBER + "\n      tokenize: true"))
    prompt = tokens_of(LONG) + 4 + 3
    assert 60 < prompt < 90
    status, headers, _ = ask(running, messages=[{"role": "user", "content": LONG}])
    assert (status, headers["x-ratelimit-remaining"]) == (400, str(100 - prompt))
    assert ask(running, messages=[{"role": "user", "content": LONG * 2}])[0] == 429
    assert len(provider.seen) == 1, "what does not fit is not sent"
    # The error cost nothing, and the refusal neither; of the answer counts what its provider says.
    assert ask(running)[1]["x-ratelimit-remaining"] == str(100 - tokens_of("hi") - 7)
    assert ask(running)[1]["x-ratelimit-remaining"] == str(100 - 18 - tokens_of("hi") - 7)


@pytest.mark.cold      # limits with the same name and numbers outlive a reload
def test_the_estimate_stands_where_nobody_counts(gateway, stand_in) -> None:
    silent = {name: value for name, value in chat().items() if name != "usage"}
    running = gateway(config(stand_in(whole(silent)), LIMIT, MEMBER + "\n      tokenize: true"))
    prompt = tokens_of("hi") + 7
    ask(running)
    line = last_line(running, "gw.ai.usage.source=estimated")
    assert f"gen_ai.usage.input_tokens={prompt}" in line
    assert ask(running)[1]["x-ratelimit-remaining"] == str(100 - 2 * prompt)
    assert running.metric("gw_gen_ai_client_token_usage_count") == 0, "metrics are what providers say"


@pytest.mark.cold      # limits with the same name and numbers outlive a reload
def test_tokens_are_counted_here_where_the_provider_cannot(gateway, stand_in) -> None:
    provider = stand_in(whole(chat()))
    running = gateway(config(provider, LIMIT))
    status, _, body = ask(running, "/v1/messages/count_tokens", system="be brief")
    assert (status, json.loads(body)) == (200, {"input_tokens": tokens_of("be brief") + tokens_of("hi") + 8 + 3})
    assert provider.seen == []


def test_a_realtime_connection_is_counted(gateway, upstream) -> None:
    heard: list[bytes] = []

    def script(connection: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        heard.append(data)
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n")
        connection.sendall(frame(DELTA) + frame(done(10, 20)) + frame(DELTA) + frame(done(1, 2)) + frame(b"end"))
        connection.recv(10)

    class Place:
        port = upstream(script)

    running = gateway(config(Place, LIMIT.replace("100", "1000")), settings=settings(inline(PRICES)))  # type: ignore[arg-type]
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as client:
        client.sendall(
            b"GET /v1/realtime?model=rt HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-extensions: permessage-deflate\r\n\r\n"
        )
        found = b""
        while not found.endswith(frame(b"end")):
            piece = client.recv(65536)
            assert piece
            found += piece
    assert b"permessage-deflate" not in heard[0]
    line = last_line(running, "gen_ai.usage.input_tokens=11")
    assert "gen_ai.usage.output_tokens=22" in line
    assert "gen_ai.usage.output_audio_tokens=10" in line
    assert ask(running, "/v1/messages/count_tokens")[1]["x-ratelimit-remaining"] == str(1000 - 33)


def test_gwctl_makes_a_catalog_that_the_gateway_takes(gateway, stand_in, tmp_path: Path) -> None:
    source, out = tmp_path / "api.json", tmp_path / "prices.json"
    source.write_text(json.dumps({"openai": {"models": {"real": {"cost": {"input": 2, "output": 8, "cache_read": 0.5}}}}}))

    def gwctl(*arguments: str) -> subprocess.CompletedProcess[str]:
        return forked_rig.run("headgate.cli.gwctl", "catalog", "import", *arguments)

    made = gwctl("--source", str(source), "-o", str(out))
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "1 models of 1 providers; without a price: 0\n")
    assert json.loads(out.read_text()) == PRICES
    running = gateway(config(stand_in(whole(chat()))), settings=settings(f"file: {out}"))
    assert float(ask(running)[1]["x-gw-cost"]) == 0.000072
    for arguments, error in (
        (("--source", "https://models.dev/api.json"), "--source is a file: download"),
        (("--source", str(tmp_path / "none")), "cannot read"),
        (("--source", str(source), "--providers", "x"), "no provider x"),
        (("--source", str(source), "-o", str(tmp_path / "no" / "x")), "cannot write"),
        ((), "Missing option '--source'"),
    ):
        failed = gwctl(*arguments)
        assert failed.returncode == 1
        assert failed.stderr.startswith("Error: ")
        assert error in failed.stderr
