"""Which model a request gets, and what `policies.ai` of a route does to it: one gateway for the whole file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end import llm_rig
from tests.end_to_end.llm_rig import rigged
from tests.end_to_end.provider_stand_in import chat, whole

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  gateways: [default]
  policies:
    apiKey:
      mode: permissive
      keys:
      - {key: k-few, allowedModels: [gpt-5, "tier*"]}
      - {key: k-all, allowedModels: ["*"]}
      - {key: k-narrow, allowedModels: ["gpt-5*", "*-mini", "*-first"]}
      - {key: k-wide, allowedModels: ["g*", gpt-5, strange]}
      - {key: k-none, allowedModels: []}
  providers:
  - {name: main, provider: openAI, params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: sk-gateway}}
  models:
  - name: tiered
    id: gold
    provider: {reference: main}
    params: {model: gold-model}
    matches:
    - headers: [{name: x-tier, value: {exact: gold}}, {name: ":method", value: {exact: POST}}]
    - headers: [{name: x-tier, value: {regex: "plat.*"}}]
  - {name: tiered, id: plain, provider: {reference: main}, params: {model: plain-model}}
  - name: closed
    provider: {reference: main}
    authorization: {rules: ['request.headers["x-team"] == "red"']}
  - name: short-only
    provider: {reference: main}
    authorization: {rules: ['llmRequest.messages.size() < 2']}
  - name: short-body
    provider: {reference: main}
    authorization: {rules: ['json(request.body).messages.size() < 2']}
  - {name: inside, visibility: internal, provider: {reference: main}, authorization: {rules: ['request.headers["x-team"] == "red"']}}
  - name: vip
    visibility: internal
    provider: {reference: main}
    matches: [{headers: [{name: x-tier, value: {exact: gold}}]}]
  - {name: "gpt-*", provider: {reference: main}}
  - {name: watched, provider: {reference: main}, passthrough: detect, overrides: {user: gateway}}
  - {name: blind, provider: {reference: main}, passthrough: opaque, overrides: {user: gateway}}
  virtualModels:
  - {name: by-tier, routing: {weighted: {targets: [{model: tiered}]}}}
  - {name: by-team, routing: {failover: {targets: [{model: inside, priority: 1}, {model: gpt-5, priority: 2}]}}}
  - {name: first-tier, routing: {failover: {targets: [{model: tiered, priority: 1}, {model: gpt-5, priority: 2}]}}}
  - {name: gold-first, routing: {failover: {targets: [{model: vip, priority: 1}, {model: gpt-5, priority: 2}]}}}
  - {name: gold-only, routing: {failover: {targets: [{model: vip, priority: 1}]}}}
  - {name: team-only, routing: {failover: {targets: [{model: inside, priority: 1}]}}}
routes:
- name: with-ai
  gateways: [default]
  hostnames: [ai.test]
  policies:
    ai:
      defaults: {temperature: 0.5, seed: 1}
      overrides: {user: route}
      modelAliases: {fast: route-fast, slow: route-slow}
      prompts: {prepend: [{role: system, content: from the route}]}
      promptGuard: {request: [{regex: {action: reject, rules: [{pattern: forbidden}]}}]}
      routes: {/v1/list: models, /v1/things: detect}
  backends:
  - ai: {name: it, provider: {openAI: {}}, hostOverride: "127.0.0.1:BACKEND"}
    policies:
      backendAuth: {key: sk-gateway}
      ai: {defaults: {seed: 2}, modelAliases: {fast: backend-fast}}
- name: moderated
  gateways: [default]
  hostnames: [moderated.test]
  backends:
  - ai:
      name: moderated
      provider: {openAI: {moderation: {policy: {input: {mode: block}, output: {mode: score}}}}}
      hostOverride: "127.0.0.1:BACKEND"
      policies: {backendAuth: {key: sk-gateway}}
policies:
- name: {name: everywhere, namespace: default}
  target: {gateway: {gatewayName: default, gatewayNamespace: default}}
  policy: {ai: {transformations: {metadata: '{"from": "gateway"}'}}}
"""
VIRTUAL = ["by-tier", "by-team", "first-tier", "gold-first", "gold-only", "team-only"]
MESSAGES: list[Any] = [{"role": "user", "content": "hi"}]


