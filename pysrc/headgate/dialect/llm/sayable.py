"""What each format can say of a client's request: one table for all pairs, and what is lost by it.

A path names a member of the client's request: `.` separates, `[]` stands for every entry of an array. Values of single
parameters that depend on the model (sampling with thinking, ...) are found by the translations themselves.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from headgate.dialect.llm.contract import Json
from headgate.dialect.llm.efforts import CACHE_BREAKPOINTS, gpt_version
from headgate_engine.llm.translate.losses import lost_below

_FORMATS: Final = {
    "c": "completions", "m": "messages", "r": "responses", "g": "gemini", "v": "converse",
    "b": "bedrock", "x": "vertex",
}  # fmt: skip
# Client format -> rows: the formats of providers that have a place, by their letters, and paths.
_TABLE: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "completions": (
        ("mgvr", "model messages tools tool_choice max_tokens max_completion_tokens temperature top_p stream "
                 "stream_options reasoning_effort response_format functions function_call thinking n"),
        ("mgv", "stop top_k"),
        ("mr", "parallel_tool_calls user"),
        ("g", "presence_penalty frequency_penalty seed thinking_config cachedContent cached_content safetySettings "
              "labels modalities audio"),
        ("r", "store metadata service_tier safety_identifier prompt_cache_key prompt_cache_retention verbosity "
              "messages[].content[].image_url.detail"),
        ("mrv", "tools[].function.strict"),
        ("gr", "logprobs top_logprobs"),
        ("mgr", "web_search_options"),
        ("", "logit_bias prediction moderation prompt_cache_options "
             "messages[].name messages[].audio"),
        ("mv", "messages[].cache_control messages[].content[].cache_control tools[].cache_control "
               "tools[].function.cache_control"),
    ),
    "messages": (
        ("crgv", "model messages system tools tool_choice max_tokens temperature top_p stream thinking output_config "
                 "output_format"),
        ("cgv", "stop_sequences"),
        ("cr", "metadata tool_choice.disable_parallel_tool_use"),
        ("crv", "tools[].strict"),
        ("gv", "top_k"),
        ("v", "anthropic_beta"),
        ("", "cache_control container mcp_servers context_management service_tier inference_geo speed"),
        ("rgv", "messages[].content[].is_error"),
        ("v", "tools[].cache_control"),
        ("cv", "messages[].content[].cache_control"),
        ("crv", "system[].cache_control"),
    ),
    "responses": (
        ("cmgv", "model input instructions tools tool_choice max_output_tokens temperature top_p stream stream_options "
                 "reasoning text"),
        ("cm", "parallel_tool_calls user"),
        ("c", "metadata service_tier safety_identifier prompt_cache_key text.verbosity input[].content[].detail"),
        ("cmv", "tools[].strict"),
        ("mv", "vendor_extensions"),
        ("cg", "top_logprobs"),
        ("cmgv", "include"),
        ("", "store truncation prompt max_tool_calls prompt_cache_retention prompt_cache_options "
             "context_management moderation reasoning.summary"),
    ),
    "gemini": (
        ("cmrv", "contents systemInstruction tools toolConfig generationConfig generationConfig.candidateCount"),
        ("", "safetySettings labels serviceTier store"),
        ("mv", "generationConfig.topK"),
        ("c", "generationConfig.presencePenalty generationConfig.frequencyPenalty generationConfig.seed"),
        ("cmv", "generationConfig.stopSequences"),
        ("cr", "generationConfig.responseLogprobs generationConfig.logprobs"),
        ("c", "generationConfig.responseModalities generationConfig.speechConfig"),
        ("", "generationConfig.mediaResolution generationConfig.audioTimestamp generationConfig.imageConfig "
             "generationConfig.routingConfig"),
    ),
    "converse": (
        ("cmrg", "messages system inferenceConfig toolConfig additionalModelRequestFields outputConfig"),
        ("cmg", "inferenceConfig.stopSequences"),
        ("mg", "additionalModelRequestFields.top_k"),
        ("cmr", "toolConfig.tools[].toolSpec.strict"),
        ("mrg", "messages[].content[].toolResult.status"),
        ("cmr", "system[].cachePoint"),
        ("cm", "messages[].content[].cachePoint"),
        ("m", "toolConfig.tools[].cachePoint"),
        ("", "guardrailConfig promptVariables additionalModelResponseFieldPaths requestMetadata performanceConfig "
             "serviceTier projectIdentifier"),
    ),
    "text": (
        ("cmrgv", "model prompt max_tokens temperature top_p stream stream_options echo n"),
        ("cmgv", "stop"),
        ("cg", "presence_penalty frequency_penalty seed"),
        ("cmr", "user"),
        ("c", "logit_bias"),
        ("crg", "logprobs"),
        ("", "best_of"),
    ),
    "embeddings": (
        ("bx", "model input dimensions encoding_format"),
        ("b", "embedding_purpose input_type normalize truncate"),
        ("x", "auto_truncate task_type title"),
        ("", "user"),
    ),
    "rerank": (
        ("bx", "model query documents return_documents top_n"),
        ("b", "max_tokens_per_doc"),
        ("", "rank_fields"),
    ),
}  # fmt: skip
# Provider formats by the letters above, where these are not their names.
_TABLES_OF: Final = {
    "bedrock_embeddings": "bedrock", "vertex_embeddings": "vertex", "bedrock_rerank": "bedrock",
    "vertex_rerank": "vertex",
}  # fmt: skip
# Values that say what a provider does anyway.
_PLAIN: Final[dict[str, tuple[Any, ...]]] = {
    "n": (1,), "frequency_penalty": (0,), "presence_penalty": (0,), "logprobs": (False,), "top_logprobs": (0,),
    "logit_bias": ({},), "modalities": (["text"],), "store": (False,), "metadata": ({},), "include": ([],),
    "service_tier": ("auto", "default"), "truncation": ("disabled",), "parallel_tool_calls": (True,),
    "verbosity": ("medium",), "text.verbosity": ("medium",), "messages[].content[].image_url.detail": ("auto",),
    "input[].content[].detail": ("auto",), "tools[].function.strict": (False,), "tools[].strict": (False,),
    "tool_choice.disable_parallel_tool_use": (False,), "messages[].content[].is_error": (False,),
    "mcp_servers": ([],), "stop_sequences": ([],),
    "best_of": (1,), "echo": (False,), "suffix": ("",), "generationConfig.candidateCount": (1,),
    "generationConfig.responseModalities": (["TEXT"], ["text"]), "generationConfig.responseLogprobs": (False,),
    "safetySettings": ([],), "generationConfig.stopSequences": ([],), "inferenceConfig.stopSequences": ([],),
    "requestMetadata": ({},), "promptVariables": ({},), "additionalModelResponseFieldPaths": ([],),
    "performanceConfig": ({"latency": "standard"},), "serviceTier": ({"type": "default"},),
    "messages[].content[].toolResult.status": ("success",), "toolConfig.tools[].toolSpec.strict": (False,),
}  # fmt: skip
# Hints: without them an answer says the same. They are told, but no reason to refuse a request.
HINTS: Final = frozenset((
    "user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
    "include", "reasoning.summary", "messages[].content[].citations", "cache_control", "system[].cache_control",
    "tools[].cache_control",
    "system[].cachePoint", "messages[].content[].cachePoint", "toolConfig.tools[].cachePoint", "requestMetadata",
    "projectIdentifier", "additionalModelResponseFieldPaths", "performanceConfig",
    "tools[].function.cache_control", "messages[].cache_control", "messages[].content[].cache_control",
))  # fmt: skip
# Paths that the translations find themselves, for the labels of metrics.
_FOUND: Final = frozenset((
    "messages[].content[]", "input[]", "input[].content[]", "input[].output[]", "tools[]", "reasoning.effort",
    "messages[].content[].content[]", "output_config.effort", "vendor_extensions.thinking_budget_tokens",
    "messages[].reasoning_content", "messages[].thinking_blocks", "messages[].reasoning_details",
    "messages[].annotations", "messages[].images", "messages[].content[].citations", "input[].content[].annotations",
    "additionalModelRequestFields.thinking", "inferenceConfig.temperature", "inferenceConfig.topP",
    "toolConfig.toolChoice", "toolConfig.tools[]", "outputConfig.textFormat",
    "additionalModelRequestFields.anthropic_beta", "messages[].content[].citationsContent.citations",
    "outputConfig.textFormat.structure.jsonSchema",
    "contents[].parts[]", "contents[].thinking_blocks", "generationConfig.thinkingConfig",
    "generationConfig.temperature", "generationConfig.topP", "generationConfig.speechConfig.voiceConfig", "audio.voice",
    "tools[].function.parameters", "tools[].parameters", "toolConfig", "answer", "tools[].custom.format",
    "tools[].format", "tools[].container", "tools[].user_location", "tools[].search_context_size", "tools[].max_uses",
    "tools[].allowed_domains", "tools[].blocked_domains", "web_search_options.search_context_size",
    "web_search_options.user_location", "tools[].googleSearch",
    "response_format.json_schema.schema", "text.format", "text.format.schema", "generationConfig.responseMimeType",
    "generationConfig.responseSchema",
    "tools[].codeExecution", "tools[].urlContext", "messages[].content[].content[].citations",
))  # fmt: skip
_INDEX: Final = re.compile(r"\[\d+\]")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.\[\]-]")
OTHER: Final = "other"
# Bytes of a path, and of all of them, in a response header.
LONGEST_NAME: Final = 96
LONGEST_VALUE: Final = 1024


# Path of what an answer says and the client's format has no place for, in the same header and metric.
ANSWER: Final = "answer"


class Past(str):
    """The path of a part of an earlier turn that only the vendor that made it can read: never a reason to refuse."""

    __slots__ = ()


def _named_for_a_result(holder: Json) -> bool:
    """Return whether `name` of a message names a tool, which formats have a place for."""
    return holder.get("role") in ("tool", "function")


# Where a path is said although the table says no: by its holder.
_EXCEPT: Final[dict[str, Callable[[Json], bool]]] = {"messages[].name": _named_for_a_result}


class Node(NamedTuple):
    """One member below the top level. `path`: "" if nothing is lost with it; `many`: its value is an array."""

    path: str
    many: bool
    below: dict[str, Node]


class Plan(NamedTuple):
    """What one pair carries of the top level, and the tree of what it does not carry below."""

    carried: frozenset[str]
    nested: dict[str, Node]


def carried(client: str, upstream: str) -> frozenset[str]:
    """Return the members at the top of a client's request that a format of providers can say; empty if all can be."""
    plan = plan_of(client, upstream)
    return frozenset() if plan is None else plan.carried


