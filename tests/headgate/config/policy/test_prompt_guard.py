"""`guardrails` from the file to the IR and the dump."""

from __future__ import annotations

import json

import pytest
from tests.oracles.guard_rig import parsed

from headgate.config.policy.prompt_guard import dump
from headgate.ir.policy.prompt_guard import REJECTED, GuardRule, PromptGuard, RegexGuard, Rejection


def good(text: str) -> PromptGuard:
    found, faults = parsed(text)
    assert faults == []
    assert found is not None
    return found


def test_the_two_spellings_of_patterns() -> None:
    ours = good("request: [{regex: {action: mask, rules: [{pattern: 'a+', name: n}, {builtin: caSin}]}}]")
    cluster = good("request: [{regex: {action: Mask, matches: [{pattern: 'a+', name: n}], builtins: [CaSin]}}]")
    assert ours == cluster
    rules = (GuardRule(kind="pattern", text="a+", name="n"), GuardRule(kind="builtin", text="caSin"))
    assert ours.request[0].guard == RegexGuard(rules=rules)
    assert ours.request[0].rejection == Rejection(status=403, body=REJECTED.encode())


def test_refusals() -> None:
    found = good(
        "response: [{regex: {builtins: [ssn], action: Reject}, rejection: {status: 418, body: [104, 105],"
        " headers: {set: {X-A: b}, add: {x-c: d}, remove: [x-e]}}}]"
    )
    assert found.response[0].rejection == Rejection(status=418, body=b"hi", headers=(("x-a", "b"), ("x-c", "d")))


def test_streaming() -> None:
    rule = "request: [{regex: {builtins: [ssn]}}]\n"
    assert not good(rule).streaming
    for text in ("true", "Enabled", "enabled", "{mode: Enabled}", "{}"):
        assert good(f"{rule}streaming: {text}").streaming
    found = good(f"{rule}streaming: {{masks: Apply, windowBytes: 64, overlapBytes: 32}}")
    assert (found.stream_masks, found.window, found.overlap) == (True, 64, 32)


def test_vendors_have_their_places() -> None:
    found = good(
        """
request:
- openAIModeration: {policies: {backendAuth: {key: k}}}
- bedrockGuardrails: {identifier: g, version: "1", region: eu-west-1}
- googleModelArmor: {templateId: t, projectId: p, policies: {backendAuth: {key: k}}}
- azureContentSafety: {endpoint: me.cognitiveservices.azure.com, policies: {backendAuth: {key: k}}}
"""
    )
    names = [entry.guard.service.name for entry in found.request]  # type: ignore[union-attr]
    assert names == [
        "api.openai.com:443", "bedrock-runtime.eu-west-1.amazonaws.com:443",
        "modelarmor.us-central1.rep.googleapis.com:443", "me.cognitiveservices.azure.com:443",
    ]  # fmt: skip
    assert all(entry.guard.service.remote.places[0][0].tls is not None for entry in found.request)  # type: ignore[union-attr]
    shown = json.dumps(dump(found))
    assert '"k"' not in shown
    assert "<redacted>" in shown


def test_an_azure_token_stays_where_it_is_put() -> None:
    found = good(
        "request: [{azureContentSafety: {endpoint: a.test, policies: {backendAuth:"
        " {key: {value: k, location: {header: {name: authorization, prefix: 'Bearer '}}}}}}}]"
    )
    assert found.request[0].guard.service.auth.main.location.name == "authorization"  # type: ignore[union-attr]


