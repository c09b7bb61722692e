"""The table of what each format can say, held against what the translations do."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from headgate.dialect.llm import sayable
from headgate.dialect.llm.contract import Options, Untranslatable
from headgate.dialect.llm.pairs import PAIRS

Json = dict[str, Any]
PICTURE = "data:image/png;base64,aGVsbG8="
# A request of every client with a place for each path of the table.
# A schema that every vendor takes for a strict tool.
FULL: Json = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
BASES: dict[str, Json] = {
    "completions": {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "hi"},
                                         {"type": "image_url", "image_url": {"url": PICTURE}}]},
            {"role": "assistant", "content": "yes?"},
            {"role": "user", "content": "look"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object",
                   "properties": {"a": {"type": "string"}}}}}],
    },
    "messages": {
        "model": "m-1", "max_tokens": 99,
        "system": [{"type": "text", "text": "be brief"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {"a": "b"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "c"}]},
        ],
        "tools": [{"name": "f", "input_schema": FULL}],
        "tool_choice": {"type": "auto"},
    },
    "responses": {
        "model": "m-1", "instructions": "be brief",
        "input": [{"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": PICTURE}]}],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object",
                   "properties": {"a": {"type": "string"}}}}],
        "text": {"format": {"type": "text"}}, "reasoning": {},
    },
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object",
                   "properties": {"a": {"type": "string"}}}}]}],
        "generationConfig": {"maxOutputTokens": 99},
    },
    "converse": {
        "system": [{"text": "be brief"}],
        "messages": [
            {"role": "user", "content": [{"text": "hi"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": "b"}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "c"}]}}]},
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": FULL}}}]},
        "inferenceConfig": {"maxTokens": 99}, "additionalModelRequestFields": {},
    },
    "text": {"model": "m-1", "prompt": "hi"},
    "embeddings": {"model": "amazon.titan", "input": "hi"},
    "rerank": {"model": "m-1", "query": "q", "documents": ["a", "b"]},
}  # fmt: skip
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
# Values that a client may give; those of a pair where a path needs one of its own.
VALUES: dict[str, Any] = {
    "tool_choice": "required", "max_tokens": 7, "max_completion_tokens": 8, "stop": ["x"], "temperature": 0.5,
    "top_p": 0.99, "stream": True, "stream_options": {"include_usage": True}, "reasoning_effort": "high",
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
    "functions": [{"name": "older"}], "function_call": {"name": "f"}, "parallel_tool_calls": False, "user": "u",
    "thinking": {"type": "enabled", "budget_tokens": 2000}, "top_k": 5, "presence_penalty": 0.5,
    "frequency_penalty": 0.5, "n": 2, "seed": 5, "thinking_config": {"includeThoughts": True},
    "cachedContent": "cachedContents/1", "cached_content": "cachedContents/1",
    "safetySettings": [{"category": "c", "threshold": "t"}], "labels": {"a": "b"},
    "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    "output_format": {"type": "json_schema", "schema": SCHEMA}, "stop_sequences": ["x"],
    "metadata": {"user_id": "u"}, "anthropic_beta": ["effort-2025-11-24"], "max_output_tokens": 7,
    "logprobs": True, "top_logprobs": 2,
    "reasoning": {"effort": "high"}, "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
    "service_tier": "flex", "safety_identifier": "s", "prompt_cache_key": "k",
    "vendor_extensions": {"thinking_budget_tokens": 2000}, "instructions": "be long", "dimensions": 256,
    "encoding_format": "base64", "embedding_purpose": "CLASSIFICATION", "input_type": "classification",
    "normalize": True, "truncate": "START", "auto_truncate": False, "task_type": "CLASSIFICATION", "title": "t",
    "return_documents": True, "top_n": 1, "max_tokens_per_doc": 9, "query": "p", "documents": ["c"],
    "tool_choice.disable_parallel_tool_use": True, "messages[].content[].is_error": True,
    "modalities": ["text", "audio"], "audio": {"voice": "Kore", "format": "pcm16"},
    "prompt": "ho", "prompt_cache_retention": "24h", "verbosity": "low", "store": True, "tools[].strict": True, "tools[].function.strict": True, "text.verbosity": "low",
    "input[].content[].detail": "high", "messages[].content[].image_url.detail": "high",
}  # fmt: skip
GIVEN = {
    ("responses", "tool_choice"): "required", ("messages", "tool_choice"): {"type": "any"},
    ("messages", "thinking"): {"type": "adaptive"}, ("messages", "system"): "be long",
    ("messages", "tools"): [{"name": "g", "input_schema": {"type": "object"}}],
    ("messages", "messages"): [{"role": "user", "content": "ho"}], ("completions", "tools"): [],
    ("completions", "messages"): [{"role": "user", "content": "ho"}], ("responses", "tools"): [],
    ("gemini", "contents"): [{"parts": [{"text": "ho"}]}], ("gemini", "tools"): [],
    ("gemini", "systemInstruction"): {"parts": [{"text": "be brief"}]}, ("text", "echo"): True,
    ("gemini", "toolConfig"): {"functionCallingConfig": {"mode": "ANY"}},
    ("gemini", "generationConfig"): {"maxOutputTokens": 5}, ("gemini", "generationConfig.topK"): 7,
    ("gemini", "generationConfig.presencePenalty"): 0.5, ("gemini", "generationConfig.frequencyPenalty"): 0.5,
    ("gemini", "generationConfig.seed"): 3, ("gemini", "generationConfig.candidateCount"): 2,
    ("gemini", "generationConfig.responseLogprobs"): True, ("gemini", "generationConfig.logprobs"): 2, ("gemini", "generationConfig.stopSequences"): ["x"],
    ("gemini", "generationConfig.responseModalities"): ["AUDIO"],
    ("gemini", "generationConfig.speechConfig"): {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}},
    ("text", "best_of"): 3, ("text", "logprobs"): 2, ("text", "logit_bias"): {"1": 2},
    ("converse", "messages"): [{"role": "user", "content": [{"text": "ho"}]}], ("converse", "system"): [{"text": "be long"}],
    ("converse", "inferenceConfig"): {"maxTokens": 5}, ("converse", "toolConfig"): {},
    ("converse", "additionalModelRequestFields"): {"output_config": {"effort": "low"}},
    ("converse", "outputConfig"): {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {
        "schema": json.dumps(SCHEMA)}}}},
    ("converse", "inferenceConfig.stopSequences"): ["x"], ("converse", "additionalModelRequestFields.top_k"): 5,
    ("converse", "toolConfig.tools[].toolSpec.strict"): True, ("converse", "messages[].content[].toolResult.status"): "error",
    ("converse", "guardrailConfig"): {"guardrailIdentifier": "g", "guardrailVersion": "1"},
    ("converse", "additionalModelResponseFieldPaths"): ["/a"], ("converse", "requestMetadata"): {"a": "b"},
    ("converse", "performanceConfig"): {"latency": "optimized"}, ("converse", "serviceTier"): {"type": "flex"},
    ("responses", "input"): "ho", ("embeddings", "input"): "ho",
}  # fmt: skip
# What is said, but not in the body.
BESIDE = {"model", "stream", "stream_options", "encoding_format", "return_documents", "include_usage", "echo"}
# Said by a number in the body, or by so many requests.
CHOICES = {"n", "generationConfig.candidateCount"}
# Models of embeddings that have a place for a member which others have none for.
OWNERS = {"embedding_purpose": "amazon.nova", "truncate": "amazon.nova", "input_type": "cohere.embed-v4"}
CACHED = {"type": "ephemeral"}


def value_of(client: str, path: str) -> Any:
    if path.endswith("cache_control"):
        return CACHED
    if path.endswith("cachePoint"):
        return {"type": "default"}
    return GIVEN.get((client, path), VALUES.get(path, "some"))


def with_member(body: Json, path: str, value: Any) -> Json:
    """Return the body with a member set wherever the path leads."""
    out = copy.deepcopy(body)
    holders: list[Any] = [out]
    if path.endswith("[].cachePoint"):
        # It is a block of its own, behind another.
        for name in path.removesuffix("[].cachePoint").split("."):
            holders = [one for item in holders for one in (item if isinstance(item, list) else [item])]
            holders = [holder[name.removesuffix("[]")] for holder in holders]
        for blocks in holders:
            blocks.append({"cachePoint": value})
        return out
    *steps, last = path.split(".")
    for step in steps:
        name = step.removesuffix("[]")
        found = [holder[name] for holder in holders if isinstance(holder, dict) and name in holder]
        holders = [one for item in found for one in (item if isinstance(item, list) else [item])]
    for holder in holders:
        if isinstance(holder, dict):
            holder[last] = value
    return out


CASES = [
    pytest.param(pair, path, said, id=f"{pair.client}-{pair.upstream}-{path}")
    for pair in PAIRS.values()
    for path, said in sayable.paths_of(pair.client, pair.upstream).items()
    # What can be included depends on the values, a search at Gemini on the tools beside it: test_contents.py.
    if sayable.plan_of(pair.client, pair.upstream) is not None and path not in ("include", "web_search_options", "promptVariables")
]


@pytest.mark.parametrize(("pair", "path", "said"), CASES)
def test_the_table_says_what_the_translation_does(pair: Any, path: str, said: bool) -> None:
    base = BASES[pair.client]
    if pair.upstream == "bedrock_embeddings":
        base = {**base, "model": OWNERS.get(path, "amazon.titan")}
    model = "gpt-5.6" if path.endswith(("cache_control", "cachePoint")) and pair.upstream == "completions" else base.get("model", "m-1")
    if path.endswith("strict") and pair.upstream == "converse":
        model = "us.anthropic.claude-sonnet-4-5"
    options = Options(model=model, vendor="v")
    changed = with_member(base, path, value_of(pair.client, path))
    assert changed != base or path == "model"
    before, after = pair.request(base, options), pair.request(changed, options)
    told = {sayable.general(one) for one in after.dropped}
    if not said:
        assert json.dumps(after.body) == json.dumps(before.body)
        assert path in told
        return
    assert path not in told
    if path in CHOICES:
        inside = after.body.get("generationConfig", {}).get("candidateCount", after.body.get("n"))
        assert (after.choices, inside) in ((2, None), (1, 2))
    elif path not in BESIDE:
        assert json.dumps(after.body) != json.dumps(before.body)
    elif path == "stream":
        assert after.stream or not pair.streams


def test_every_pair_that_talks_has_its_row() -> None:
    assert {pair.client for pair in PAIRS.values()} - set(BASES) <= {"count_tokens", "gemini_count_tokens"}


@pytest.mark.parametrize(
    ("path", "value"),
    [("n", 1), ("frequency_penalty", 0.0), ("logprobs", False), ("store", None), ("messages[].name", None),
     ("messages[].content[].image_url.detail", "auto"), ("tools[].function.strict", False)],
)  # fmt: skip
def test_what_a_provider_does_anyway_is_not_told(path: str, value: Any) -> None:
    changed = with_member(BASES["completions"], path, value)
    assert sayable.lost("completions", "messages", changed, "claude") == []


def test_the_name_of_a_tool_is_no_name_of_a_speaker() -> None:
    turns = [{"role": "user", "content": "a", "name": "ann"}, {"role": "tool", "name": "f", "content": "b"}]
    assert sayable.lost("completions", "gemini", {"messages": turns}, "m") == ["messages[0].name"]


@pytest.mark.parametrize(("model", "told"), [("gpt-5.6", 0), ("gpt-5.2", 2), ("llama", 2)])
def test_marks_of_caches_depend_on_the_model(model: str, told: int) -> None:
    body = {"system": [{"type": "text", "text": "a", "cache_control": CACHED}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": CACHED}]}]}  # fmt: skip
    assert len(sayable.lost("messages", "completions", body, model)) == told


def test_hints_and_what_others_said_earlier_are_no_reason_to_refuse() -> None:
    assert sayable.is_refusal("seed")
    assert sayable.is_refusal("messages[3].name")
    assert not sayable.is_refusal("messages[3].content[1].cache_control")
    assert not sayable.is_refusal(sayable.Past("messages[3].content[1]"))


def test_clients_invent_no_labels() -> None:
    assert sayable.labels("completions", ["seed", "x" * 9, "y", "messages[7].name"]) == (
        "seed", "other", "messages[].name",
    )  # fmt: skip


def test_a_header_is_short_and_clean() -> None:
    assert sayable.field_value(["a\r\nb: c", "tools[1]"]) == b"a??b??c, tools[1]"
    long = sayable.field_value([f"name{'x' * 500}{at}" for at in range(99)])
    assert len(long) <= sayable.LONGEST_VALUE
    assert long.endswith(b", ...")


def test_a_request_that_cannot_be_said_at_all_is_refused_as_before() -> None:
    pair = PAIRS["responses", "messages"]
    with pytest.raises(Untranslatable):
        pair.request({"model": "m", "input": "a", "previous_response_id": "r"}, Options())