def paths_of(client: str, upstream: str) -> dict[str, bool]:
    """Return all paths of the table for a client, and whether the provider's format has a place for each."""
    told = _TABLES_OF.get(upstream, upstream)
    return {
        path: told in {_FORMATS[letter] for letter in letters}
        for letters, paths in _TABLE.get(client, ())
        for path in paths.split()
    }


@functools.cache
def plan_of(client: str, upstream: str) -> Plan | None:
    """Return what the table says of a pair; None if it says nothing, since the pair carries all."""
    told = _TABLES_OF.get(upstream, upstream)
    if client == upstream or client not in _TABLE or told not in _FORMATS.values():
        return None
    tree: dict[str, Any] = {}
    known = set()
    for path, said in paths_of(client, upstream).items():
        first, _, rest = path.partition(".")
        if said and not rest and not first.endswith("[]"):
            known.add(path)
        if said or not (rest or first.endswith("[]")):
            continue
        here = tree
        for step in path.split("."):
            here = here.setdefault(step, {})
        here[""] = path
    return Plan(frozenset(known), _nodes(tree))


def _nodes(tree: dict[str, Any]) -> dict[str, Node]:
    return {
        step.removesuffix("[]"): Node(below.get("", ""), step.endswith("[]"), _nodes(below))
        for step, below in tree.items()
        if step
    }


