"""What is loaded before workers are forked is what they load to compile the configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import compile_modules
import example_files
import pytest

from headgate.config.load import FileSource, TextSource, load
from headgate.ir.gateway import Gateway
from headgate.pipeline.modules import CREDENTIALS, PATTERNS, needed_modules
from headgate.server.transfer import store

ROOT = Path(__file__).parents[3]
ENVIRON = {**example_files.ENVIRON, "KEY": "k"}
# Without those that name certificates, which are not there.
FILES = [path for path in (*ROOT.glob("examples/*.yaml"), *ROOT.glob("tests/golden/config/*.yaml")) if "certs/" not in path.read_text()]

# Configurations by name come in; for each, a fork of what has imported what a worker has writes a line.
CODE = """
import asyncio, json, os, sys
from headgate.config.load import TextSource, load
from headgate.pipeline.modules import needed_modules
from headgate.server import dry_run, worker

def told(text):
    gateway = load(TextSource(text), environ={}).gateway
    names = needed_modules(gateway)
    before = [name for name in names if name in sys.modules]
    errors = dry_run.dry_run(gateway)
    later = sorted(name for name in sys.modules if name.startswith(("headgate.policy.", "headgate.pipeline.", "headgate.net.spiffe", "re2")))
    return [names, before, errors, later]

for name, text in json.load(sys.stdin).items():
    if os.fork() == 0:
        print(json.dumps([name, told(text)]))
        sys.exit()
    if os.wait()[1] != 0:
        sys.exit(f"failed: {name}")
