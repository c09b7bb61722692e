"""Batches of Anthropic's client go where the models of their requests lead, with the rights of the caller's key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import anthropic
import httpx
import pytest
from tests.end_to_end.llm_rig import served, stand_ins
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.end_to_end.running import Gateway

CONFIG = """
gateways: {default: {port: {port}}}
llm:
  providers:
  - {name: main, provider: anthropic, params: {baseUrl: "http://127.0.0.1:MAIN", apiKey: sk-main}}
  - {name: other, provider: anthropic, params: {baseUrl: "http://127.0.0.1:OTHER", apiKey: sk-other}}
  - {name: oai, provider: openAI, params: {baseUrl: "http://127.0.0.1:OTHER/v1", apiKey: sk-oai}}
  models:
  - {name: fast, provider: {reference: main}, params: {model: claude-haiku-4-5}}
  - {name: "house/*", provider: {reference: main}, transformation: {model: 'llmRequest.model.stripPrefix("house/")'}}
  - {name: "claude-*", provider: {reference: main}}
  - {name: elsewhere, provider: {reference: other}, params: {model: claude-opus-4-6}}
  - {name: "gpt-*", provider: {reference: oai}}
  - {name: watched, provider: {reference: main}, params: {model: claude-haiku-4-5},
     guardrails: {request: [{regex: {rules: [{pattern: secret}], action: reject}}]}}
  virtualModels:
  - {name: any, routing: {failover: {targets: [{model: elsewhere, priority: 0}, {model: fast, priority: 1}]}}}
  resources: {providers: [main]}
  policies:
    apiKey: {keys: [{key: sk-all}, {key: sk-few, allowedModels: [fast, elsewhere]}]}
"""


class Scene(NamedTuple):
    running: Gateway
    main: StandIn
    other: StandIn


def made(name: str) -> Any:
    counts = {"processing": 1, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
    return whole({
        "id": f"msgbatch_{name}1", "type": "message_batch", "processing_status": "in_progress", "request_counts": counts,
        "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z", "ended_at": None, "archived_at": None,
        "cancel_initiated_at": None, "results_url": None,
    })  # fmt: skip


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with stand_ins(made("main"), made("other")) as [main, other]:
        text = CONFIG.replace("MAIN", str(main.port)).replace("OTHER", str(other.port))
        with served(tmp_path_factory.mktemp("batches"), text) as running:
            yield Scene(running, main, other)


def requests(*models: str) -> Any:
    return [{"custom_id": str(at), "params": {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}}
            for at, model in enumerate(models)]  # fmt: skip


def create(scene: Scene, *models: str, key: str = "sk-all", **fields: str) -> Any:
    headers = {"authorization": f"Bearer {key}", **{name.replace("_", "-"): value for name, value in fields.items()}}
    client = anthropic.Anthropic(base_url=scene.running.url, api_key="own", max_retries=0, timeout=30, default_headers=headers)
    return client.messages.batches.create(requests=requests(*models))


def models_at(provider: StandIn) -> list[str]:
    return [one["params"]["model"] for one in provider.last.json["requests"]]


def test_a_batch_goes_where_its_models_lead_by_their_names_there(scene: Scene) -> None:
    found = create(scene, "fast", "claude-opus-4-6", "house/claude-x", "fast")
    assert found.id.startswith("msgbatch_gw1_")
    assert models_at(scene.main) == ["claude-haiku-4-5", "claude-opus-4-6", "claude-x", "claude-haiku-4-5"]
    assert scene.main.last.path == "/v1/messages/batches"
    assert scene.main.last.json["requests"][1] == requests("", "claude-opus-4-6")[1]
    create(scene, "elsewhere")
    assert models_at(scene.other) == ["claude-opus-4-6"]


def test_a_long_batch_is_read_beside_the_loop(scene: Scene) -> None:
    create(scene, *(["fast", "claude-opus-4-6"] * 2000))
    assert len(scene.main.last.body) > 256 * 1024
    assert models_at(scene.main) == ["claude-haiku-4-5", "claude-opus-4-6"] * 2000


def test_a_virtual_model_has_the_provider_of_the_others(scene: Scene) -> None:
    create(scene, "any", "fast")
    assert models_at(scene.main) == ["claude-haiku-4-5", "claude-haiku-4-5"]
    create(scene, "any")
    assert models_at(scene.other) == ["claude-opus-4-6"]


@pytest.mark.parametrize(
    ("models", "status", "why"),
    [
        (("fast", "elsewhere"), 400, "several providers"), (("gpt-x",), 400, "takes no batches"),
        (("fast", "nobody"), 404, "'nobody' is not served"), (("fast", ""), 400, r"requests\[1\].params.model"),
        (("fast", "watched"), 403, "guards"), (("watched", "fast"), 403, "guards"),
    ],
    ids=["mixed", "another format", "unknown", "without a name", "guarded", "guarded first"],
)  # fmt: skip
def test_what_cannot_be_is_an_error_of_the_client(scene: Scene, models: tuple[str, ...], status: int, why: str) -> None:
    before = len(scene.main.seen), len(scene.other.seen)
    with pytest.raises(anthropic.APIStatusError, match=why) as found:
        create(scene, *models)
    assert found.value.status_code == status
    assert found.value.body["type"] == "error"  # type: ignore[index]
    assert (len(scene.main.seen), len(scene.other.seen)) == before


def test_a_key_has_the_rights_that_it_has_elsewhere(scene: Scene) -> None:
    create(scene, "fast", key="sk-few")
    assert models_at(scene.main) == ["claude-haiku-4-5"]
    before = len(scene.main.seen), len(scene.other.seen)
    refused: list[dict[str, str]] = [{}, {"x_gw_model": "fast"}]
    for fields in refused:
        with pytest.raises(anthropic.PermissionDeniedError, match="may not use the model"):
            create(scene, "fast", "claude-opus-4-6", key="sk-few", **fields)
    assert (len(scene.main.seen), len(scene.other.seen)) == before


def test_the_head_has_its_way_with_names_of_the_provider(scene: Scene) -> None:
    create(scene, "claude-real", x_gw_model="elsewhere")
    assert models_at(scene.other) == ["claude-real"]
    create(scene, "claude-real", x_gw_provider="main")
    assert models_at(scene.main) == ["claude-real"]


def test_a_body_that_is_none_is_refused_as_before(scene: Scene) -> None:
    reply = httpx.post(f"{scene.running.url}/v1/messages/batches", content=json.dumps({"requests": 3}),
                       headers={"authorization": "Bearer sk-all", "content-type": "application/json"})  # fmt: skip
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "missing_model")