@functools.cache
def _labels(client: str) -> frozenset[str]:
    return frozenset(path for _, paths in _TABLE.get(client, ()) for path in paths.split()) | _FOUND


def lost(client: str, upstream: str, body: Json, model: str) -> list[str]:
    """Return the paths of what a request says and the provider's format cannot."""
    plan = plan_of(client, upstream)
    if plan is None:
        return []
    found = [
        name
        for name, value in body.items()
        if name not in plan.carried and value is not None and value not in _PLAIN.get(name, ())
    ]
    found += lost_below(plan.nested, body, _PLAIN, _EXCEPT)
    if client in _MARKS and upstream == "completions" and (gpt_version(model) or (0,)) < CACHE_BREAKPOINTS:
        found += lost_below(_MARKS[client], body, _PLAIN, _EXCEPT)
    return found


_MARKS: Final = {
    client: _nodes({
        "system[]": {name: {"": f"system[].{name}"}},
        "messages[]": {"content[]": {name: {"": f"messages[].content[].{name}"}}},
    })
    for client, name in (("messages", "cache_control"), ("converse", "cachePoint"))
}  # fmt: skip


def general(path: str) -> str:
    """Return a path without the numbers of entries."""
    return _INDEX.sub("[]", path)


def is_refusal(path: str) -> bool:
    """Return whether a request may be refused for what is lost."""
    return not isinstance(path, Past) and general(path) not in HINTS


def labels(client: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the values of a metric's label for paths, of which clients can invent no new ones."""
    known = _labels(client)
    return tuple(dict.fromkeys(path if path in known else OTHER for path in map(general, paths)))


def field_value(paths: Iterable[str]) -> bytes:
    """Return paths as the value of a response header: visible ASCII, LONGEST_VALUE at most."""
    told = ""
    for path in paths:
        # Names come from clients.
        name = _UNSAFE.sub("?", path[:LONGEST_NAME])
        if len(told) + len(name) > LONGEST_VALUE - 5:
            told += ", ..."
            break
        told += f", {name}" if told else name
    return told.encode("ascii")
