"""Configurations of two processes are told apart by their secrets, and no secret is shown."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headgate.config.comparison import proof, proves
from headgate.config.load import TextSource, load

TEXT = """
gateways: {default: {port: 3000}}
routes:
- policies: {apiKey: {keys: [{key: first-key}]}, backendAuth: {key: second-key}}
  backends: [{host: "a.test:80"}]
llm: {models: [{name: a, provider: openai, params: {apiKey: 0123456789abcdef0123456789abcdef}}]}
mcp: {targets: [{name: a, mcp: {host: "https://b.test/mcp"}, policies: {backendAuth: {key: third}}}]}
"""
SALT = "00" * 16
CODE = """
import sys
from headgate.config.comparison import proof
from headgate.config.load import TextSource, load
print(proof(load(TextSource(sys.stdin.read())).gateway, "00" * 16))
"""


def shown(text: str) -> str:
    return proof(load(TextSource(text), environ={}).gateway, SALT)


def test_two_processes_agree_on_what_is_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], input=TEXT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == shown(TEXT)
    gateway = load(TextSource(TEXT), environ={}).gateway
    assert proves(gateway, proof(gateway, "ab" * 16))


@pytest.mark.parametrize("secret", ["first-key", "second-key", "third", "0123456789abcdef0123456789abcdef"])
def test_each_secret_counts(secret: str) -> None:
    assert shown(TEXT.replace(secret, f"0{secret[1:]}x")) != shown(TEXT)


@pytest.mark.parametrize("told", ["", "x", f"{SALT}.", f"{SALT}.{'0' * 63}", f"{SALT}.{'G' * 64}"])
def test_another_form_is_refused(told: str) -> None:
    with pytest.raises(ValueError, match="a salt of 32"):
        proves(load(TextSource("{}"), environ={}).gateway, told)
