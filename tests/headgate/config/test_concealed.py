"""Values of fields for anything are hidden by their names."""

from __future__ import annotations

import pytest

from headgate.config.concealed import Concealer


@pytest.mark.parametrize(
    "name",
    ["authorization", "Proxy-Authorization", "cookie", "set-cookie", "x-api-key", "X-Goog-Api-Key", "apiKey", "api_key",
     "password", "dbPasswd", "client_secret", "credential", "token", "x-auth-token", "access_token"],
)  # fmt: skip
def test_names_of_credentials(name: str) -> None:
    assert Concealer().shown({"set": {name: "value"}}) == {"set": {name: "<redacted>"}}


@pytest.mark.parametrize(
    "name", ["max_tokens", "tokenType", "tokenEndpoint", "authorizationEndpoint", "x-team", "key", "cookieless", "maxTokens"]
)
def test_other_names(name: str) -> None:
    assert Concealer().shown({"set": {name: "value"}}) == {"set": {name: "value"}}


def test_the_configuration_names_more() -> None:
    assert Concealer(["X-Signed"]).shown({"add": {"x-signed": "s", "x-other": "o"}}) == {
        "add": {"x-signed": "<redacted>", "x-other": "o"}
    }


def test_lists_of_values_and_whatever_lies_below() -> None:
    found = Concealer().shown([{"metadata": {"token": ["a", "b"], "deep": {"password": "p"}, "secret": 5}}])
    assert found == [{"metadata": {"token": ["<redacted>"] * 2, "deep": {"password": "<redacted>"}, "secret": 5}}]


def test_expressions_without_a_literal_stay_readable() -> None:
    concealer = Concealer()
    shown = concealer.shown(
        {"transformations": {"request": {"set": {"authorization": "jwt.raw", "x-api-key": '"Bearer " + "abc"'}}}}
    )
    assert shown["transformations"]["request"]["set"] == {"authorization": "jwt.raw", "x-api-key": "<redacted>"}
    assert concealer.hidden == {'"Bearer " + "abc"'}


def test_policies_of_these_names_stay() -> None:
    policies = [{"authorization": {"rules": ["true"]}}, {"apiKey": {"mode": "strict"}}]
    assert Concealer().shown(policies) == policies


@pytest.mark.parametrize(
    ("words", "hidden"),
    [
        (["-y", "server", "--api-key", "abc", "--verbose"], [3]),
        (["--token=abc", "-token", "-starts-like-an-option", "--port", "80"], [0, 2]),
        (["-e", "GITHUB_PERSONAL_ACCESS_TOKEN=abc", "-e", "LEVEL=debug"], [1]),
        (["-H", "Authorization: Bearer abc", "--header=x-api-key:abc", "-H", "accept: text/plain"], [1, 2]),
        (["https://host/mcp?access_token=abc", "https://host/mcp?page=2", "postgresql://me:abc@db/name"], [0, 2]),
        (["--secret-access-key", "abc", "AWS_SECRET_ACCESS_KEY=abc", "--pat=abc", "--auth", "me:abc", "--keys", "5"], [1, 2, 3, 5]),
        (["https://ghp_0123456789abcdefghij@github.com/a", "https://someone@github.com/a"], [0]),
        (["postgresql://me@db/name", "redis://:abc@db", "https://[::1]:80/", "a:b@c"], [1]),
        (["--token", "--verbose", "--max-tokens", "5", "--tokens=5", "token", "password="], []),
        ([], []),
    ],
)
def test_arguments_of_commands(words: list[str], hidden: list[int]) -> None:
    shown = ["<redacted>" if index in hidden else word for index, word in enumerate(words)]
    concealer = Concealer()
    assert concealer.shown({"stdio": {"cmd": "npx", "args": words}}) == {"stdio": {"cmd": "npx", "args": shown}}
    assert concealer.hidden == {words[index] for index in hidden}
