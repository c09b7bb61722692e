"""Formats by path, and models in paths."""

from __future__ import annotations

import pytest

from headgate_drivers.llm import azure_path, path_model
from headgate_engine.llm.formats import DEFAULT_ROUTES, RouteMap


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/chat/completions", "completions"),
        ("/openai/v1/chat/completions", "completions"),
        ("/v1/responses", "responses"),
        ("/v1/responses/compact", "detect"),
        ("/v1/messages", "messages"),
        ("/v1/messages/count_tokens", "count_tokens"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict", "messages"),
        ("/v1beta/models/g:streamGenerateContent", "gemini"),
        ("/v1beta/models/g:countTokens", "gemini_count_tokens"),
        ("/v2/rerank", "rerank"),
        ("/v1/images/edits", "detect"),
        ("/model/a/converse", "converse"),
        ("/model/a%3A0/converse-stream", "converse"),
        ("/a/converse", "passthrough"),
        ("/model/a/invoke", "passthrough"),
        ("/", "passthrough"),
    ],
)
def test_the_longest_suffix_counts(path: str, kind: str) -> None:
    assert RouteMap(DEFAULT_ROUTES).format_of(path) == kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/chat/completions/", "completions"),
        ("/v1//chat/completions", "completions"),
        ("/v1/chat/./completions", "completions"),
        ("/v1/chat/x/../completions", "completions"),
        ("/v1/chat/%63ompletions", "completions"),
        ("/v1/chat/%2563ompletions", "completions"),
        ("/v1/chat/completions%2F", "completions"),
        ("/v1/chat/completions;v=1", "completions"),
        ("/v1/chat\\completions", "completions"),
        ("/v1/Chat/Completions", "completions"),
        ("/v1/messages/count_tokens/", "count_tokens"),
        ("/v1beta/models/g:generat%65Content", "gemini"),
        ("/v1beta/models/g:GenerateContent/", "gemini"),
        ("/v1/Own", "messages"),
        ("/v1/own/", "messages"),
        ("/v1/chat/completions/1", "passthrough"),
        ("/../..", "passthrough"),
    ],
)
def test_other_spellings_of_a_path_are_that_path(path: str, kind: str) -> None:
    assert RouteMap({**DEFAULT_ROUTES, "/v1/Own": "messages"}).format_of(path) == kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/chat/completions", "completions"),
        ("/Chat//completions/", "completions"),
        ("/x/../responses", "responses"),
        ("/messages", "messages"),
        ("/messages/count_tokens", "count_tokens"),
        ("/%65mbeddings", "embeddings"),
        ("/rerank", "rerank"),
        ("/realtime", "realtime"),
        ("/images/edits", "detect"),
        ("/completions", "text"),
        # Threads of another interface have messages, too.
        ("/v1/threads/t/messages", "passthrough"),
        ("/threads/t/messages", "passthrough"),
        ("/own", "messages"),
    ],
)
def test_a_path_without_its_version(path: str, kind: str) -> None:
    assert RouteMap({**DEFAULT_ROUTES, "/v1/own": "messages"}).format_of(path) == kind
    assert RouteMap({**DEFAULT_ROUTES, path: "detect"}).format_of(path) == "detect"


def test_a_map_without_a_star_falls_back_to_completions() -> None:
    routes = RouteMap({"/chat": "messages"})
    assert [routes.format_of(path) for path in ("/x/chat", "/x")] == ["messages", "completions"]


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1beta/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro"),
        ("/v1beta/tunedModels/mine:generateContent", "mine"),
        ("/v1/projects/p/locations/l/publishers/google/models/a%2Fb:predict", "a/b"),
        ("/model/anthropic.claude-3%3A0/converse-stream", "anthropic.claude-3:0"),
        ("/model/a/invoke", "a"),
        ("/v1/models", None),
        ("/v1beta/models/acme/claude:generateContent", "acme/claude"),
        ("/v1beta/models/accounts/fireworks/models/llama:streamGenerateContent", "accounts/fireworks/models/llama"),
        ("/v1/models/deepseek/r1:free:countTokens", "deepseek/r1:free"),
        ("/v1/projects/p/locations/l/publishers/google/models/a/b:generateContent", None),
        ("/v1beta/models/a/../b:generateContent", None),
        ("/v1beta/models/a/./b:generateContent", None),
        ("/v1beta/models/a//b:generateContent", None),
        ("/v1beta/models/a/b:generate/Content", None),
        ("/v1beta/models/a/b:delete", None),
        ("/v1/chat/completions", None),
        ("/model//converse", None),
        ("/model/a/v1/chat/completions", None),
        ("/model/a/..%2f../converse", None),
        ("/v1beta/models/a:x/v1/messages", None),
    ],
)
def test_models_of_paths(path: str, model: str | None) -> None:
    assert path_model(path) == model


@pytest.mark.parametrize(
    ("path", "query", "found"),
    [
        (b"/openai/deployments/a%2Fb/chat/completions", b"?api-version=1&x=2", (b"a/b", b"/v1/chat/completions?x=2")),
        (b"/openai/deployments/m/embeddings", b"", (b"m", b"/v1/embeddings")),
        (b"/openai/deployments/m/images/generations", b"?api-version=1", None),
        (b"/openai/deployments//chat/completions", b"", None),
        (b"/openai/responses", b"?api-version=1", (None, b"/v1/responses")),
        (b"/openai/v1/responses", b"?api-version=preview", (None, b"/v1/responses")),
        (b"/openai/v1/responses", b"", None),
        (b"/openai/realtime", b"?api-version=1&deployment=m", (None, b"/v1/realtime?model=m")),
        (b"/openai/files", b"?api-version=1", None),
        (b"/other/deployments/m/chat/completions", b"", None),
    ],
)
def test_paths_of_azure(path: bytes, query: bytes, found: object) -> None:
    assert azure_path(path, query) == found
