"""Models, providers, and where requests go."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.config.llm_models import specificity
from headgate.config.llm_providers import PROVIDERS
from headgate.config.load import TextSource, load
from headgate.config.shape.llm import PRESETS
from headgate.ir.gateway import Gateway
from headgate.ir.model import LlmModel, LlmRouter, PromptCaching


def router(gateway: Gateway) -> LlmRouter:
    backend = gateway.binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(backend, LlmRouter)
    return backend


def model(gateway: Gateway) -> LlmModel:
    return router(gateway).models[0]


def test_every_preset_has_a_row_and_takes_completions() -> None:
    assert set(PROVIDERS) == {"openai", "anthropic", "gemini", "copilot", *PRESETS}
    assert all(PROVIDERS[name][1][0].type == "completions" for name in PRESETS)


def test_models_are_tried_from_the_most_specific_in_file_order(loaded: Callable[..., Gateway]) -> None:
    names = ["*", "a*", "*b", "abc", "xyz", "ab*"]
    text = "llm: {models: [" + ", ".join(f"{{name: '{name}', provider: openai}}" for name in names) + "]}"
    assert [one.pattern for one in router(loaded(text)).models] == ["abc", "xyz", "ab*", "a*", "*b", "*"]
    assert specificity("*") == 0


PLACES = [
    ("openAI", "", "api.openai.com:443", True, "/v1", None),
    ("openai", "baseUrl: 'http://h:1'", "h:1", False, "/v1", None),
    ("openai", "baseUrl: 'http://h:1/'", "h:1", False, "/v1", None),
    ("openai", "baseUrl: 'https://h/x/'", "h:443", True, "/x", None),
    ("openai", "baseUrl: 'https://h/x', pathOverride: /p", "h:443", True, "/v1", "/p"),
    ("openai", "baseUrl: 'https://h/x', pathPrefix: /q/", "h:443", True, "/q", None),
    ("openai", "hostOverride: 'h:1'", "h:1", False, "/v1", None),
    ("openai", "hostOverride: 'https://h'", "h:443", True, "/v1", None),
    ("openai", "pathPrefix: /", "api.openai.com:443", True, "", None),
    ("ollama", "", "localhost:11434", False, "/v1", None),
    ("groq", "", "api.groq.com:443", True, "/openai/v1", None),
    ("{custom: {formats: [{type: completions}]}}", "baseUrl: 'http://h:1'", "h:1", False, "/v1", None),
]


@pytest.mark.parametrize("place", PLACES, ids=[f"{case[0]} {case[1]}" for case in PLACES])
def test_where_requests_of_a_model_go(
    place: tuple[str, str, str, bool, str, str | None], loaded: Callable[..., Gateway]
) -> None:
    kind, params, address, tls, prefix, override = place
    found = model(loaded(f"llm: {{models: [{{name: m, provider: {kind}, params: {{{params}}}}}]}}")).provider
    assert (found.endpoint.address, found.endpoint.tls is not None) == (address, tls)
    assert (found.path_prefix, found.path_override) == (prefix, override)


def test_keys_are_trimmed_and_sent_as_bearer_unless_they_have_a_scheme(
    loaded: Callable[..., Gateway],
) -> None:
    for key, prefix in (("' sk-1 '", "Bearer "), ("'Basic abc'", "")):
        text = f"llm: {{models: [{{name: m, provider: openai, params: {{apiKey: {key}}}}}]}}"
        auth = model(loaded(text)).policies.auth
        assert auth is not None
        assert auth.fixed_header is not None
        assert auth.fixed_header.location.prefix == prefix
        assert auth.fixed_header.key.secret.reveal() in ("sk-1", "Basic abc")


def test_a_reference_takes_address_key_and_defaults_and_only_the_model_may_differ(
    loaded: Callable[..., Gateway], faults: Callable[..., list[str]]
) -> None:
    provider = (
        "providers: [{name: p, provider: openai, params: {apiKey: k, model: d}, defaults: {requestHeaders: "
        "{set: {a: '1'}}, responseHeaders: {set: {b: '1'}}}}]"
    )
    entry = "name: m, provider: {reference: p}, requestHeaders: {set: {a: '2'}}"
    found = model(loaded(f"llm: {{{provider}, models: [{{{entry}, params: {{model: x}}}}]}}"))
    assert found.pinned_model == "x"
    assert found.policies.auth is not None
    assert found.policies.request_headers is not None
    assert found.policies.request_headers.set == (("a", "2"),)
    assert found.policies.response_headers is not None
    assert model(loaded(f"llm: {{{provider}, models: [{{{entry}}}]}}")).pinned_model == "d"
    refused = faults(f"llm: {{{provider}, models: [{{{entry}, params: {{apiKey: x}}}}]}}")
    assert refused == [
        "llm.models[0].params.apiKey: a model with a provider reference sets only 'model' here (1)"
    ]


def test_internal_models_are_kept_away_from_clients(loaded: Callable[..., Gateway]) -> None:
    text = "llm: {models: [{name: a, provider: openai, visibility: Internal}, {name: b, provider: openai}]}"
    found = router(loaded(text))
    assert [one.pattern for one in found.models] == ["b"]
    assert [one.pattern for one in found.internal_models] == ["a"]


NAMED = """
binds:
- port: 8080
  listeners:
  - routes:
    - backends: [{backend: models/a}]
      policies: {ai: {defaults: {temperature: 1}}}
    - matches: [{path: {pathPrefix: /b}}]
      backends: [{backend: models/b}]