class Rig(llm_rig.Rig):
    def model_for(self, model: str, messages: list[Any] = MESSAGES, **headers: str) -> str:
        """The model that the provider is asked for, or the code of the refusal."""
        answer = self.post({"model": model, "messages": messages}, **headers)
        return str(self.provider.last.json["model"] if answer.status_code == 200 else answer.json()["error"]["code"])

    def listed(self, **headers: str) -> list[str]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = httpx.get(f"{self.running.url}/v1/models", headers=given, timeout=60)
        return [one["id"] for one in answer.json()["data"]]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with rigged(tmp_path_factory.mktemp("selection"), CONFIG) as (running, provider):
        yield Rig(running, provider)


@pytest.mark.parametrize(
    ("headers", "model"),
    [
        ({"x_tier": "gold"}, "gold-model"),
        ({"x_tier": "platinum"}, "gold-model"),
        ({"x_tier": "golden"}, "plain-model"),
        ({}, "plain-model"),
    ],
)
def test_fields_of_the_head_choose_among_models_of_one_name(rig: Rig, headers: dict[str, str], model: str) -> None:
    assert rig.model_for("tiered", **headers) == model
    assert rig.model_for("by-tier", **headers) == model


def test_a_model_that_the_rules_refuse_is_passed_over(rig: Rig) -> None:
    assert rig.model_for("closed", x_team="red") == "closed"
    assert rig.model_for("closed", x_team="blue") == "model_authorization_denied"
    assert rig.model_for("closed") == "model_authorization_denied"
    assert rig.model_for("short-only") == "short-only"
    assert rig.model_for("short-only", messages=MESSAGES * 2) == "model_authorization_denied"
    assert rig.model_for("short-body") == "short-body"
    assert rig.model_for("short-body", messages=MESSAGES * 2) == "model_authorization_denied"


def test_targets_of_failover_keep_their_rules(rig: Rig) -> None:
    assert rig.model_for("by-team", x_team="red") == "inside"
    assert rig.model_for("by-team") == "gpt-5"
    assert rig.model_for("team-only", x_team="red") == "inside"
    assert rig.model_for("team-only") == "model_authorization_denied"
    assert rig.model_for("inside", x_team="red") == "model_not_found"


def test_targets_of_failover_want_what_their_models_match(rig: Rig) -> None:
    assert rig.model_for("first-tier", x_tier="gold") == "gold-model"
    assert rig.model_for("first-tier") == "plain-model", "the next model of that name"
    assert rig.model_for("gold-first", x_tier="gold") == "vip"
    assert rig.model_for("gold-first") == "gpt-5"
    assert rig.model_for("gold-only", x_tier="gold") == "vip"
    assert rig.model_for("gold-only") == "virtual_model_not_resolved"


def test_a_target_that_a_request_fits_is_left_when_it_fails(rig: Rig) -> None:
    for tier, first in (("gold", "gold-model"), ("none", "plain-model")):
        before = len(rig.provider.seen)
        rig.provider.answers[:] = [whole({}, 500), whole(chat())]
        rig.model_for("first-tier", x_tier=tier)
        # Of two models of one name only that which the request fits is a target.
        assert [one.json["model"] for one in rig.provider.seen[before:]] == [first, "gpt-5"]


def test_the_list_has_what_the_request_may_use(rig: Rig) -> None:
    assert rig.listed() == ["watched", "tiered", "blind", "gpt-*", *VIRTUAL]
    assert rig.listed(x_team="red") == ["watched", "tiered", "closed", "blind", "gpt-*", *VIRTUAL]


@pytest.mark.parametrize(
    ("key", "listed", "served", "refused"),
    [
        # A key for one model of a pattern sees that model.
        ("k-few", ["tiered", "gpt-5"], ["gpt-5"], ["gpt-4", "watched"]),
        ("k-all", ["watched", "tiered", "blind", "gpt-*", *VIRTUAL], ["gpt-4", "watched"], []),
        # Of a pattern, a key's patterns leave a part; a start and an end leave both.
        ("k-narrow", ["gpt-5*", "gpt-*-mini", "gpt-*-first", "gold-first"], ["gpt-5-x", "gpt-4-mini"], ["gpt-4", "tiered"]),
        # A name that the key gives is listed beside the pattern that it is of; one that no model serves is not.
        ("k-wide", ["gpt-*", "gpt-5", "gold-first", "gold-only"], ["gpt-4", "gpt-5"], ["tiered"]),
        ("k-none", [], [], ["gpt-5", "tiered"]),
    ],
)
def test_the_list_has_what_a_key_may_use(rig: Rig, key: str, listed: list[str], served: list[str], refused: list[str]) -> None:
    held = {"authorization": f"Bearer {key}"}
    assert rig.listed(**held) == listed
    assert [rig.model_for(model, **held) for model in served] == served
    assert [rig.model_for(model, **held) for model in refused] == ["model_not_allowed"] * len(refused)


