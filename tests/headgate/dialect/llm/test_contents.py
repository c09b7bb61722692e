"""Kinds of content by the client's format and the provider's: each is said, or told as lost, or refused. None is lost in
silence.

The table says who carries what; requests are held against the vendors' published schemas as well.
"""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple

import pytest
from llm_sdk_shapes import shape_faults

from headgate.dialect.llm import pairs
from headgate.dialect.llm.contract import Options, Untranslatable
from headgate.dialect.llm.idents import sealed, wrapped

Json = dict[str, Any]
LETTERS = {"c": "completions", "m": "messages", "r": "responses", "g": "gemini", "v": "converse"}
MODELS = {"completions": "gpt-5.2", "messages": "claude-sonnet-4-5", "responses": "gpt-5.2", "gemini": "gemini-2.5-pro",
          "converse": "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}  # fmt: skip
RAW = base64.b64encode(b"marker").decode()
MARK = "marker-7"
URL = "https://marker-7.example/a"
PNG, PDF = f"data:image/png;base64,{RAW}", f"data:application/pdf;base64,{RAW}"
TEXT = "data:text/plain;base64," + base64.b64encode(MARK.encode()).decode()
SCHEMA = {"type": "object", "properties": {}}


class Kind(NamedTuple):
    """One kind of content as a client says it. `carried`: letters of the providers' formats that have a place for it.

    `marks`: texts of which one stands in a request that carries it.
    """

    client: str
    body: Json
    carried: str
    marks: tuple[str, ...] = (RAW, MARK)


def chat(*parts: Json) -> Json:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "look"}, *parts]}]}


def chat_result(*parts: Json) -> Json:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return {"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": [call]},
                         {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "seen"}, *parts]}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]}  # fmt: skip


def chat_said(**members: Any) -> Json:
    return {"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "done", **members},
                         {"role": "user", "content": "on"}]}  # fmt: skip


def message(*blocks: Json) -> Json:
    return {"max_tokens": 99, "messages": [{"role": "user", "content": [{"type": "text", "text": "look"}, *blocks]}]}


def message_result(*blocks: Json, **members: Any) -> Json:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "seen"}, *blocks], **members}
    return {"max_tokens": 99, "tools": [{"name": "f", "input_schema": SCHEMA}], "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
        {"role": "user", "content": [result]}]}  # fmt: skip


def message_said(*blocks: Json) -> Json:
    return {"max_tokens": 99, "messages": [
        {"role": "user", "content": "go"}, {"role": "assistant", "content": list(blocks)}, {"role": "user", "content": "on"}]}  # fmt: skip


def response(*parts: Json) -> Json:
    return {"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}, *parts]}]}


def response_result(*parts: Json) -> Json:
    return {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA}], "input": [
        {"role": "user", "content": "go"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "seen"}, *parts]},
        {"type": "function_call_output", "call_id": "c2", "output": "nothing"}]}  # fmt: skip


def response_said(*items: Json) -> Json:
    return {"input": [{"role": "user", "content": "go"}, *items, {"role": "user", "content": "on"}]}


def gemini(*parts: Json) -> Json:
    return {"contents": [{"role": "user", "parts": [{"text": "look"}, *parts]}]}


def gemini_result(response: Json, *parts: Json) -> Json:
    return {"tools": [{"functionDeclarations": [{"name": "f"}]}], "contents": [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "f", "response": response, "parts": list(parts)}}]}]}  # fmt: skip


def gemini_said(*parts: Json) -> Json:
    return {"contents": [{"role": "user", "parts": [{"text": "go"}]},
                         {"role": "model", "parts": [{"text": "done"}, *parts]}, {"role": "user", "parts": [{"text": "on"}]}]}  # fmt: skip


def converse(*blocks: Json) -> Json:
    return {"messages": [{"role": "user", "content": [{"text": "look"}, *blocks]}]}


