from __future__ import annotations

import json
from typing import Any

import pytest
import uvloop
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.oracles.guard_rig import Rig, rig

from headgate.backend.llm.guards.compile import CANNOT_TELL, settled
from headgate.backend.llm.guards.model_armor import matched
from headgate_engine.context.request import Reply, make_context

ENTRY = (
    "[{googleModelArmor: {baseUrl: 'http://127.0.0.1:{port}', templateId: t1, projectId: p1, location: europe-west4,"
    " policies: {backendAuth: {key: ya29.token}}}}]"
)
TEXT = "{request: " + ENTRY + ", response: " + ENTRY + "}"
CHAT = {"messages": [{"role": "system", "content": "one"}, {"role": "user", "content": "two"}]}
REPLY = {"choices": [{"message": {"content": "A"}}, {"message": {"content": "B"}}]}
FOUND, CLEAN = {"matchState": "MATCH_FOUND"}, {"matchState": "NO_MATCH_FOUND"}


def result(filters: Any) -> Any:
    return {"sanitizationResult": {"filterMatchState": "NO_MATCH_FOUND", "filterResults": filters, "invocationResult": "SUCCESS"}}


async def judged(found: Rig) -> tuple[Any, Any]:
    call = found.guards(TEXT).begin(make_context("POST"))
    return (
        await settled(call.request(json.dumps(CHAT).encode(), "completions")),
        await settled(call.response(json.dumps(REPLY).encode(), "completions")),
    )


def test_what_is_asked() -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says(result({"rai": {"raiFilterResult": CLEAN}}))
            assert await judged(found) == (json.dumps(CHAT).encode(), json.dumps(REPLY).encode())
            first, second = found.service.calls
            path = "/v1/projects/p1/locations/europe-west4/templates/t1"
            assert (first.method, first.target) == ("POST", f"{path}:sanitizeUserPrompt")
            assert (second.method, second.target) == ("POST", f"{path}:sanitizeModelResponse")
            for call in (first, second):
                assert sorted(call.headers) == sorted([
                    ("host", f"127.0.0.1:{found.service.port}"), ("content-type", "application/json"),
                    ("authorization", "Bearer ya29.token"), ("content-length", str(len(call.body))),
                ])  # fmt: skip
            assert first.json == {"user_prompt_data": {"text": "one\ntwo"}}
            assert second.json == {"model_response_data": {"text": "A\nB"}}

    uvloop.run(main())


NAMES = ["raiFilterResult", "piAndJailbreakFilterResult", "maliciousUriFilterResult", "csamFilterResult",
         "csamFilterFilterResult", "virusScanFilterResult"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("listed", [True, False])
def test_every_filter_counts(name: str, listed: bool) -> None:
    for state, expected in ((FOUND, True), (CLEAN, False)):
        entries = [{"raiFilterResult": CLEAN}, {name: state}]
        assert matched({"filterResults": entries if listed else {"a": entries[0], "b": entries[1]}}) is expected


@pytest.mark.parametrize("kind", ["inspectResult", "deidentifyResult"])
def test_sensitive_data_counts(kind: str) -> None:
    assert matched({"filterResults": [{"sdpFilterResult": {kind: FOUND}}]})
    assert not matched({"filterResults": [{"sdpFilterResult": {kind: CLEAN}}]})


def test_nothing_found() -> None:
    assert not matched({})
    assert not matched({"filterResults": []})
    assert matched({"filterMatchState": "MATCH_FOUND"})


def test_a_match_is_refused_and_an_error_is_no_pass() -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says(result([{"csamFilterFilterResult": FOUND}]))
            request, response = await judged(found)
            assert isinstance(request, Reply)
            assert isinstance(response, Reply)
            assert found.count("Reject", "googleModelArmor") == 2
            for answer, status in (({"error": {"code": 403}}, 403), ({"error": {}}, 200), ({}, 200), ([], 200)):
                found.service.says(answer, status)
                assert await judged(found) == (CANNOT_TELL, CANNOT_TELL)

    uvloop.run(main())


def service_key(place: str) -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return json.dumps({"type": "service_account", "private_key": pem, "client_email": "a@b.c", "token_uri": place})


def test_a_token_of_google() -> None:
    async def main() -> None:
        async with rig() as found:
            place = f"127.0.0.1:{found.service.port}"
            told: dict[str, Any] = {"status": 200}

            def answer(call: Any) -> tuple[int, bytes]:
                if "/templates/" in call.target:
                    return 200, json.dumps(result({})).encode()
                if call.target.startswith("/token"):
                    return told["status"], b'{"access_token": "ya29.fetched", "expires_in": 3600, "error": "invalid_grant"}'
                return 404, b""

            found.service.answer = answer
            key = service_key(f"http://{place}/token")
            text = TEXT.replace("{key: ya29.token}", "{gcp: {credential: '" + key + "'}}")
            call = found.guards(text).begin(make_context("POST"))
            assert await settled(call.request(json.dumps(CHAT).encode(), "completions")) == json.dumps(CHAT).encode()
            asked = [one for one in found.service.calls if "/templates/" in one.target]
            assert [one.header("authorization") for one in asked] == ["Bearer ya29.fetched"]
            assert [one.target for one in found.service.calls[:1]] == ["/token"]
            told["status"] = 400
            call = found.guards(text).begin(make_context("POST"))
            assert await settled(call.request(json.dumps(CHAT).encode(), "completions")) is CANNOT_TELL

    uvloop.run(main())