backends:
- name: models/a
  llm: {models: [{name: m, provider: openai}, {name: m, id: second, provider: openai}]}
- name: models/b
  llm: {models: [{name: m, provider: openai}], virtualModels: [{name: v, routing: {weighted: {targets: [{model: m}]}}}]}
"""


def test_a_named_backend_may_be_models(loaded: Callable[..., Gateway]) -> None:
    """Keys of models differ, so that no two share what is known of their health."""
    routes = loaded(NAMED).binds[0].listeners[0].routes
    first, second = (one.backends[0].backend for one in routes)
    assert isinstance(first, LlmRouter)
    assert isinstance(second, LlmRouter)
    assert (first.key, second.key) == ("llm//models/a", "llm//models/b")
    assert [one.key for one in first.models] == ["llm:model:/models/a/m:0", "llm:model:/models/a/second"]
    assert first.models[0].edits.defaults == '{"temperature": 1}'
    assert [one.name for one in second.virtual_models] == ["v"]


def test_prompt_caching_is_inherited_and_can_be_taken_away(loaded: Callable[..., Gateway]) -> None:
    gateway = loaded("""
llm:
  providers: [{name: p, provider: bedrock, params: {apiKey: k}, defaults: {promptCaching: {minTokens: 7, cacheMessageOffset: 2}}}]
  models:
  - {name: a, provider: {reference: p}}
  - {name: b, provider: {reference: p}, promptCaching: null}
  - {name: c, provider: {reference: p}, promptCaching: {cacheSystem: false}}
  - {name: d, provider: bedrock, params: {apiKey: k}}
