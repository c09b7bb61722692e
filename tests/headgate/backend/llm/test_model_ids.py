"""The models that a provider has, as far as it can be asked."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from headgate.backend.llm.model_ids import FAILED_S, FRESH_S, MAX_IDS, ProviderModels, _credential, ids_in
from headgate.net.tasks import spawn
from headgate_engine.link.client import CallError


class Answer:
    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body

    async def read(self, limit: int) -> bytes:
        if len(self.body) > limit:
            raise ValueError("too long")
        return self.body

    async def aclose(self) -> None:
        return None


class Client:
    """A provider whose answers are given one by one; an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def request(self, method: str, target: str, headers: Any) -> Answer:
        self.asked.append((method, target, headers))
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def listed(*names: str) -> Answer:
    return Answer(200, json.dumps({"data": [{"id": name} for name in names]}).encode())


def test_a_list_is_asked_for_once_and_kept() -> None:
    now = [0.0]
    client = Client(listed("a", "b"), listed("c"))
    models = ProviderModels(client, "/v1/models", (("accept", "x"),), lambda: now[0])  # type: ignore[arg-type]
    assert models.due

    async def run() -> None:
        await asyncio.gather(models.refresh(), models.refresh(), models.refresh())

    asyncio.run(run())
    assert models.ids == ("a", "b")
    assert client.asked == [("GET", "/v1/models", (("accept", "x"),))]
    now[0] = FRESH_S - 1
    assert not models.due
    now[0] = FRESH_S
    assert models.due
    asyncio.run(models.refresh())
    assert models.ids == ("c",)


def test_a_client_that_leaves_takes_nothing_from_the_others() -> None:
    models = ProviderModels(Client(listed("a")), "/", ())  # type: ignore[arg-type]

    async def run() -> None:
        first = spawn("test", models.refresh())
        await asyncio.sleep(0)
        second = spawn("test", models.refresh())
        first.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert first.cancelled()

    asyncio.run(run())
    assert models.ids == ("a",)
    assert not models.due


@pytest.mark.parametrize(
    "answer", [CallError("refused"), Answer(401, b"{}"), Answer(200, b"<html>"), Answer(200, b"x" * 3_000_000),
               Answer(200, b'{"data": 3}'), Answer(200, b"[" * 100_000)],
)  # fmt: skip
def test_a_provider_that_cannot_say_is_not_asked_again_at_once(answer: Any) -> None:
    now = [0.0]
    models = ProviderModels(Client(listed("a"), answer), "/", (), lambda: now[0])  # type: ignore[arg-type]
    asyncio.run(models.refresh())
    now[0] = FRESH_S
    asyncio.run(models.refresh())
    assert models.ids == ("a",)
    assert not models.due
    now[0] += FAILED_S
    assert models.due


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        ({"data": [{"id": "a"}, {"id": "a"}, {"id": 3}, {}, "x", {"id": ""}, {"id": "x" * 999}]}, ("a",)),
        ({"models": [{"name": "models/gemini-3-pro"}, {"name": "b"}]}, ("gemini-3-pro", "b")),
        ([{"id": "a"}], ("a",)),
        ({"data": [{"id": str(at)} for at in range(MAX_IDS + 5)]}, tuple(map(str, range(MAX_IDS)))),
    ],
)
def test_ids_of_every_vendor_s_list(body: Any, ids: tuple[str, ...]) -> None:
    assert ids_in(json.dumps(body).encode()) == ids


@pytest.mark.parametrize(
    ("family", "given", "told"),
    [
        ("openai", ("authorization", "Bearer ", "sk"), ("authorization", "Bearer sk")),
        ("anthropic", ("authorization", "Bearer ", "sk"), ("x-api-key", "sk")),
        ("anthropic", ("authorization", "Bearer ", "sk-ant-oat1"), ("authorization", "Bearer sk-ant-oat1")),
        ("gemini", ("authorization", "Bearer ", "AIzaX"), ("x-goog-api-key", "AIzaX")),
        ("gemini", ("authorization", "Bearer ", "ya29"), ("authorization", "Bearer ya29")),
        ("custom", ("x-key", "", "k"), ("x-key", "k")),
    ],
)
def test_keys_go_where_the_vendor_looks(family: str, given: tuple[str, str, str], told: tuple[str, str]) -> None:
    assert _credential(family, *given) == told
