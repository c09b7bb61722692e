"""The configuration file as the admin server shows it: nothing in it that only the file's owner may know."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headgate.config.file_view import file_view
from headgate.errors import ConfigErrors

ROOT = Path(__file__).resolve().parents[3]
SECRET = "never-to-be-seen"
CASES = {
    "LLM key": "llm: {models: [{name: a, provider: openai, params: {apiKey: SECRET}}]}",
    "environment of a server": "mcp: {targets: [{name: a, stdio: {cmd: x, env: {TOKEN: SECRET}}}]}",
    "arguments of a server": "mcp: {targets: [{name: a, stdio: {cmd: x, args: [--api-key, SECRET, 5, '-u=postgres://me:SECRET@db/x']}}]}",
    "session key": "config: {session: {key: SECRET}}",
    "backend key": "backends: [{name: a, host: 'x:1', policies: {backendAuth: {key: SECRET}}}]",
    "backend key with a place": "backends: [{name: a, host: 'x:1', policies: {backendAuth: {key: {value: SECRET}}}}]",
    "API keys of clients": "routes: [{name: a, policies: {apiKey: {keys: [{key: SECRET}]}}}]",
    "client secret": "routes: [{name: a, policies: {oidc: {clientSecret: SECRET}}}]",
    "AWS": "backends: [{name: a, host: 'x:1', policies: {backendAuth: {aws: {accessKeyId: A, secretAccessKey: SECRET, sessionToken: SECRET}}}}]",
    "password in a header": "routes: [{name: a, policies: {requestHeaderModifier: {set: {Authorization: SECRET, cookie: SECRET, x-api-key: SECRET}}}}]",
    "unknown field": "routes: [{name: a, unknown: {a: [SECRET, {b: SECRET}]}}]",
    "unknown root": "nothing: SECRET",
    "misplaced": "llm: SECRET",
    "a key in place of its file": "backends: [{name: a, host: 'x:1', policies: {backendTLS: {key: '-----BEGIN PRIVATE KEY----- SECRET'}}}]",
    "exporter headers": "config: {tracing: {headers: {authorization: SECRET}}}",
}


@pytest.mark.parametrize("name", CASES)
def test_secrets_are_not_shown(name: str) -> None:
    shown = json.dumps(file_view(CASES[name].replace("SECRET", SECRET), "x.yaml"))
    assert SECRET not in shown
    assert "<redacted>" in shown


def test_variables_are_shown_by_name_and_never_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    text = "llm: {models: [{name: a, provider: openai, params: {apiKey: '${OPENAI_API_KEY}', model: $OPENAI_API_KEY}}]}"
    params = file_view(text, "x.yaml")["llm"]["models"][0]["params"]
    assert params == {"apiKey": "${OPENAI_API_KEY}", "model": "$OPENAI_API_KEY"}
    words = ["--api-key=${KEY}", "--token", "$TOKEN", "--port", 80]
    text_of_words = f"mcp: {{targets: [{{name: a, stdio: {{cmd: x, args: {json.dumps(words)}}}}}]}}"
    assert file_view(text_of_words, "x.yaml")["mcp"]["targets"][0]["stdio"]["args"] == words
    mixed = text.replace("'${OPENAI_API_KEY}'", "'${OPENAI_API_KEY:-sk-inline}'")
    assert "sk-inline" not in json.dumps(file_view(mixed, "x.yaml"))


def test_what_is_no_secret_is_shown() -> None:
    text = (ROOT / "examples/quickstart.yaml").read_text()
    shown = file_view(text, "x.yaml")
    assert shown["gateways"] == {"default": {"port": 3000}}
    assert shown["routes"][0]["policies"]["localRateLimit"][0]["maxTokens"] == 100
    assert shown["routes"][0]["policies"]["responseHeaderModifier"] == {"set": {"x-served-by": "headgate"}}
    assert shown["mcp"]["targets"][0]["stdio"]["args"] == ["-m", "headgate.sample.mcp_server"]
    assert shown["llm"]["models"][0]["params"]["baseUrl"].startswith("http://127.0.0.1:")


def test_a_document_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ConfigErrors):
        file_view("a: [", "x.yaml")


def test_every_example_and_golden_file_is_shown_without_what_the_dump_hides() -> None:
    for path in [*ROOT.glob("examples/*.yaml"), *ROOT.glob("tests/golden/config/*.yaml")]:
        text = path.read_text()
        try:
            shown = json.dumps(file_view(text, str(path)))
        except ConfigErrors:
            continue
        for found in re.findall(r"(?:apiKey|clientSecret|secretAccessKey): ['\"]?([A-Za-z0-9-]{6,})", text):
            assert f'"{found}"' not in shown, path


def test_fields_of_the_shape_are_no_secrets_for_their_names() -> None:
    oidc = {"authorizationEndpoint": "http://idp/auth", "tokenEndpoint": "http://idp/token", "clientSecret": SECRET}
    shown = file_view(json.dumps({"routes": [{"policies": {"oidc": oidc}}]}), "x.yaml")
    assert shown["routes"][0]["policies"]["oidc"] == {**oidc, "clientSecret": "<redacted>"}
