"""Amazon's own client at Bedrock through the gateway: its streams pass frame by frame, and say so when they break."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.eventstream import EventStreamError
from tests.end_to_end.llm_formats import CONVERSE_FRAMES, INVOKE_FRAMES, frame
from tests.end_to_end.provider_stand_in import StandIn, stream, whole
from tests.end_to_end.running import Gateway, Pool

from headgate_engine.llm.eventstream import encode_frame

KIND = "application/vnd.amazon.eventstream"
CONFIG = """
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: first, provider: bedrock, params: {baseUrl: "http://127.0.0.1:PORT", apiKey: k}}
  - {name: impatient, provider: bedrock, params: {baseUrl: "http://127.0.0.1:PORT", apiKey: k}, streamTimeouts: {stall: 1s}}
  - {name: second, provider: bedrock, params: {baseUrl: "http://127.0.0.1:PORT", apiKey: k}}
  virtualModels:
  - {name: either, routing: {failover: {targets: [{model: first, priority: 1}, {model: second, priority: 2}]}}}
"""
TALK: list[Any] = [{"role": "user", "content": [{"text": "hi"}]}]


@pytest.fixture(scope="module")
def provider() -> Iterator[StandIn]:
    found = StandIn(whole({}))
    yield found
    found.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, provider: StandIn) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("bedrock")
    found = Pool(lambda: folder).take(CONFIG.replace("PORT", str(provider.port)), (1, "{}", ""))
    yield found
    found.stop()
    assert "Traceback" not in found.log()


def client(running: Gateway) -> Any:
    return boto3.client(
        "bedrock-runtime", endpoint_url=running.url, region_name="us-east-1", aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="not-a-real-one", config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip


def texts(answer: Any) -> Iterator[str]:
    for one in answer["stream"]:
        if "contentBlockDelta" in one:
            yield one["contentBlockDelta"]["delta"]["text"]


def test_streams_of_both_kinds(running: Gateway, provider: StandIn) -> None:
    provider.answers[:] = [stream(*CONVERSE_FRAMES, kind=KIND)]
    answer = client(running).converse_stream(modelId="first", messages=TALK)
    assert "".join(texts(answer)) == "hel"
    assert provider.last.path == "/model/first/converse-stream"
    provider.answers[:] = [stream(*INVOKE_FRAMES, kind=KIND)]
    answer = client(running).invoke_model_with_response_stream(modelId="first", body=json.dumps({"messages": TALK}))
    told = [json.loads(one["chunk"]["bytes"]) for one in answer["body"]]
    assert told[-1]["amazon-bedrock-invocationMetrics"]["outputTokenCount"] == 7


HALF = CONVERSE_FRAMES[:2]
BROKEN = bytearray(CONVERSE_FRAMES[2])
BROKEN[-1] ^= 1


@pytest.mark.parametrize(
    ("pieces", "end"),
    [(HALF, "cut"), (HALF, "stall"), (HALF, "whole"), ((*HALF, CONVERSE_FRAMES[2][:20]), "whole"), ((*HALF, bytes(BROKEN)), "whole"),
     ((b"".join((*HALF, BROKEN)),), "whole")],
    ids=["cut", "stalled", "without its end", "half a frame", "a wrong checksum", "a wrong checksum in one read with words"],
)  # fmt: skip
def test_a_stream_that_breaks_is_an_error_of_the_client(running: Gateway, provider: StandIn, pieces: tuple[bytes, ...], end: str) -> None:
    provider.answers[:] = [stream(*pieces, end=end, kind=KIND)]
    answer = client(running).converse_stream(modelId="impatient" if end == "stall" else "first", messages=TALK)
    found = texts(answer)
    assert next(found) == "hel"
    with pytest.raises(EventStreamError, match="modelStreamErrorException"):
        next(found)
    running.wait_log("error=")


def test_what_fails_before_its_first_frame_goes_to_another_provider(running: Gateway, provider: StandIn) -> None:
    refusal = encode_frame({":message-type": "exception", ":exception-type": "throttlingException"}, b'{"message":"no"}')
    for first in (stream(refusal, kind=KIND), stream(end="cut", kind=KIND), stream(b"no frame at all", kind=KIND)):
        provider.seen.clear()
        provider.answers[:] = [first, stream(*CONVERSE_FRAMES, kind=KIND)]
        assert "".join(texts(client(running).converse_stream(modelId="either", messages=TALK))) == "hel"
        assert len(provider.seen) == 2
    # An error of the provider's own within a stream goes on as it is.
    failure = encode_frame({":message-type": "exception", ":exception-type": "throttlingException"}, b'{"message":"slow"}')
    provider.answers[:] = [stream(*HALF, failure, kind=KIND)]
    with pytest.raises(EventStreamError, match="slow"):
        list(texts(client(running).converse_stream(modelId="first", messages=TALK)))


def test_a_model_s_stream_wants_the_end_of_its_own_format(running: Gateway, provider: StandIn) -> None:
    provider.answers[:] = [stream(*INVOKE_FRAMES[:-1], kind=KIND)]
    answer = client(running).invoke_model_with_response_stream(modelId="first", body="{}")
    with pytest.raises(EventStreamError):
        list(answer["body"])
    # Of other vendors nothing is known: whole frames are an answer.
    provider.answers[:] = [stream(frame("chunk", {"bytes": "eyJvdXRwdXRUZXh0IjoiYSJ9"}), kind=KIND)]
    answer = client(running).invoke_model_with_response_stream(modelId="first", body="{}")
    assert [one["chunk"]["bytes"] for one in answer["body"]] == [b'{"outputText":"a"}']