"""
HEAD = "gateways: {default: {port: 1}}\nroutes:\n- name: a\n  "
PLAIN = HEAD + "backends: [{host: 'h:1'}]"

CASES = {
    "plain": (PLAIN, ()),
    "cors": (PLAIN + "\n  policies: {cors: {allowOrigins: ['*']}}", ("headgate.policy.cors",)),
    "redirect": (HEAD + "policies: {requestRedirect: {scheme: https}}", ("headgate.policy.rewrite",)),
    "rules of connections": (
        PLAIN + "\nfrontendPolicies: {networkAuthorization: {rules: ['true']}}", ("headgate.policy.authorization",),
    ),
    "a service about connections": (
        PLAIN + "\nfrontendPolicies: {networkExtAuthz: {host: 'h:1'}}", ("headgate.policy.ext_authz.network_grpc",),
    ),
    "rules": (PLAIN + "\n  policies: {authorization: {rules: ['true']}}", ("headgate.policy.authorization",)),
    "patterns": (HEAD + "matches: [{path: {regex: '/a+'}}]\n  backends: [{host: 'h:1'}]", ("re2",)),
    "patterns of headers": (
        HEAD + "matches: [{headers: [{name: a, value: {regex: 'a+'}}]}]\n  backends: [{host: 'h:1'}]", ("re2",),
    ),
    "health": (HEAD + "backends: [{host: 'h:1', policies: {health: {}}}]", ("headgate.policy.health",)),
    "clouds": (
        HEAD + "backends: [{host: 'h:1', policies: {backendAuth: {azure: {developerImplicit: {}}}}}]", ("headgate.policy.backend_auth",),
    ),
    "spiffe": (
        "config: {spiffe: {endpoint: 'unix:///x'}}\n" + HEAD + "backends: [{host: 'h:1', policies: {backendTLS: {spiffe: {}}}}]",
        ("headgate.net.spiffe",),
    ),
    "the credential of a proxy": (
        HEAD + "backends: [{host: 'h:1', policies: {backendTunnel: {proxy: {host: 'p:1'}, policies: {backendAuth: {key: k}}}}}]",
        ("headgate.policy.backend_auth",),
    ),
    "mcp": (HEAD + "backends: [{mcp: {targets: [{name: t, stdio: {cmd: 'true'}}]}}]", ("headgate.pipeline.mcp",)),
    "llm": (HEAD + "backends: [{ai: {name: m, provider: {openAI: {}}}}]", ("headgate.pipeline.llm",)),
}


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What CODE says of each configuration."""
    texts = json.dumps({name: text for name, (text, _) in CASES.items()})
    done = subprocess.run([sys.executable, "-c", CODE], input=texts, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", CASES)
def test_each_module_is_told_and_loaded_for_the_configuration_alone(name: str, told: dict[str, Any]) -> None:
    expected = CASES[name][1]
    names, before, errors, later = told[name]
    assert errors == []
    assert set(expected) <= set(names)
    # Expressions and patterns are loaded by who checks them.
    assert [one for one in before if "expr" not in one and one != PATTERNS] == [], "nothing of it is loaded with the worker itself"
    assert set(expected) <= set(later)
    # Targets and models may have credentials.
    assert {one for one in names if one.startswith("headgate.p")} - {CREDENTIALS} <= set(later)


def sent(gateway: Gateway, path: Path) -> Path:
    """Write a configuration as a worker gets it, with the modules that it is to load."""
    descriptor = store(gateway)
    try:
        path.write_bytes(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
    finally:
        os.close(descriptor)
    path.with_suffix(".json").write_text(json.dumps(needed_modules(gateway)))
    return path


def test_compiling_imports_nothing_in_the_loop_of_a_worker(tmp_path: Path) -> None:
    """A worker that serves plain HTTP gets its first MCP backend, provider, policy or expression: the loop goes on."""
    gateways = {f"{path.parent.name}-{path.stem}": load(FileSource(str(path)), environ=ENVIRON).gateway for path in FILES}
    gateways |= {name: load(TextSource(text), environ={}).gateway for name, (text, _) in CASES.items()}
    paths = [sent(gateway, tmp_path / f"{name}.bin") for name, gateway in gateways.items()]
    words = [sys.executable, compile_modules.__file__, *map(str, paths)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    assert found == {str(path): [] for path in paths}


@pytest.mark.parametrize(
    ("target", "module"),
    [
        ("openapi: {host: 'h:1', schema: {openapi: 3.1.0, paths: {}}}", "headgate.backend.mcp.targets.openapi"),
        ("sse: {host: 'h:1'}", "headgate.backend.mcp.targets.sse"),
    ],
)
def test_targets_name_what_they_are_made_of(target: str, module: str) -> None:
    made = load(TextSource(HEAD + f"backends: [{{mcp: {{targets: [{{name: t, {target}}}]}}}}]"), environ={}).gateway
    assert module in needed_modules(made)
    assert module not in needed_modules(load(TextSource(CASES["mcp"][0]), environ={}).gateway)


def test_a_module_that_nobody_names_is_seen(tmp_path: Path) -> None:
    path = sent(load(TextSource(CASES["mcp"][0]), environ={}).gateway, tmp_path / "mcp.bin")
    path.with_suffix(".json").write_text("[]")
    words = [sys.executable, compile_modules.__file__, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    assert "headgate.pipeline.mcp" in json.loads(done.stdout)[1]


def test_routes_that_were_there_before_are_not_looked_at() -> None:
    plain = load(TextSource(PLAIN), environ={}).gateway
    cors = load(TextSource(CASES["cors"][0]), environ={}).gateway
    assert needed_modules(cors, plain) == needed_modules(cors)
    assert "headgate.policy.cors" not in needed_modules(cors, cors)


def test_the_client_of_redis_is_loaded_where_limits_are_shared() -> None:
    shared = "config: {sharedState: {redis: {url: 'redis://h'}}}\n"
    limited = PLAIN + "\n  policies: {localRateLimit: [{requests: 1, unit: Hours}]}"
    found = needed_modules(load(TextSource(shared + limited), environ={}).gateway)
    assert {"headgate.policy.shared.compile", "redis.asyncio.connection"} <= set(found)
    for text in (limited, shared + PLAIN):
        assert not any("redis" in name for name in needed_modules(load(TextSource(text), environ={}).gateway))
