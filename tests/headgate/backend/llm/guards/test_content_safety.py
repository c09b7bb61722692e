from __future__ import annotations

import json
from typing import Any

import pytest
import uvloop
from tests.oracles.guard_rig import Rig, rig

from headgate.backend.llm.guards.compile import CANNOT_TELL, settled
from headgate.backend.llm.guards.content_safety import MAX_CHARS, OVERLAP, pieces
from headgate_engine.context.request import Reply, make_context

KEY = "policies: {backendAuth: {key: azure-key}}"
ANALYZE = "analyzeText: {severityThreshold: 4, blocklistNames: [b1], haltOnBlocklistHit: true}"


def entry(*fields: str) -> str:
    return "[{azureContentSafety: {endpoint: 'http://127.0.0.1:{port}', " + ", ".join((KEY, *fields)) + "}}]"


async def judged(found: Rig, guard: str, text: str = "hello") -> Any:
    body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    reply = await settled(found.guards("{request: " + guard + "}").begin(make_context("POST")).request(body, "completions"))
    return True if reply == body else reply


def rated(*levels: int, hits: tuple[Any, ...] = ()) -> Any:
    rows = [{"category": "Hate", "severity": level} for level in levels]
    return {"blocklistsMatch": list(hits), "categoriesAnalysis": rows}


def test_what_is_asked() -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.answer = lambda call: (
                200,
                json.dumps({"jailbreakAnalysis": {"detected": False}} if "Jailbreak" in call.target else rated(0, 3)).encode(),
            )
            assert await judged(found, entry(ANALYZE, "detectJailbreak: {}")) is True
            first, second = found.service.calls
            assert first.target == "/contentsafety/text:analyze?api-version=2024-09-01"
            assert first.json == {"text": "hello", "blocklistNames": ["b1"], "haltOnBlocklistHit": True}
            assert second.target == "/contentsafety/text:detectJailbreak?api-version=2024-02-15-preview"
            assert second.json == {"text": "hello"}
            for call in (first, second):
                assert sorted(call.headers) == sorted([
                    ("host", f"127.0.0.1:{found.service.port}"), ("content-type", "application/json"),
                    ("ocp-apim-subscription-key", "azure-key"), ("content-length", str(len(call.body))),
                ])  # fmt: skip

    uvloop.run(main())


@pytest.mark.parametrize(
    ("answer", "passes"),
    [(rated(3, 0), True), (rated(0, 4), False), (rated(6), False), (rated(0, hits=({"blocklistName": "b1"},)), False), (rated(), True)],
)
def test_ratings_and_lists(answer: Any, passes: bool) -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says(answer)
            reply = await judged(found, entry(ANALYZE))
            assert (reply is True) is passes
            assert passes or (isinstance(reply, Reply) and reply.status == 403)

    uvloop.run(main())


def test_attacks_and_long_texts() -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says({"jailbreakAnalysis": {"detected": True}})
            assert isinstance(await judged(found, entry("detectJailbreak: {apiVersion: v9}")), Reply)
            assert found.service.calls[0].target.endswith("detectJailbreak?api-version=v9")
            found.service.calls.clear()
            found.service.says(rated(0))
            assert await judged(found, entry(), "x" * (MAX_CHARS + 5)) is True
            assert [len(call.json["text"]) for call in found.service.calls] == [MAX_CHARS, OVERLAP + 5]

    uvloop.run(main())


@pytest.mark.parametrize("at", [MAX_CHARS - 4, MAX_CHARS - OVERLAP, MAX_CHARS, 2 * MAX_CHARS - OVERLAP - 4, 3 * MAX_CHARS])
def test_a_phrase_across_the_border_of_two_pieces_is_seen(at: int) -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.answer = lambda call: (
                200, json.dumps(rated(6 if "bad phrase" in call.json["text"] else 0)).encode()
            )
            text = "x" * at + "bad phrase" + "y" * 50
            assert isinstance(await judged(found, entry(ANALYZE), text), Reply)
            assert await judged(found, entry(ANALYZE), text.replace("bad", "fine")) is True

    uvloop.run(main())


@pytest.mark.parametrize("length", [0, 1, MAX_CHARS, MAX_CHARS + 1, 3 * MAX_CHARS - 2 * OVERLAP, 54_321])
def test_pieces_cover_a_text_and_overlap(length: int) -> None:
    text = "".join(chr(at % 50_000 + 32) for at in range(length))
    found = list(pieces(text))
    assert "".join([*found[:1], *(piece[OVERLAP:] for piece in found[1:])]) == text
    assert all(len(piece) <= MAX_CHARS for piece in found)
    assert all(one[-OVERLAP:] == other[:OVERLAP] for one, other in zip(found, found[1:], strict=False))


@pytest.mark.parametrize("answer", [{}, [], {"categoriesAnalysis": 3}, {"categoriesAnalysis": [{"severity": "4"}]}, {"categoriesAnalysis": [4]}])
def test_an_answer_that_cannot_be_read(answer: Any) -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says(answer)
            assert await judged(found, entry()) is CANNOT_TELL
            assert await judged(found, entry("failureMode: failOpen")) is True

    uvloop.run(main())


def test_a_token_of_entra(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with rig() as found:
            monkeypatch.setenv("AZURE_AUTHORITY_HOST", f"http://127.0.0.1:{found.service.port}")
            told = {"status": 200}

            def answer(call: Any) -> tuple[int, bytes]:
                if call.target == "/t/oauth2/v2.0/token":
                    return told["status"], b'{"access_token": "entra", "expires_in": 3600}'
                return 200, json.dumps(rated(0)).encode()

            found.service.answer = answer
            client = "{azure: {explicitConfig: {clientSecret: {tenant_id: t, client_id: c, client_secret: CANARY}}}}"
            guard = entry(ANALYZE).replace("{key: azure-key}", client)
            assert await judged(found, guard) is True
            assert found.service.calls[-1].header("authorization") == "Bearer entra"
            assert found.service.calls[-1].header("ocp-apim-subscription-key") is None
            told["status"] = 401
            assert await judged(found, guard) is CANNOT_TELL

    uvloop.run(main())