REGEX = "{regex: {builtins: [ssn]}}"
FAULTS = [
    ("request: []", "0 entries"),
    (f"request: [{', '.join([REGEX] * 9)}]", "9 entries"),
    ("response: [{openAIModeration: {}}]", "unknown field 'openAIModeration'"),
    ("request: [{regex: {builtins: [ssn]}, webhook: {target: {host: 'a:1'}}}]", "only one of"),
    ("request: [{}]", "one of"),
    ("request: [{regex: {}}]", "one of rules, matches, builtins is required"),
    ("request: [{regex: {builtins: []}}]", "needs a pattern"),
    ("request: [{regex: {builtins: [iban]}}]", "iban"),
    ("request: [{regex: {matches: [{pattern: '(?<=a)b'}]}}]", "linear-time"),
    ("request: [{regex: {rules: [{pattern: '(a)\\1'}]}}]", "linear-time"),
    ("request: [{regex: {rules: [{pattern: a, name: 'x y'}]}}]", "a name consists of letters"),
    ("request: [{regex: {builtins: [ssn], response: {}}, rejection: {}}]", "exclude each other"),
    ("request: [{regex: {builtins: [ssn], response: {statusCode: 199}}}]", "out of range 200..599"),
    ("request: [{regex: {builtins: [ssn]}, rejection: {status: 600}}]", "out of range 200..599"),
    ("request: [{regex: {builtins: [ssn]}, scope: []}]", "0 entries"),
    ("request: [{webhook: {target: {host: 'a:1'}}, scope: [toolInput]}]", "other scopes are only for regex"),
    ("request: [{webhook: {target: {host: 'a:1'}, headers: {x-a: 'jwt.'}}}]", "headers.x-a"),
    ("request: [{webhook: {target: {host: 'a:1'}, headers: {'x a': 'jwt.sub'}}}]", "x a"),
    ("response: [{webhook: {target: {host: 'a:1'}, headers: {x-a: llmRequest.model}}}]",
     "llmRequest has no value in the response guard phase (it has one in: backend, llm, answer, response, log)"),
    ("request: [{webhook: {target: {backend: none}}}]", "no host backend is named 'none'"),
    ("request: [{openAIModeration: {}}]", "needs 'policies.backendAuth.key'"),
    ("request: [{googleModelArmor: {templateId: t, projectId: p, policies: {backendAuth: {azure: {implicit: {}}}}}}]",
     "for another cloud"),
    ("request: [{googleModelArmor: {templateId: 't/x', projectId: p, policies: {backendAuth: {key: k}}}}]", "templateId"),
    ("request: [{bedrockGuardrails: {identifier: g, region: r}}]", "missing field 'guardrailVersion'"),
    ("request: [{bedrockGuardrails: {identifier: g, version: '1', region: 'a.b/c'}}]", "region"),
    (
        "request: [{bedrockGuardrails: {identifier: g, version: '1', region: r, policies: {backendAuth:"
        " {aws: {assumeRole: {roleArn: a}}}}}}]",
        "assumeRole",
    ),
    ("request: [{azureContentSafety: {endpoint: 'a b', policies: {backendAuth: {key: k}}}}]", "endpoint"),
    (
        "response: [{azureContentSafety: {endpoint: a.test, detectJailbreak: {}, policies: {backendAuth: {key: k}}}}]",
        "not checked for attacks",
    ),
    ("request: [{regex: {builtins: [ssn]}}]\nstreaming: maybe", "streaming"),
    ("request: [{regex: {builtins: [ssn]}}]\nstreaming: {overlapBytes: 1}", "out of range"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS, ids=[text for text, _ in FAULTS])
def test_faults(text: str, message: str) -> None:
    _, faults = parsed(text)
    assert any(message in fault for fault in faults), faults
    assert all("(c:" in fault for fault in faults)


def test_nothing_is_nothing() -> None:
    assert parsed("{}") == (None, [])


def test_the_dump_reads_like_the_file() -> None:
    text = (
        "request: [{regex: {action: reject, rules: [{pattern: a, name: n}]}, scope: [toolInput]},"
        " {webhook: {target: {host: '127.0.0.1:9'}, headers: {':path': '\"/x\"'}, failureMode: failOpen,"
        " forwardHeaderMatches: [{name: x-a, value: {exact: b}}]}}]\nstreaming: {masks: Apply}"
    )
    shown = dump(good(text))
    assert shown["request"][0]["regex"] == {"action": "reject", "rules": [{"pattern": "a", "name": "n"}]}
    assert shown["request"][0]["scope"] == ["toolInput"]
    webhook = shown["request"][1]["webhook"]
    assert webhook["target"] == {"host": "127.0.0.1:9"}
    assert webhook["failureMode"] == "failOpen"
    assert webhook["headers"] == {":path": '"/x"'}
    assert shown["streaming"]["masks"] == "Apply"
