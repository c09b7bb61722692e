from __future__ import annotations

import json
import re
from typing import Any

import pytest
import uvloop
from tests.oracles.guard_rig import Call, Rig, rig

from headgate.backend.llm.guards.compile import CANNOT_TELL, settled
from headgate_engine.context.request import Reply, make_context
from headgate_engine.steps.aws_signature import AwsKeys, sign

AUTH = "policies: {backendAuth: {aws: {accessKeyId: AKID, secretAccessKey: s3cret, sessionToken: tok}}}"
CHAT = {
    "messages": [
        {"role": "system", "content": "one"},
        {"role": "user", "content": [{"type": "text", "text": "call me"}, {"type": "image_url"}, {"type": "text", "text": "Jo"}]},
    ]
}


def guards(auth: str = AUTH, more: str = "") -> str:
    entry = (
        "[{" + more + "bedrockGuardrails: {baseUrl: 'http://127.0.0.1:{port}', identifier: 'arn:aws:x/g1', version: DRAFT,"
        " region: eu-west-1, " + auth + "}}]"
    )
    return "{request: " + entry + (", response: " + entry if not more else "") + "}"


async def judged(found: Rig, text: str = "", chat: Any = CHAT) -> Any:
    call = found.guards(text or guards()).begin(make_context("POST"))
    return await settled(call.request(json.dumps(chat).encode(), "completions"))


def signature_of(call: Call) -> None:
    """What stands in `authorization` is right for these very bytes."""
    stamp = call.header("x-amz-date") or ""
    import calendar
    import time

    now = calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))
    keys = AwsKeys(b"AKID", b"s3cret", b"tok")
    told = [("content-type", "application/json")]
    signed = sign("POST", call.target, call.header("host") or "", told, call.body, keys,
                  region="eu-west-1", service="bedrock", now=now)  # fmt: skip
    assert call.header("authorization") == dict(signed)["authorization"]
    assert call.header("x-amz-security-token") == "tok"


def test_what_is_asked() -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says({"action": "NONE", "outputs": [], "assessments": []})
            assert await judged(found) == json.dumps(CHAT).encode()
            call = found.guards(guards()).begin(make_context("POST"))
            reply = json.dumps({"choices": [{"message": {"content": "A"}}]}).encode()
            assert await settled(call.response(reply, "completions")) == reply
            first, second = found.service.calls
            for one in (first, second):
                assert (one.method, one.target) == ("POST", "/guardrail/arn%3Aaws%3Ax%2Fg1/version/DRAFT/apply")
                names = {"host", "content-type", "content-length", "authorization", "x-amz-date", "x-amz-security-token"}
                assert {name for name, _ in one.headers} == names
                signature_of(one)
                assert "/eu-west-1/bedrock/aws4_request" in (one.header("authorization") or "")
            texts = ["one", "call me", "Jo"]
            assert first.json == {"source": "INPUT", "content": [{"text": {"text": text}} for text in texts]}
            assert second.json == {"source": "OUTPUT", "content": [{"text": {"text": "A"}}]}

    uvloop.run(main())


def intervened(outputs: list[str], *actions: str) -> Any:
    found = [{"type": "NAME", "match": "Jo", "action": action} for action in actions]
    return {
        "action": "GUARDRAIL_INTERVENED",
        "outputs": [{"text": text} for text in outputs],
        "assessments": [{"sensitiveInformationPolicy": {"piiEntities": found}}],
    }


def test_masked_texts_are_put_in_place() -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says(intervened(["one", "call me", "{NAME}"], "ANONYMIZED"))
            body = json.loads(await judged(found))
            expected = json.loads(json.dumps(CHAT))
            expected["messages"][1]["content"][2]["text"] = "{NAME}"
            assert body == expected
            assert found.count("Mask", "bedrockGuardrails") == 1

    uvloop.run(main())


@pytest.mark.parametrize(
    "answer",
    [
        intervened(["Sorry"], "BLOCKED"),
        intervened(["one", "call me", "x"], "ANONYMIZED", "BLOCKED"),
        intervened(["Sorry"], "ANONYMIZED"),
        intervened(["one", "call me", "x"]),
        {"action": "GUARDRAIL_INTERVENED"},
    ],
    ids=["blocked", "mixed", "count", "no assessment", "bare"],
)
def test_all_other_interventions_refuse(answer: Any) -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says(answer)
            reply = await judged(found)
            assert isinstance(reply, Reply)
            assert reply.status == 403

    uvloop.run(main())


@pytest.mark.parametrize("answer", [{}, [], {"action": "WHAT"}, intervened(["one", "call me", 3], "ANONYMIZED")])  # type: ignore[list-item]
def test_an_answer_that_cannot_be_read(answer: Any) -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says(answer)
            assert await judged(found) is CANNOT_TELL
            open_one = guards(AUTH + ", failureMode: failOpen")
            assert await judged(found, open_one) == json.dumps(CHAT).encode()

    uvloop.run(main())


def test_credentials_of_the_environment_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says({"action": "NONE"})
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENVKEY")
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "envsecret")
            monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
            assert await judged(found, guards("policies: {}")) == json.dumps(CHAT).encode()
            call = found.service.calls[-1]
            assert re.match(r"AWS4-HMAC-SHA256 Credential=ENVKEY/", call.header("authorization") or "")
            assert call.header("x-amz-security-token") is None
            # A key of the user's wins.
            assert await judged(found, guards("policies: {backendAuth: {key: bedrock-api-key}}")) == json.dumps(CHAT).encode()
            call = found.service.calls[-1]
            assert call.header("authorization") == "Bearer bedrock-api-key"
            assert call.header("x-amz-date") is None
            monkeypatch.delenv("AWS_ACCESS_KEY_ID")
            monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
            monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
            assert await judged(found, guards("policies: {}")) is CANNOT_TELL

    uvloop.run(main())


def test_tool_input_as_raw_json_stays_json() -> None:
    async def main() -> None:
        async with rig() as found:
            body = {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": {"n": 12}}]}]}
            compiled = found.guards(guards(more="scope: [toolInput], "))
            call = compiled.begin(make_context("POST"))
            found.service.says(intervened(['{"n": {N}}'], "ANONYMIZED"))
            assert await settled(call.request(json.dumps(body).encode(), "messages")) is CANNOT_TELL
            found.service.says(intervened(['{"n": 13}'], "ANONYMIZED"))
            call = compiled.begin(make_context("POST"))
            done = await settled(call.request(json.dumps(body).encode(), "messages"))
            assert isinstance(done, bytes)
            assert json.loads(done)["messages"][0]["content"][0]["input"] == {"n": 13}

    uvloop.run(main())
