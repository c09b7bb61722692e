"""What is loaded before workers are forked is what they load to compile the configuration."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CODE = """
import asyncio, json, sys
from headgate.config.load import TextSource, load
from headgate.pipeline.modules import needed_modules
from headgate.server import dry_run, worker
gateway = load(TextSource(sys.argv[1]), environ={}).gateway
names = needed_modules(gateway)
before = [name for name in names if name in sys.modules]
errors = dry_run.dry_run(gateway)
later = sorted(name for name in sys.modules if name.startswith(("headgate.policy.", "headgate.pipeline.")))
print(json.dumps([names, before, errors, later]))
"""
HEAD = "gateways: {default: {port: 1}}\nroutes:\n- name: a\n  "
PLAIN = HEAD + "backends: [{host: 'h:1'}]"

CASES = {
    "plain": (PLAIN, ()),
    "cors": (PLAIN + "\n  policies: {cors: {allowOrigins: ['*']}}", ("headgate.policy.cors",)),
    "redirect": (HEAD + "policies: {requestRedirect: {scheme: https}}", ("headgate.policy.rewrite",)),
    "rules": (PLAIN + "\n  policies: {authorization: {rules: ['true']}}", ("headgate.policy.authorization",)),
    "mcp": (HEAD + "backends: [{mcp: {targets: [{name: t, stdio: {cmd: 'true'}}]}}]", ("headgate.pipeline.mcp",)),
    "llm": (HEAD + "backends: [{ai: {name: m, provider: {openAI: {}}}}]", ("headgate.pipeline.llm",)),
}


@pytest.mark.parametrize("name", CASES)
def test_each_module_is_told_and_loaded_for_the_configuration_alone(name: str) -> None:
    text, expected = CASES[name]
    done = subprocess.run([sys.executable, "-c", CODE, text], capture_output=True, text=True, timeout=120, check=True)
    names, before, errors, later = json.loads(done.stdout)
    assert errors == []
    assert set(expected) <= set(names)
    # Expressions are loaded by who checks them.
    assert [one for one in before if "expr" not in one] == [], "nothing of it is loaded with the worker itself"
    assert set(expected) <= set(later)
    assert {one for one in names if one.startswith("headgate.p")} <= set(later)