""")
    router = gateway.binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(router, LlmRouter)
    assert [model.edits.caching for model in router.models] == [
        PromptCaching(least_tokens=7, offset=2),
        PromptCaching(system=False, messages=False, tools=False),
        PromptCaching(system=False),
        None,
    ]


REFUSED = [
    ("models: [{name: m, provider: {reference: p}}]", "no provider is named 'p'"),
    ("models: [{name: m, provider: {custom: {formats: [{type: completions}]}}}]", "needs 'params.baseUrl'"),
    (
        "models: [{name: m, provider: {custom: {formats: []}}, params: {baseUrl: 'http://h'}}]",
        "a custom provider needs a format",
    ),
    (
        "models: [{name: m, provider: {custom: {formats: [{type: messages}, {type: messages}]}},"
        " params: {baseUrl: 'http://h'}}]",
        "a format is declared twice",
    ),
    ("models: [{name: m, provider: azure, params: {azureResourceType: openAI}}]", "'azureResourceName' is required"),
    ("models: [{name: m, provider: openai, params: {azureApiVersion: v1}}]", "is for azure only"),
    ("models: [{name: m, provider: openai, transformation: {model: 'nope('}}]", "llm.models[0].transformation.model"),
    ("models: [{name: m, provider: openai, params: {tokenize: 2}}]", "params.tokenize"),
    ("models: [{name: m, provider: openai, params: {baseUrl: 'http://h', hostOverride: 'h:1'}}]", "exclude"),
    ("models: [{name: m, provider: openai, params: {apiKey: k}, auth: {key: k}}]", "exclude each other"),
    (
        "models: [{name: m, provider: openai, id: a}, {name: n, provider: openai, id: a}]",
        "id 'a' is used twice",
    ),
    ("models: [{name: m, provider: openai, id: ''}]", "a model id cannot be empty"),
    ("models: [{name: m, provider: copilot, auth: Copilots}]", "llm.models[0].auth"),
    ("models: [{name: m, provider: vertex}]", "'vertexProject' is required for vertex"),
    ("models: [{name: m, provider: openai, params: {vertexRegion: x}}]", "vertexRegion: is for vertex only"),
    ("models: [{name: m, provider: opena}]", "did you mean"),
    ("models: [{name: m, provider: openai, passthrough: raw}]", "unknown value 'raw' (one of detect, opaque)"),
    ("models: [{name: m, provider: openai, authorization: {rules: ['nope(']}}]", "llm.models[0].authorization.rules[0]"),
    ("models: [{name: m, provider: openai, matches: [{headers: [{name: ':nope', value: {exact: a}}]}]}]", "nope"),
    ("models: [{name: m, provider: openai, matches: [{headers: [{name: a, value: {regex: '('}}]}]}]", "regex"),
    ("models: [], providers: [{name: p, provider: {reference: q}}]", "a provider cannot refer to a provider"),
    (
        "models: [], providers: [{name: p, provider: openai}, {name: p, provider: openai}]",
        "provider 'p' is declared twice",
    ),
    ("models: [{name: m, provider: openai, params: {apiKey: ' '}}]", "a secret cannot be empty"),
]


@pytest.mark.parametrize(("section", "fault"), REFUSED, ids=[case[1] for case in REFUSED])
def test_models_that_cannot_work_are_refused(
    section: str, fault: str, faults: Callable[..., list[str]]
) -> None:
    found = faults(f"llm: {{{section}}}")
    assert len(found) == 1
    assert fault in found[0]


AUTHORIZED = """
gateways: {default: {port: 3000}}
llm:
  models:
  - {name: gpt-5-pro, provider: openai, params: {apiKey: k}, authorization: {rules: ['jwt.sub == "ada"']}}
  - {name: %s, provider: openai, params: {apiKey: k}%s}
"""
OPEN, RULES = "", ", authorization: {rules: ['jwt.sub != null']}"


@pytest.mark.parametrize(
    ("pattern", "more", "warned"),
    [('"*"', OPEN, True), ("gpt-*", OPEN, True), ("claude-*", OPEN, False), ('"*"', RULES, False), ("gpt-5-pro", OPEN, True)],
)
def test_a_way_round_the_authorization_of_a_model(pattern: str, more: str, warned: bool) -> None:
    found = [text for text in load(TextSource(AUTHORIZED % (pattern, more))).warnings if "authorization" in text]
    assert len(found) == warned
    assert all(text.startswith("llm.models[0].authorization: a request that it denies is sent to model") for text in found)