def converse_result(*blocks: Json, **members: Any) -> Json:
    result = {"toolUseId": "t1", "content": [{"text": "seen"}, *blocks], **members}
    spec = {"name": "f", "inputSchema": {"json": SCHEMA}}
    return {"toolConfig": {"tools": [{"toolSpec": spec}]}, "messages": [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": result}]}]}  # fmt: skip


def converse_said(*blocks: Json) -> Json:
    return {"messages": [{"role": "user", "content": [{"text": "go"}]}, {"role": "assistant", "content": list(blocks)},
                         {"role": "user", "content": [{"text": "on"}]}]}  # fmt: skip


CONVERSE_IMAGE = {"image": {"format": "png", "source": {"bytes": RAW}}}
CONVERSE_PDF = {"document": {"format": "pdf", "name": "a", "source": {"bytes": RAW}}}
CONVERSE_FOUND = {"searchResult": {"source": "https://a.example", "title": "A", "content": [{"text": MARK}]}}
IMAGE_BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": RAW}}
IMAGE_URL_BLOCK = {"type": "image", "source": {"type": "url", "url": URL}}
PDF_BLOCK = {"type": "document", "title": "a.pdf", "source": {"type": "base64", "media_type": "application/pdf", "data": RAW}}
TEXT_BLOCK = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": MARK}}
URL_BLOCK = {"type": "document", "source": {"type": "url", "url": URL}}
FOUND = {"type": "search_result", "source": "https://a.example", "title": "A", "content": [{"type": "text", "text": MARK}]}
INLINE = {"inlineData": {"mimeType": "image/png", "data": RAW}}
PLACE = {"type": "char_location", "cited_text": MARK, "document_index": 0, "document_title": "A", "start_char_index": 0,
         "end_char_index": 3}  # fmt: skip
PAGE = {"type": "web_search_result_location", "url": URL, "title": "A", "cited_text": "x", "encrypted_index": "e"}
NOTE = {"type": "url_citation", "url": URL, "title": "A", "start_index": 0, "end_index": 3}
SEARCHES = ('"web_search"', '"googleSearch"')
CODES = ('"code_interpreter"', '"code_execution"', '"codeExecution"')
KINDS = {
    # -- what the user shows
    "chat image": Kind("completions", chat({"type": "image_url", "image_url": {"url": PNG}}), "mrgv"),
    # Guards compare ASCII: what only Unicode takes for base64 is no data.
    "chat file with another s": Kind("completions", chat({"type": "file", "file": {"file_data": TEXT.replace("s", "\u017f")}}), "r",
                                     (TEXT.partition(",")[2],)),
    "chat text among images": Kind("completions", chat_said(images=[{"type": "text", "text": MARK}]), ""),
    "message image in its type": Kind("messages", message({**IMAGE_BLOCK, "source": {
        "type": "base64", "media_type": f"image/png;base64,{RAW}", "data": "YQ=="}}), ""),
    "gemini file in its type": Kind("gemini", gemini({"inlineData": {"mimeType": TEXT[5:], "data": "YQ=="}}), "", (TEXT[5:].lower(),)),
    "chat image by URL": Kind("completions", chat({"type": "image_url", "image_url": {"url": URL}}), "mr"),
    "chat PDF": Kind("completions", chat({"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}}), "mrgv"),
    "chat text file": Kind("completions", chat({"type": "file", "file": {"filename": "a.txt", "file_data": TEXT}}), "mrgv",
                           (MARK, TEXT.partition(",")[2])),
    "chat file by id": Kind("completions", chat({"type": "file", "file": {"file_id": MARK}}), "r"),
    "chat audio": Kind("completions", chat({"type": "input_audio", "input_audio": {"data": RAW, "format": "wav"}}), "gv"),
    "message image": Kind("messages", message(IMAGE_BLOCK), "crgv"),
    "message image by URL": Kind("messages", message(IMAGE_URL_BLOCK), "cr"),
    "message PDF": Kind("messages", message(PDF_BLOCK), "crgv"),
    "message text": Kind("messages", message(TEXT_BLOCK), "crgv", (MARK, base64.b64encode(MARK.encode()).decode())),
    "message document by URL": Kind("messages", message(URL_BLOCK), "r"),
    "message document by id": Kind("messages", message({"type": "document", "source": {"type": "file", "file_id": MARK}}), ""),
    "message search result": Kind("messages", message(FOUND), "crgv"),
    "message unknown": Kind("messages", message({"type": "container_upload", "file_id": MARK}), ""),
    "response image": Kind("responses", response({"type": "input_image", "image_url": PNG}), "cmgv"),
    "response image by URL": Kind("responses", response({"type": "input_image", "image_url": URL}), "cm"),
    "response image by id": Kind("responses", response({"type": "input_image", "file_id": MARK}), ""),
    "response PDF": Kind("responses", response({"type": "input_file", "filename": "a.pdf", "file_data": PDF}), "cmgv"),
    "response file by URL": Kind("responses", response({"type": "input_file", "file_url": URL}), "m"),
    "response file by id": Kind("responses", response({"type": "input_file", "file_id": MARK}), ""),
    "response audio": Kind("responses", response({"type": "input_audio", "input_audio": {"data": RAW, "format": "wav"}}), "cgv"),
    "response unknown": Kind("responses", response({"type": "input_scent", "data": MARK}), ""),
    "gemini image": Kind("gemini", gemini(INLINE), "cmrv"),
    "gemini image by URI": Kind("gemini", gemini({"fileData": {"mimeType": "image/png", "fileUri": URL}}), "cmr"),
    "gemini PDF": Kind("gemini", gemini({"inlineData": {"mimeType": "application/pdf", "data": RAW}}), "cmrv"),
    "gemini audio": Kind("gemini", gemini({"inlineData": {"mimeType": "audio/wav", "data": RAW}}), "cv"),
    "gemini video": Kind("gemini", gemini({"inlineData": {"mimeType": "video/mp4", "data": RAW}}), ""),
    "gemini unknown": Kind("gemini", gemini({"scentData": {"data": MARK}}), ""),
    "converse image": Kind("converse", converse(CONVERSE_IMAGE), "cmrg"),
    "converse image in S3": Kind("converse", converse({"image": {"format": "png", "source": {"s3Location": {"uri": MARK}}}}), ""),
    "converse PDF": Kind("converse", converse(CONVERSE_PDF), "cmrg"),
    "converse text": Kind("converse", converse({"document": {"name": "a", "source": {"text": MARK}}}), "cmrg"),
    "converse letter": Kind("converse", converse({"document": {"format": "docx", "name": "a", "source": {"bytes": RAW}}}), "crg"),
    "converse audio": Kind("converse", converse({"audio": {"format": "wav", "source": {"bytes": RAW}}}), "cg"),
    "converse video": Kind("converse", converse({"video": {"format": "mp4", "source": {"bytes": RAW}}}), ""),
    "converse search result": Kind("converse", converse(CONVERSE_FOUND), "cmrg"),
    "converse guarded text": Kind("converse", converse({"guardContent": {"text": {"text": MARK}}}), "cmrg"),
    "converse unknown": Kind("converse", converse({"scent": {"data": MARK}}), ""),
    # -- what tools give back
    "converse result with an image": Kind("converse", converse_result(CONVERSE_IMAGE), "cmrg"),
    "converse result with a PDF": Kind("converse", converse_result(CONVERSE_PDF), "cmrg"),
    "converse result of a search": Kind("converse", converse_result(CONVERSE_FOUND), "cmrg"),
    "converse result of values": Kind("converse", converse_result({"json": {"a": MARK}}), "cmrg"),
    "converse result that failed": Kind(
        "converse", converse_result(status="error"), "mrg", ("incomplete", '"error"', '"is_error": true')),
    "converse result unknown": Kind("converse", converse_result({"scent": {"data": MARK}}), ""),
    "chat result with an image": Kind("completions", chat_result({"type": "image_url", "image_url": {"url": PNG}}), "mrgv"),
    "chat result with a PDF": Kind(
        "completions", chat_result({"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}}), "mrgv"),
    "message result with an image": Kind("messages", message_result(IMAGE_BLOCK), "crgv"),
    "message result with a PDF": Kind("messages", message_result(PDF_BLOCK), "crgv"),
    "message result of a search": Kind("messages", message_result(FOUND), "crgv"),
    "message result that failed": Kind("messages", message_result(is_error=True), "rgv", ("incomplete", '"error"')),
    "message result unknown": Kind("messages", message_result({"type": "tool_reference", "tool_name": MARK}), ""),
    "response result with an image": Kind("responses", response_result({"type": "input_image", "image_url": PNG}), "cmgv"),
    "response result with a PDF": Kind(
        "responses", response_result({"type": "input_file", "filename": "a.pdf", "file_data": PDF}), "cmgv"),
    "response result unknown": Kind("responses", response_result({"type": "input_scent", "data": MARK}), ""),
    "gemini result with an image": Kind("gemini", gemini_result({"output": "seen"}, INLINE), "cmrv"),
    "gemini result that failed": Kind("gemini", gemini_result({"error": MARK}), "cmrv"),
    # -- what was said before
    "converse thoughts": Kind("converse", converse_said(
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": RAW}}}, {"text": "yes"}), "m"),
    "converse sealed thoughts": Kind("converse", converse_said(
        {"reasoningContent": {"redactedContent": wrapped(sealed("rs_1", MARK), True)}}, {"text": "yes"}), "r"),
    "converse citations of places": Kind("converse", converse_said({"citationsContent": {
        "content": [{"text": "yes"}], "citations": [{"title": "A", "sourceContent": [{"text": MARK}],
                                                      "location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 3}}}]}}), "m"),
    "converse server tools": Kind("converse", converse_said({"text": "yes"}, {"toolUse": {
        "toolUseId": "s1", "name": "nova_code_interpreter", "input": {"code": MARK}, "type": "server_tool_use"}}), ""),
    "chat annotations": Kind("completions", chat_said(annotations=[{"type": "url_citation", "url_citation": NOTE}]), "r"),
    "chat images": Kind("completions", chat_said(images=[{"type": "image_url", "image_url": {"url": PNG}}]), "g"),
    "chat refusal": Kind("completions", chat_said(content=None, refusal=MARK), "mrgv"),
    "chat audio id": Kind("completions", chat_said(audio={"id": MARK}), ""),
    "message citations of pages": Kind("messages", message_said({"type": "text", "text": "yes", "citations": [PAGE]}), "r"),
    "message citations of places": Kind("messages", message_said({"type": "text", "text": "yes", "citations": [PLACE]}), "v"),
    "message server tools": Kind("messages", message_said(
        {"type": "text", "text": "yes"},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": MARK}}), ""),
    "response annotations": Kind("responses", response_said(
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
         "content": [{"type": "output_text", "text": "yes", "annotations": [NOTE]}]}), ""),
    "response search": Kind("responses", response_said(
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": MARK}}), ""),
    "response code": Kind("responses", response_said(
        {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": MARK, "outputs": []}), "cmgv"),
    "gemini code": Kind("gemini", gemini_said({"executableCode": {"language": "PYTHON", "code": MARK}}), "cmrv"),
    "message code that ran": Kind("messages", message_said(
        {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {"code": "1"}},
        {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {
            "type": "code_execution_result", "stdout": MARK, "stderr": "", "return_code": 0, "content": []}}), "crgv"),
    "gemini image of the model": Kind("gemini", gemini_said(INLINE), ""),
    "chat sealed thoughts": Kind("completions", chat_said(thinking_blocks=[
        {"type": "redacted_thinking", "data": sealed("rs_1", MARK)}]), "r"),
    "chat details of OpenAI": Kind("completions", chat_said(reasoning_details=[
        {"type": "reasoning.encrypted", "data": MARK, "id": "rs_1", "format": "openai-responses-v1"}]), "r"),
    "chat details of Claude": Kind("completions", chat_said(reasoning_details=[
        {"type": "reasoning.text", "text": "hm", "signature": RAW, "format": "anthropic-claude-v1"},
        {"type": "reasoning.encrypted", "data": RAW, "format": "anthropic-claude-v1"}]), "mv"),
    "chat details of Gemini": Kind("completions", chat_said(reasoning_details=[
        {"type": "reasoning.encrypted", "data": RAW, "format": "google-gemini-v1"}]), ""),
    "message sealed thoughts": Kind("messages", message_said(
        {"type": "redacted_thinking", "data": sealed("rs_1", MARK)}, {"type": "text", "text": "yes"}), "r"),
    "response wrapped thoughts": Kind("responses", response_said(
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
         "encrypted_content": wrapped(RAW)},
        {"role": "assistant", "content": "yes"}), "mv"),
    "response thoughts of OpenAI": Kind("responses", response_said(
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": MARK}, {"role": "assistant", "content": "yes"}), ""),
    "chat custom call": Kind("completions", {**chat_said(content=None, tool_calls=[
        {"id": "c1", "type": "custom", "custom": {"name": "f", "input": MARK}}])}, "mrgv"),
    "response custom call": Kind("responses", response_said(
        {"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": "a"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": MARK}), "cmgv"),
    # -- what is wanted
    "converse search": Kind(
        "converse", {**converse(), "toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}]}}, "mrg", SEARCHES),
    "converse code wanted": Kind(
        "converse", {**converse(), "toolConfig": {"tools": [{"systemTool": {"name": "nova_code_interpreter"}}]}}, "", CODES),
    "converse citations wanted": Kind("converse", converse(
        {"document": {**CONVERSE_PDF["document"], "citations": {"enabled": True}}}), "m", ('"citations"',)),
    "chat search": Kind("completions", {**chat(), "web_search_options": {}}, "mrg", SEARCHES),
    "response search wanted": Kind("responses", {**response(), "tools": [{"type": "web_search"}]}, "mg", SEARCHES),
    "message search": Kind(
        "messages", {**message(), "tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "rg", SEARCHES),
    "gemini search": Kind("gemini", {**gemini(), "tools": [{"googleSearch": {}}]}, "mr", SEARCHES),
    "response code wanted": Kind("responses", {**response(), "tools": [
        {"type": "code_interpreter", "container": {"type": "auto"}}]}, "mg", CODES),
    "message code": Kind(
        "messages", {**message(), "tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}, "rg", CODES),
    "gemini code wanted": Kind("gemini", {**gemini(), "tools": [{"codeExecution": {}}]}, "mr", CODES),
    "response files wanted": Kind("responses", {**response(), "tools": [
        {"type": "file_search", "vector_store_ids": [MARK]}]}, ""),
    "chat custom tool": Kind("completions", {**chat(), "tools": [{"type": "custom", "custom": {"name": MARK}}]}, "mrgv"),
    "response custom tool": Kind("responses", {**response(), "tools": [{"type": "custom", "name": MARK}]}, "cmgv"),
    "response probabilities wanted": Kind(
        "responses", {**response(), "include": ["message.output_text.logprobs"]}, "cg", ('"logprobs"', '"responseLogprobs"')),
    "response results wanted": Kind("responses", {**response(), "include": ["file_search_call.results"]}, "", ("file_search",)),
    "message citations wanted": Kind("messages", message({**PDF_BLOCK, "citations": {"enabled": True}}), "v", ('"citations"',)),
}  # fmt: skip
CELLS = [
    pytest.param(name, pairs.PAIRS[kind.client, upstream], id=f"{name}-{upstream}")
    for name, kind in KINDS.items() for upstream in LETTERS.values() if (kind.client, upstream) in pairs.PAIRS
]  # fmt: skip


@pytest.mark.parametrize(("name", "pair"), CELLS)
def test_a_request_says_it_or_tells_that_it_does_not(name: str, pair: pairs.Converter) -> None:
    kind = KINDS[name]
    model = MODELS[pair.upstream]
    carries = pair.upstream in {LETTERS[letter] for letter in kind.carried}
    body = kind.body if pair.client in ("gemini", "converse") else {"model": model, **kind.body}
    refusal: Untranslatable | None
    try:
        asked = pair.request(body, Options(model=model, vendor="v"))
    except Untranslatable as error:
        refusal = error
    else:
        refusal = None
    if refusal is not None:
        assert not carries, str(refusal)
        assert refusal.field
        return
    told = json.dumps(asked.body)
    assert any(mark in told for mark in kind.marks) == carries
    assert bool(asked.dropped) != carries, asked.dropped
    assert shape_faults(pair.upstream, asked.body) == []


# -- answers -----------------------------------------------------------------------------------------------------------
class Said(NamedTuple):
    """One kind of content as a provider answers it, whole and streamed. `carried`: letters of the clients' formats that
    have a place for it; `untold`: the answer is marked where a format has none.
    """

    upstream: str
    whole: Json
    events: tuple[Json, ...]
    carried: str
    untold: bool = False
    marks: tuple[str, ...] = (RAW, MARK)
    request: Any = None


CLIENTS = {**LETTERS, "t": "text"}
ASKED: dict[str, Json] = {
    "completions": {"model": "m", "messages": [{"role": "user", "content": "a"}], "logprobs": True, "top_logprobs": 1},
    "messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}]},
    "responses": {"model": "m", "input": "a", "include": ["message.output_text.logprobs", "reasoning.encrypted_content"]},
    "gemini": {"contents": [{"parts": [{"text": "a"}]}], "generationConfig": {"responseLogprobs": True}},
    "text": {"model": "m", "prompt": "a", "logprobs": 1},
    "converse": {"messages": [{"role": "user", "content": [{"text": "a"}]}]},
}  # fmt: skip
PROB = {"token": MARK, "logprob": -0.5, "bytes": list(MARK.encode()), "top_logprobs": [
    {"token": MARK, "logprob": -0.5, "bytes": list(MARK.encode())}, {"token": "other", "logprob": -2.5, "bytes": None}]}  # fmt: skip
GOOGLE_PROBS = {"chosenCandidates": [{"token": MARK, "tokenId": 7, "logProbability": -0.5}], "topCandidates": [
    {"candidates": [{"token": MARK, "logProbability": -0.5}, {"token": "other", "logProbability": -2.5}]}]}  # fmt: skip


def chat_answer(logprobs: Any = None, **members: Any) -> tuple[Json, tuple[Json, ...]]:
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    said = {"role": "assistant", "content": "yes", **members}
    whole = {**head, "choices": [{"index": 0, "message": said, "logprobs": logprobs, "finish_reason": "stop"}]}
    first = {"index": 0, "delta": {"role": "assistant", "content": "yes"}, "logprobs": logprobs, "finish_reason": None}
    more = {"index": 0, "delta": {"content": "", **members}, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return whole, tuple({**head, "choices": [one]} for one in (first, more, last))


def gemini_answer(*parts: Json, **members: Any) -> tuple[Json, tuple[Json, ...]]:
    last = {"content": {"role": "model", "parts": [{"text": "yes"}, *parts]}, "finishReason": "STOP", "index": 0, **members}
    first = {"content": {"role": "model", "parts": [{"text": "well "}]}, "index": 0}
    return {"candidates": [last], "responseId": "r"}, ({"candidates": [first], "responseId": "r"}, {"candidates": [last]})


def response_answer(*items: Json, probs: Any = ()) -> tuple[Json, tuple[Json, ...]]:
    part = {"type": "output_text", "text": "yes", "annotations": [], "logprobs": list(probs)}
    output = [{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}, *items]
    done = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": output}
    events: list[Json] = [{"type": "response.created", "response": {**done, "status": "in_progress", "output": []}},
                          {"type": "response.output_item.added", "output_index": 0, "item": {**output[0], "content": []}},
                          {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
                           "delta": "yes", "logprobs": list(probs)}]  # fmt: skip
    events += [{"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(output)]
    return done, (*events, {"type": "response.completed", "response": done})


SHOWN = [{"type": "image_url", "image_url": {"url": PNG}, "index": 0}]
DRAWN = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": RAW, "output_format": "png"}
SAID = {
    "chat images": Said("completions", *chat_answer(images=SHOWN), carried="rgv", untold=True),
    "chat annotations": Said(
        "completions", *chat_answer(annotations=[{"type": "url_citation", "url_citation": NOTE}]), carried="mrgv", marks=(URL,)),
    "chat probabilities": Said("completions", *chat_answer({"content": [PROB]}), carried="rgt"),
    "chat details of OpenAI": Said("completions", *chat_answer(reasoning_details=[
        {"type": "reasoning.summary", "summary": "hm"},
        {"type": "reasoning.encrypted", "data": MARK, "id": "rs_1", "format": "openai-responses-v1"}]),
        carried="mrgv", marks=(MARK, wrapped(sealed("rs_1", MARK), True))),
    "chat details of Claude": Said("completions", *chat_answer(reasoning_details=[
        {"type": "reasoning.text", "text": "hm", "signature": RAW, "format": "anthropic-claude-v1"}]),
        carried="mrgv", marks=(RAW, wrapped(RAW))),
    "message thoughts": Said("messages", {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "stop_reason": "end_turn", "content": [
            {"type": "thinking", "thinking": "hm", "signature": RAW}, {"type": "redacted_thinking", "data": "deep"},
            {"type": "text", "text": "yes"}]}, (
        {"type": "message_start", "message": {"id": "msg_1", "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": RAW}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "deep"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "yes"}},
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}),
        carried="crgv", marks=(RAW, wrapped(RAW))),
    "response thoughts": Said("responses", *response_answer(
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": MARK}),
        carried="cmgv", marks=(MARK, wrapped(sealed("rs_1", MARK), True))),
    "chat sound": Said("completions", *chat_answer(audio={"id": "audio_1", "data": RAW, "transcript": "", "expires_at": 1}),
                       carried="g", untold=True),
    "gemini image": Said("gemini", *gemini_answer(INLINE), carried="crv", untold=True),
    "gemini sound": Said(
        "gemini", *gemini_answer({"inlineData": {"mimeType": "audio/L16", "data": RAW}}), carried="", untold=True),
    "gemini probabilities": Said("gemini", *gemini_answer(logprobsResult=GOOGLE_PROBS), carried="crt"),
    "gemini code": Said("gemini", *gemini_answer(
        {"executableCode": {"language": "PYTHON", "code": MARK}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}), carried="mr", untold=True),
    "response image": Said("responses", *response_answer(DRAWN), carried="cgv", untold=True),
    "response probabilities": Said("responses", *response_answer(probs=[PROB]), carried="cgt"),
}  # fmt: skip
ANSWERS = [
    pytest.param(name, pairs.PAIRS[client, said.upstream], streams, id=f"{name}-{client}-{'stream' if streams else 'whole'}")
    for name, said in SAID.items() for client in CLIENTS.values() if (client, said.upstream) in pairs.PAIRS
    for streams in (False, True)
]  # fmt: skip


@pytest.mark.parametrize(("name", "pair", "streams"), ANSWERS)
def test_an_answer_says_it_or_is_marked(name: str, pair: pairs.Converter, streams: bool) -> None:
    said = SAID[name]
    body = dict(ASKED[pair.client])
    if pair.client not in ("gemini", "converse"):
        body["stream"] = streams
    asked = pair.request(body, Options(model="m", vendor="v", stream=streams))
    carries = pair.client in {CLIENTS[letter] for letter in said.carried}
    if streams:
        stream = pair.stream(asked)
        out = b"".join(stream.event(event.get("type"), json.dumps(event).encode()) for event in said.events)
        told = (out + stream.end(None)).decode("utf-8", "replace")
        assert stream.failed is None, told
        untold = stream.untold
    else:
        told = json.dumps(pair.reply(said.whole, asked))
        untold = asked.untold
    assert "yes" in told
    assert any(mark in told for mark in said.marks) == carries, told
    assert untold == (said.untold and not carries)


def test_probabilities_that_nobody_wants_are_left_out() -> None:
    pair = pairs.PAIRS["gemini", "completions"]
    whole, events = chat_answer({"content": [PROB]})
    asked = pair.request({"contents": [{"parts": [{"text": "a"}]}]}, Options(model="m", stream=True))
    stream = pair.stream(asked)
    assert MARK.encode() not in b"".join(stream.event(None, json.dumps(event).encode()) for event in events)
    assert MARK not in json.dumps(pair.reply(whole, asked))
