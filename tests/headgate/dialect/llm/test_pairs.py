"""Every pair against its golden file, and what must hold for all of them."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

import effort
import pytest
from llm_cases import GOLDEN, IDS, OPTIONS, PAIRS, asked_of, cases, events_of, framed, plain

from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Untranslatable, UpstreamGarbage

EVERY_PAIR = pytest.mark.parametrize("pair", PAIRS, ids=IDS)
STREAMED = [pair for pair in PAIRS if pair.streams]
EVERY_STREAM = pytest.mark.parametrize(
    ("pair", "case"),
    [pytest.param(pair, case, id=f"{pair.client}-{pair.upstream}-{case}")
     for pair in STREAMED for case in cases("streams", pair.upstream)],
)  # fmt: skip
TERMINAL = {
    "completions": lambda event: event.data == b"[DONE]" or b'"error":{' in event.data,
    "messages": lambda event: event.event in ("message_stop", "error"),
    "responses": lambda event: event.event
    in ("response.completed", "response.incomplete", "response.failed", "error"),
    "gemini": lambda event: b'"finishReason":' in event.data or event.data.startswith(b'{"error":'),
    "text": lambda event: event.data == b"[DONE]" or b'"error":{' in event.data,
    "converse": lambda event: event.event == "metadata" or event.event.endswith("Exception"),
}


def requested(pair: pairs.Converter, body: dict[str, Any]) -> dict[str, Any]:
    try:
        asked = asked_of(pair, body)
    except Untranslatable as error:
        return {"refused": str(error)}
    out: dict[str, Any] = {"sent": asked.body}
    for name in ("path_suffix", "names"):
        if getattr(asked, name):
            out[name] = getattr(asked, name)
    return {**out, "dropped": list(asked.dropped)}


def replied(pair: pairs.Converter, body: dict[str, Any]) -> Any:
    try:
        return pair.reply(body, plain(pair, False))
    except UpstreamGarbage as error:
        return {"broken": str(error)}


def streamed(pair: pairs.Converter, pieces: list[bytes]) -> tuple[bytes, pairs.StreamConverter]:
    stream = pair.stream(plain(pair, True))
    out = b"".join(stream.feed(piece) for piece in pieces)
    return out + stream.end(None), stream


def now(pair: pairs.Converter) -> dict[str, Any]:
    """Return what the pair makes of every case."""
    found: dict[str, Any] = {
        "requests": {name: requested(pair, body) for name, body in cases("requests", pair.client).items()},
        "replies": {name: replied(pair, body) for name, body in cases("replies", pair.upstream).items()},
        "errors": {},
    }
    for name, case in cases("errors", pair.upstream).items():
        body = case["body"] if isinstance(case["body"], str) else json.dumps(case["body"])
        status, told = pair.error(case["status"], body.encode(), None)
        found["errors"][name] = {"status": status, "body": json.loads(told)}
    if pair.streams:
        streams = {name: streamed(pair, framed(pair, events)) for name, events in cases("streams", pair.upstream).items()}
        found["streams"] = {
            name: {
                "told": [f"{one.event}: {one.data.decode()}" for one in events_of(pair.client, out)]
                if pair.client == "converse" else [line for line in out.decode().splitlines() if line],
                "usage": repr(stream.usage),
                "failed": stream.failed,
            }
            for name, (out, stream) in streams.items()
        }
    return found


@EVERY_PAIR
def test_a_pair_says_what_its_golden_file_says(pair: pairs.Converter) -> None:
    path = GOLDEN / "pairs" / f"{pair.client}-{pair.upstream}.json"
    found = now(pair)
    if os.environ.get("HEADGATE_REGOLD"):
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    assert found == json.loads(path.read_text())


@EVERY_PAIR
def test_every_pair_has_cases_for_requests_replies_and_errors(pair: pairs.Converter) -> None:
    assert cases("requests", pair.client)
    assert cases("replies", pair.upstream)
    assert cases("errors", pair.upstream)
    assert pair.drops
    assert not pair.streams or len(cases("streams", pair.upstream)) >= 4


@EVERY_PAIR
def test_a_request_is_left_as_it_was(pair: pairs.Converter) -> None:
    for body in cases("requests", pair.client).values():
        before = copy.deepcopy(body)
        requested(pair, body)
        assert body == before


@EVERY_STREAM
def test_a_stream_says_the_same_however_it_is_cut(pair: pairs.Converter, case: str) -> None:
    whole = b"".join(framed(pair, cases("streams", pair.upstream)[case]))
    expected, reference = streamed(pair, [whole])
    for pieces in [[whole[: at + 1], whole[at + 1 :]] for at in effort.steps(len(whole) - 1, len(whole))]:
        out, stream = streamed(pair, pieces)
        assert out == expected
        assert stream.usage == reference.usage
    out, _ = streamed(pair, [whole[at : at + 1] for at in range(len(whole))])
    assert out == expected


@EVERY_STREAM
def test_a_stream_has_one_terminal_event_and_it_is_the_last(pair: pairs.Converter, case: str) -> None:
    out, stream = streamed(pair, framed(pair, cases("streams", pair.upstream)[case]))
    events = events_of(pair.client, out)
    ends = [position for position, event in enumerate(events) if TERMINAL[pair.client](event)]
    assert ends == [len(events) - 1]
    assert stream.finished
    assert (stream.failed is not None) == case.startswith("broken")
    assert stream.feed(b"data: {}\n\n") == b"" if pair.upstream != "converse" else True
    assert stream.end("again") == b""


@EVERY_STREAM
def test_a_stream_cut_short_by_the_provider_is_never_whole(pair: pairs.Converter, case: str) -> None:
    whole = b"".join(framed(pair, cases("streams", pair.upstream)[case]))
    full, _ = streamed(pair, [whole])
    for at in effort.steps(len(whole), len(whole)):
        out, stream = streamed(pair, [whole[:at]])
        events = events_of(pair.client, out)
        assert [TERMINAL[pair.client](event) for event in events].count(True) == 1
        if stream.failed is None:
            # Nothing but bookkeeping was missing: all text had been told.
            assert said(pair.client, out) == said(pair.client, full)
        else:
            assert b"error" in out or b"response.failed" in out or b"Exception" in out


def said(client: str, out: bytes) -> str:
    """Return all texts and arguments of a stream."""
    found = []
    for event in events_of(client, out):
        if event.data == b"[DONE]":
            continue
        data = json.loads(event.data)
        if client == "completions":
            for choice in data.get("choices", []):
                delta = choice["delta"]
                found.append(delta.get("content") or "")
                found += [call["custom"].get("input", "") if "custom" in call else call["function"].get("arguments", "")
                          for call in delta.get("tool_calls", [])]  # fmt: skip
        elif client == "text":
            found += [choice["text"] for choice in data.get("choices", [])]
        elif client == "gemini":
            for candidate in data.get("candidates", []):
                for part in candidate["content"]["parts"]:
                    found.append(part.get("text") or json.dumps(part.get("functionCall", "")).strip('"'))
        elif client == "converse":
            delta = data.get("delta", {})
            found.append(delta.get("text", "") + delta.get("toolUse", {}).get("input", ""))
        elif client == "messages":
            delta = data.get("delta", {})
            found.append(delta.get("text", "") + delta.get("partial_json", ""))
        elif event.event.endswith(".delta"):
            found.append(data["delta"])
    return "".join(found)


@pytest.mark.parametrize("pair", STREAMED, ids=[f"{pair.client}-{pair.upstream}" for pair in STREAMED])
def test_a_fault_of_the_connection_is_told_to_the_client(pair: pairs.Converter) -> None:
    stream = pair.stream(plain(pair, True))
    told = stream.feed(framed(pair, cases("streams", pair.upstream)["text"])[0])
    told += stream.end("the provider closed the connection")
    assert stream.failed == "the provider closed the connection"
    assert events_of(pair.client, told)[-1].data.count(b"the provider closed the connection") == 1


def test_a_pair_that_is_not_in_the_table_is_none() -> None:
    assert pairs.converter("realtime", "messages") is None
    assert pairs.converter("completions", "completions") is None


def test_the_names_of_formats_are_those_of_the_table() -> None:
    formats = {str(format) for format in pairs.FORMATS}
    for client, upstream in pairs.PAIRS:
        assert {client, upstream} <= formats


def test_replies_that_are_no_objects_are_garbage() -> None:
    pair = PAIRS[0]
    for body in ([], "x", None, 1):
        with pytest.raises(UpstreamGarbage):
            pair.reply(body, plain(pair, False))  # type: ignore[arg-type]


@pytest.mark.parametrize("format", ["completions", "messages", "responses", "gemini", "rerank", "embeddings", "converse"])
def test_gateway_errors_have_the_shape_of_the_format(format: str) -> None:
    body = json.loads(pairs.gateway_error(format, 404, "model_not_found", "no such model"))
    text = json.dumps(body)
    assert "no such model" in text
    if format == "messages":
        assert body == {"type": "error", "error": {"type": "not_found_error", "message": "no such model"}}
    elif format in ("completions", "responses", "embeddings"):
        assert body["error"]["code"] == "model_not_found"
        assert body["error"]["type"] == "invalid_request_error"
    elif format == "converse":
        assert body == {"message": "no such model"}
    events = events_of(format, pairs.stream_error(format, "cut off"))
    assert len(events) == 1
    assert b"cut off" in events[0].data


def test_options_are_used() -> None:
    asked = pairs.PAIRS["completions", "messages"].request(
        {"model": "a", "messages": [{"role": "user", "content": "x"}]},
        pairs.Options(model="b", max_tokens_default=17),
    )
    assert asked.model == asked.body["model"] == "b"
    assert asked.requested == "a"
    assert asked.body["max_tokens"] == 17
    assert OPTIONS.model is None
