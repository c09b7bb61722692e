"""Lists of texts to embed at models that take one text, or fewer, in a request: order, usage, signatures, failures."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import openai
import pytest
from tests.end_to_end.cloud_stand_in import verify
from tests.end_to_end.llm_rig import Rig, openai_client, served, stand_ins
from tests.end_to_end.provider_stand_in import Answer, Asked, StandIn, whole

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  models:
  - name: "amazon.*"
    provider: bedrock
    params: {baseUrl: "http://127.0.0.1:BACKEND", awsRegion: eu-west-1}
    auth: {aws: {accessKeyId: AKIAOWN, secretAccessKey: own-secret, region: eu-west-1}}
  - {name: "amazon.first", provider: bedrock, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: one, model: amazon.titan-first}}
  - {name: "amazon.second", provider: bedrock, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: two, model: amazon.titan-second}}
  - {name: "cohere.*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: bedrock-key}}
  - {name: "*", provider: vertex, params: {vertexProject: p, baseUrl: "http://127.0.0.1:BACKEND", apiKey: google-key}}
  virtualModels:
  - {name: both, routing: {failover: {targets: [{model: amazon.first, priority: 0}, {model: amazon.second, priority: 1}]}}}
"""
MODELS = ("amazon.titan-embed-text-v2:0", "amazon.nova-2-multimodal-embeddings-v1:0", "cohere.embed-v4:0", "gemini-embedding-001",
          "text-embedding-005")  # fmt: skip
# Texts of one request to the provider.
SIZES = dict(zip(MODELS, (1, 1, 96, 1, 250), strict=True))


def numbers(model: str, asked: Asked) -> list[int]:
    """The numbers that the texts of a provider's request are."""
    body = asked.json
    if "titan" in model:
        return [int(body["inputText"])]
    if "nova" in model:
        return [int(body["singleEmbeddingParams"]["text"]["value"])]
    if "cohere" in model:
        return [int(text) for text in body["texts"]]
    return [int(one["content"]) for one in body["instances"]]


def vectors(model: str, found: list[int]) -> tuple[Any, dict[str, str]]:
    """What the provider says to numbers: each is its own vector, and costs as many tokens."""
    if "titan" in model:
        return {"embedding": [found[0], 0.5], "inputTextTokenCount": found[0]}, {}
    if "nova" in model:
        told = {"embeddings": [{"embeddingType": "TEXT", "embedding": [found[0], 0.5]}]}
        return told, {"x_amzn_bedrock_input_token_count": str(found[0])}
    if "cohere" in model:
        told = {"embeddings": {"float": [[one, 0.5] for one in found]}}
        return told, {"x_amzn_bedrock_input_token_count": str(sum(found))}
    return {"predictions": [{"embeddings": {"values": [one, 0.5], "statistics": {"token_count": one}}} for one in found]}, {}


