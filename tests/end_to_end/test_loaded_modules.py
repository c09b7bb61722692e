"""A plain HTTP file loads nothing of what only other configurations use, in any of the processes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.end_to_end.running import Gateway

# What is tested is of the process: its memory, its frames, its end.
pytestmark = pytest.mark.executed

PLAIN = """
gateways: {default: {port: {port}}}
routes: [{name: all, backends: [{host: "127.0.0.1:{port}"}]}]
"""
LIMITED = """
gateways: {default: {port: {port}}}
routes: [{name: all, policies: {cors: {allowOrigins: ['*']}}, backends: [{host: "127.0.0.1:{port}"}]}]
"""
# What `python -v` writes of each module.
IMPORTED = re.compile(r"^import '([^']+)' # ", re.MULTILINE)
# Of packages that are for policies, providers, MCP, the operator or files of a kind: what a plain file needs all the same.
# Whatever else is added to one of them must not be loaded by others.
NEEDED = {
    # The servers themselves, and what probes and scrapes of metrics ask for. The rest is loaded for the first request.
    "headgate.admin": {
        "expression_process", "gauges", "history", "memory", "meters", "metrics_accept", "metrics_protobuf", "mount_points", "origins", "proxy_protocol", "readiness",
        "running", "servers", "stats", "targets", "web",
    },
    # Workers relay calls of sessions to one another, whatever configuration each of them has.
    "headgate.backend": {
        "caller", "contract", "mcp", "mcp.event_streams", "mcp.failure", "mcp.relay", "mcp.replay", "mcp.resuming", "mcp.session",
    },
    "headgate.config": {
        "backends", "check", "context", "dns_settings", "extras", "frontend_settings", "internal_ports", "known_routes", "load", "model_catalog", "pieces", "policy",
        "policy.expression", "policy.table", "policy_values", "ports", "process_settings", "request_log", "rest", "route_groups", "routes",
        "services", "source_reader", "standalone", "targeted", "tcp_routes", "tls_material", "tunnels", "ui_route",
    },
    "headgate.crypto": {"sealed"},
    "headgate.dialect": {"llm", "llm.catalog", "mcp", "mcp.jsonrpc", "mcp.methods", "mcp.versions", "protobuf_wire"},
    "headgate.expr": {"faults"},
    "headgate.pipeline": {
        "agents", "callers", "claim_counts", "cloud", "compile", "exporters", "guard_patterns", "http2_limits", "keys",
        "log_formats", "modules", "phases", "pools", "prices", "proxies", "replies", "route_rules", "route_tables", "running", "shared_state",
        "slices", "steps", "tcp",
    },
    "headgate.policy": {"claims", "environment", "refusals", "retry"},
    "headgate.trace": {"offer"},
    "headgate_engine.guard": set(),
    # What the log and the prices of tokens know of a request to a model.
    "headgate_engine.llm": {"attempt", "content_capture", "estimate", "log_payload", "prices"},
    "headgate_engine.mcp": {"sessions"},
    "headgate_engine.profile": set(),
    "headgate_engine.steps": {"buffer", "conditional", "connection_check", "headers", "local_rate_limit"},
    "headgate_engine.websocket": set(),
}  # fmt: skip
# Libraries, and large parts of Python's own, that only some configurations use.
ABSENT = {
    "argparse", "boto3", "botocore", "celpy", "concurrent.futures.process", "cryptography", "decimal", "email", "google", "h2", "http.client",
    "jwt", "multiprocessing", "orjson", "re2", "shutil", "tempfile", "tokenizers", "urllib.request", "wsproto", "xml", "yaml",
}  # fmt: skip


def loaded(running: Gateway) -> set[str]:
    """Return the modules that the processes of a gateway have imported so far."""
    return set(IMPORTED.findall(running.log()))


def mapped_kb(pid: int, library: str) -> int:
    """Return KiB of a library that a process has in its memory."""
    found, inside = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = library in line and "r-xp" in line
        elif inside and line.startswith("Rss:"):
            found += int(line.split()[1])
    return found


def test_a_plain_file_loads_what_it_uses(gateway: Callable[..., Gateway]) -> None:
    running = gateway(PLAIN, environment={"PYTHONVERBOSE": "1"})
    found = loaded(running)
    assert "headgate.pipeline.compile" in found
    assert {one for one in found if one.split(".")[0] in ABSENT or one in ABSENT} == set()
    for package, needed in NEEDED.items():
        inside = {one.removeprefix(f"{package}.") for one in found if one.startswith(f"{package}.")}
        # `shape` has the fields that there are: every file is checked against all of them.
        more = {one for one in inside - needed if one.split(".")[0] != "shape"}
        assert more == set(), f"{package}: a plain file loads more than it needs"
        assert needed - inside == set(), f"{package}: these are no longer needed"
    # What only the start has run of it is given back, in each process.
    pids = [running.process.pid, *running.worker_pids()]
    running.wait(lambda: [mapped_kb(pid, "/route/table.") for pid in pids] == [0, 0])
    # The test would see it.
    running.reload(LIMITED)
    assert mapped_kb(pids[1], "/route/table.") > 0
    assert {"headgate.config.policy.cors", "headgate.policy.cors"} <= loaded(running)