def test_paths_without_a_format_are_read_or_left_alone(rig: Rig) -> None:
    path = "/v1/unheard/of"
    body = b'{ "model": "watched", "x": 1 }'
    assert rig.post(body, path).status_code == 200
    edited = {"model": "watched", "x": 1, "user": "gateway", "metadata": {"from": "gateway"}}
    assert (rig.provider.last.path, rig.provider.last.json) == (path, edited)
    rig.running.wait_log("gen_ai.request.model=watched")
    body = b'{ "model": "blind", "x": 1 }'
    assert rig.post(body, path).status_code == 200
    assert rig.provider.last.body == body
    rig.running.wait_log("gen_ai.request.model=blind")
    [line] = [line for line in rig.running.log().splitlines() if "gen_ai.request.model=blind" in line]
    assert "gen_ai.usage" not in line
    # A known path has its format whatever the model says.
    assert rig.post({"model": "blind", "messages": []}).status_code == 200
    assert rig.provider.last.json["user"] == "gateway"


@pytest.mark.parametrize("encoding", ["gzip, br", "compress", "dcb"])
def test_a_body_in_another_encoding_is_415(rig: Rig, encoding: str) -> None:
    before = len(rig.provider.seen)
    answer = rig.post(b"\x0b\x02\x80{}\x03", content_encoding=encoding)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_content_encoding")
    assert len(rig.provider.seen) == before


def test_policies_of_route_backend_and_gateway_add_up_field_by_field(rig: Rig) -> None:
    assert rig.post({"model": "slow", "messages": MESSAGES}, host="ai.test").status_code == 200
    # `defaults` and `modelAliases` are the backend's, whole: it is the stronger level. The rest is the route's.
    assert rig.provider.last.json == {
        "model": "slow",
        "messages": [{"role": "system", "content": "from the route"}, *MESSAGES],
        "user": "route",
        "metadata": {"from": "gateway"},
        "seed": 2,
    }
    assert rig.post({"model": "fast", "messages": MESSAGES}, host="ai.test").status_code == 200
    assert rig.provider.last.json["model"] == "backend-fast"
    refused = rig.post({"model": "slow", "messages": [{"role": "user", "content": "forbidden"}]}, host="ai.test")
    assert refused.status_code == 403
    # A policy of the gateway reaches the models of the `llm` section as well.
    assert rig.post({"model": "gpt-5", "messages": MESSAGES}).status_code == 200
    assert rig.provider.last.json["metadata"] == {"from": "gateway"}


def test_a_model_list_of_a_route_is_not_there(rig: Rig) -> None:
    answer = rig.post(b"", "/v1/list", host="ai.test")
    assert (answer.status_code, answer.text) == (501, '{"error":"Route \'Models\' not implemented"}')
    assert answer.headers["content-type"] == "application/json"


def test_moderation_of_the_provider_takes_the_client_s_place(rig: Rig) -> None:
    wanted = {"model": "omni-moderation-latest", "policy": {"input": {"mode": "block"}, "output": {"mode": "score"}}}
    given = {"model": "m", "messages": MESSAGES, "moderation": {"model": "mine"}}
    assert rig.post(given, host="moderated.test").status_code == 200
    assert rig.provider.last.json["moderation"] == wanted
    assert rig.post({"model": "m", "input": "hi"}, "/v1/responses", host="moderated.test").status_code == 200
    assert rig.provider.last.json["moderation"] == wanted
    told = {"model": "m", "max_tokens": 5, "messages": MESSAGES}
    assert rig.post(told, "/v1/messages", host="moderated.test").status_code == 200
    assert rig.provider.last.json["moderation"] == wanted
    assert rig.post({"model": "m", "input": "hi"}, "/v1/embeddings", host="moderated.test").status_code == 200
    assert "moderation" not in rig.provider.last.json
    # Without the setting the client's passes.
    assert rig.post(given, host="ai.test").status_code == 200
    assert rig.provider.last.json["moderation"] == {"model": "mine"}