def embedding(model: str, failing: int = -1, fault: Answer | None = None) -> Answer:
    """Embeds numbers; a request that holds the failing one gets the fault."""

    def answer(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        found = numbers(model, handler.asked)  # type: ignore[attr-defined]
        if failing in found:
            assert fault is not None
            return fault(stand_in, handler)
        told, fields = vectors(model, found)
        return whole(told, **fields)(stand_in, handler)

    return answer


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with (
        stand_ins(whole({})) as [one],
        served(tmp_path_factory.mktemp("embeddings"), CONFIG.replace("BACKEND", str(one.port))) as running,
    ):
        yield Rig(running, one)


def embed(rig: Rig, model: str, count: int, first: int = 0) -> Any:
    rig.provider.seen.clear()
    texts = [str(number) for number in range(first, first + count)]
    return openai_client(rig.running).embeddings.create(model=model, input=texts, encoding_format="float")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("count", [1, 3, 300])
def test_lists_become_as_many_requests_as_the_model_wants(rig: Rig, model: str, count: int) -> None:
    rig.answers(embedding(model))
    answer = embed(rig, model, count)
    assert [one.embedding for one in answer.data] == [[number, 0.5] for number in range(count)]
    assert [one.index for one in answer.data] == list(range(count))
    total = sum(range(count))
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (total, total)
    assert len(rig.provider.seen) == -(-count // SIZES[model])
    # Each of them as the first one, and signed for its own body.
    [_] = {one.path for one in rig.provider.seen}
    for one in rig.provider.seen:
        if model.startswith("amazon"):
            verify(one, ("AKIAOWN", "own-secret", None), "eu-west-1", "bedrock")
        else:
            assert one.headers["authorization"] == ("Bearer bedrock-key" if "cohere" in model else "Bearer google-key")
    rig.running.wait_log(f"gen_ai.usage.input_tokens={total}")


def test_they_go_eight_at_a_time(rig: Rig) -> None:
    """Sixteen go in two rounds of eight: each round ends only when all of it is there."""
    model, together, lock = MODELS[0], threading.Barrier(8), threading.Lock()
    under_way, most = 0, 0

    def answer(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        together.wait(60)
        with lock:
            under_way -= 1
        embedding(model)(stand_in, handler)

    rig.answers(answer)
    assert len(embed(rig, model, 16).data) == 16
    assert most == 8


ERROR = whole({"message": "slow down"}, 429, x_amzn_errortype="ThrottlingException")


@pytest.mark.parametrize(("failing", "asked"), [(0, 8), (2, 8), (40, 41)])
def test_one_failure_fails_the_request(rig: Rig, failing: int, asked: int) -> None:
    """Nothing is asked any more for what cannot be answered: there are eight calls at a time."""
    # The provider may read a call that was given up when the next test is under way: each has numbers of its own.
    first = 1000 * (failing + 1)
    failing += first
    told, ordinary = threading.Event(), embedding(MODELS[0], failing, ERROR)

    def answer(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        # Where few are asked, the calls beside the failing one last until the client knows.
        if asked == 8 and failing not in set(numbers(MODELS[0], handler.asked)):  # type: ignore[attr-defined]
            assert told.wait(60)
        ordinary(stand_in, handler)

    rig.answers(answer)
    try:
        with pytest.raises(openai.RateLimitError, match="slow down"):
            embed(rig, MODELS[0], 41, first)
        assert len([one for one in rig.provider.seen if numbers(MODELS[0], one)[0] >= first]) <= asked
    finally:
        told.set()


def test_every_part_counts_for_metrics_and_for_the_health_of_the_provider(rig: Rig) -> None:
    calls = 'gw_upstream_call_duration_seconds_count{kind="Primary",subtype="Llm"}'
    rig.answers(embedding(MODELS[0]))
    before = rig.running.metric(calls)
    embed(rig, MODELS[0], 12)
    rig.running.wait_metric(calls, before + 12)

    def answer(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        fails = "first" in handler.path and numbers(MODELS[0], handler.asked) == [3]  # type: ignore[attr-defined]
        (whole({"message": "down"}, 503) if fails else embedding(MODELS[0]))(stand_in, handler)

    # Whichever part it is that fails, another provider makes all of them; three failures put the first one aside.
    rig.answers(answer)
    for _ in range(3):
        assert [one.embedding[0] for one in embed(rig, "both", 5).data] == [0, 1, 2, 3, 4]
        assert sum("second" in one.path for one in rig.provider.seen) == 5
    embed(rig, "both", 3)
    assert {one.path for one in rig.provider.seen} == {"/model/amazon.titan-second/invoke"}


def test_a_part_that_is_no_answer_fails_the_request(rig: Rig) -> None:
    for fault in (whole({"nothing": 1}), whole(b"no JSON"), whole(b"x", content_encoding="gzip")):
        rig.answers(embedding(MODELS[0], 2, fault))
        with pytest.raises(openai.InternalServerError) as found:
            embed(rig, MODELS[0], 4)
        assert found.value.status_code == 502


def test_more_texts_than_openai_takes_are_refused(rig: Rig) -> None:
    rig.provider.seen.clear()
    with pytest.raises(openai.BadRequestError, match="more than 2048 texts"):
        embed(rig, MODELS[0], 2049)
    assert rig.provider.seen == []


def test_base64_is_packed_for_every_part(rig: Rig) -> None:
    rig.answers(embedding(MODELS[0]))
    # The client asks for Base64 where nothing else is said, and unpacks it.
    answer = openai_client(rig.running).embeddings.create(model=MODELS[0], input=["3", "4"])
    assert [one.embedding for one in answer.data] == [[3.0, 0.5], [4.0, 0.5]]
    answer = rig.post({"model": MODELS[0], "input": ["3", "4"], "encoding_format": "base64"}, "/v1/embeddings").json()
    assert [type(one["embedding"]) for one in answer["data"]] == [str, str]
