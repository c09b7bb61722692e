"""`gwctl requests`, `routes`, `models`, `mcp`, `top` and flame graphs at a gateway with traffic."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.end_to_end.asking import ask
from tests.end_to_end.federation_rig import SAMPLE, Raw
from tests.end_to_end.gwctl_rig import DIRECT, gwctl
from tests.end_to_end.provider_stand_in import chat, whole
from tests.end_to_end.running import PATIENCE

CONFIG = """
gateways: {default: {port: {port}}}
mcp:
  targets: [{name: near, SAMPLE}]
llm:
  models: [{name: small, provider: openai, params: {baseUrl: "http://127.0.0.1:LLM/v1", apiKey: never-shown}}]
backends:
- {name: shelf, host: "127.0.0.1:1"}
services:
- {name: nobody, namespace: shop, hostname: nobody.test, ports: {80: 80}}
routes:
- {name: hello, matches: [{path: {exact: /hello}}], policies: {directResponse: {status: 200, body: hello}}}
- {name: locked, matches: [{path: {pathPrefix: /locked}}], policies: {directResponse: {status: 403, body: locked}}}
- {name: far, matches: [{path: {pathPrefix: /far}}], backends: [{host: "127.0.0.1:1"}]}
- {name: shelf, matches: [{path: {pathPrefix: /shelf}}], backends: [{backend: shelf}]}
""".replace("SAMPLE", SAMPLE)
DATABASE = "database: {url: 'sqlite://data.db'}"
CHAT = {"model": "small", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def running(gateway: Callable[..., Any], stand_in: Any) -> Any:
    provider = stand_in(whole(chat()))
    found = gateway(CONFIG.replace("LLM", str(provider.port)), 2, settings=DATABASE)
    for path in ("/hello", "/hello", "/locked/1", "/far", "/none"):
        ask(found, path=path)
    assert httpx.post(f"{found.url}/v1/chat/completions", json=CHAT, timeout=PATIENCE).status_code == 200
    assert Raw(found).text("echo", message="x") == "Echo: x"
    # Of HTTP, of the model and of MCP (initialize, a notification, a call).
    found.wait(lambda: found.metric('gw_request_log_records_total{outcome="written"}') >= 9)
    return found


def run(running: Any, *words: str) -> str:
    done = gwctl(*words, "--local", "-p", str(running.admin))
    assert done.returncode == 0, done
    assert not done.stderr
    return done.stdout


def rows(running: Any, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(running, *words, "-o", "json"))
    return found


def test_routes_models_and_mcp(running: Any) -> None:
    routes = {one["route"]: one for one in rows(running, "routes")}
    assert {name: routes[f"default/{name}"]["requests"] for name in ("hello", "locked", "far", "shelf")} == {
        "hello": 2, "locked": 1, "far": 1, "shelf": 0,
    }  # fmt: skip
    assert (routes["default/locked"]["clientErrors"], routes["default/far"]["serverErrors"]) == (1, 1)
    assert (routes["default/hello"]["match"], routes["default/far"]["backends"]) == (["/hello"], ["127.0.0.1:1"])
    assert routes["default/hello"]["p50Ms"] > 0
    table = run(running, "routes").splitlines()
    assert table[0].split() == ["ROUTE", "LISTENER", "MATCH", "BACKENDS", "REQUESTS", "4XX", "5XX", "P50", "P99"]
    [model] = rows(running, "models")
    assert (model["model"], model["provider"], model["requests"]) == ("small", "openai", 1)
    assert model["address"].startswith("127.0.0.1:")
    assert model["inputTokens"] > 0
    [target] = rows(running, "mcp")
    assert (target["target"], target["kind"], target["sessions"], target["state"]) == ("near", "process", 1, "up")
    # Initialize and a call, of which only one worker knows.
    assert (target["calls"], target["errors"], target["failures"]) == (2, 0, 0)
    assert (target["name"], target["version"]) == ("headgate-sample", "0.1.0")
    assert target["p95Ms"] > 0
    assert run(running, "models").splitlines()[0].split() == [
        "MODEL",
        "PROVIDER",
        "ADDRESS",
        "REQUESTS",
        "INPUT",
        "OUTPUT",
        "COST",
    ]
    heads, line = run(running, "mcp").splitlines()
    assert heads.split() == [
        "TARGET", "STATE", "SERVER", "SESSIONS", "CALLS", "ERRORS", "P50", "P95", "BACKEND", "ADDRESS", "LAST", "ERROR",
    ]  # fmt: skip
    assert line.split()[:5] == ["near", "up", "headgate-sample", "0.1.0", "1"]


def test_every_backend_has_a_row_with_its_address(running: Any) -> None:
    found = {
        (one["type"], one["name"], one["endpoint"]): one
        for one in rows(running, "proxy", "config", "backends", "--all")
    }
    assert found["Route", "far", "127.0.0.1:1"]["address"] == "127.0.0.1:1"
    assert found["Backend", "shelf", "host"]["address"] == "127.0.0.1:1"
    assert found["Service", "nobody", ""]["health"] == "no endpoints"
    [process] = [one for (kind, _, name), one in found.items() if (kind, name) == ("MCP", "near")]
    assert process["address"] == sys.executable
    [model] = [one for (kind, _, _), one in found.items() if kind == "Backend" and one["requests"] is not None]
    assert re.fullmatch(r"127\.0\.0\.1:\d+", model["address"])
    short = run(running, "proxy", "config", "backends").splitlines()
    assert short[0].split()[-1] == "ADDRESS"
    assert any(
        line.split() == ["Route", "far", "default", "127.0.0.1:1", "-", "-", "-", "127.0.0.1:1"] for line in short
    )


def test_requests_are_filtered(running: Any) -> None:
    def paths(*words: str) -> list[str]:
        lines = run(running, "requests", "--no-follow", "-l", "50", "-o", "json", *words).splitlines()
        return [json.loads(line)["attributes"].get("http.path", "") for line in lines]

    assert sorted(paths("--status", "4xx,5xx")) == ["/far", "/locked/1", "/none"]
    assert paths("--status", "5xx") == ["/far"]
    assert paths("--status", "403,404", "--route", "default/locked") == ["/locked/1"]
    assert paths("--model", "small") == ["/v1/chat/completions"]
    assert paths("--provider", "nobody") == []
    assert paths("--since", "1h", "--attribute", "http.path=/hello") == ["/hello"] * 2
    assert paths("--since", "2000-01-01T00:00:00Z", "-l", "1", "--status", "200,403") != []
    table = run(running, "requests", "--no-follow", "--status", "5xx")
    assert re.search(r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d 503 .* GET /far .* default/far ", table)


def test_requests_to_come_are_shown_as_they_end(running: Any) -> None:
    words = ["requests", "--local", "-p", str(running.admin), "-l", "0", "--status", "4xx"]
    with subprocess.Popen(
        [sys.executable, "-m", "headgate.cli.gwctl", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines: Iterator[str] = iter(process.stdout)
        try:
            assert next(lines).split()[:2] == ["TIME", "STATUS"]
            for path in ("/hello", "/locked/new"):
                ask(running, path=path)
            assert "/locked/new" in next(lines)
        finally:
            process.terminate()


def test_the_views_of_top_for_scripts(running: Any) -> None:
    head, heads, *lines = run(running, "top", "--once").splitlines()
    assert re.match(r"\d+ requests?  \d+ connections?  2 workers  configuration 1  headgate \S+", head)
    assert heads.split() == ["ROUTE", "REQ/S", "REQUESTS", "4XX", "5XX", "P50", "P99", "MATCH"]
    assert any(line.startswith("default/hello") for line in lines)
    assert "small" in run(running, "top", "--once", "--view", "models")
    assert "near" in run(running, "top", "--once", "--view", "sessions")
    assert "the configuration has no virtualKeys" in run(running, "top", "--once", "--view", "keys")
    errors = run(running, "top", "--once", "--view", "errors")
    assert {word for word in ("GET /far", "GET /locked/1", "GET /none") if word in errors} == {
        "GET /far",
        "GET /locked/1",
        "GET /none",
    }
    refused = gwctl("top", "--local", "-p", str(running.admin))
    assert (refused.returncode, refused.stderr) == (1, "Error: the live view needs a terminal; use --once\n")


def test_without_a_request_log_it_is_told_what_is_missing(gateway: Callable[..., Any]) -> None:
    running = gateway(DIRECT)
    done = gwctl("requests", "--local", "-p", str(running.admin), "--no-follow")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: request log database is not configured: requests are listed from it. Set config.database.url ")
    assert done.stderr.endswith(", or watch requests without it: gwctl proxy trace\n")
    # All commands spell the port alike.
    assert "--proxy-admin-port" in gwctl("keys", "list", "--help").stdout
    assert "there is no request log" in run(running, "top", "--once", "--view", "errors")


def test_a_flame_graph_needs_no_other_program(gateway: Callable[..., Any], tmp_path: Path) -> None:
    running = gateway(DIRECT, environment={"HEAP_PROFILE_RATE": "4096"})
    for _ in range(20):
        ask(running)
    saved = tmp_path / "heap.pb.gz"
    words = ("--local", "-p", str(running.admin), "-o", str(saved))
    done = gwctl("proxy", "profile", "heap", "--flame", *words, env={"PATH": "/usr/bin:/bin"})
    assert (done.returncode, done.stdout) == (
        0,
        f"Wrote heap profile to {saved}\nWrote flame graph to {tmp_path}/heap.html\n",
    )
    page = (tmp_path / "heap.html").read_text()
    assert '"unit":"bytes"' in page
    assert '"worker 0"' in page
    again = gwctl("proxy", "profile", "flame", str(saved), "-o", str(tmp_path / "again.html"))
    assert again.returncode == 0
    assert (tmp_path / "again.html").read_text() == page
    refused = gwctl("proxy", "profile", "flame", str(running.path))
    assert (refused.returncode, refused.stderr) == (1, "Error: not a profile in the format of pprof\n")


def test_a_heap_profile_without_samples_says_so(gateway: Callable[..., Any], tmp_path: Path) -> None:
    running = gateway(DIRECT)
    done = gwctl("proxy", "profile", "heap", "--local", "-p", str(running.admin), "-o", str(tmp_path / "heap.pb.gz"))
    assert done.returncode == 0
    assert done.stderr.startswith("the profile has no samples: allocations are not sampled")


def test_a_module_that_no_logger_has_is_refused(gateway: Callable[..., Any]) -> None:
    running = gateway(DIRECT)
    port = ("--local", "-p", str(running.admin))
    done = gwctl("proxy", "log", *port, "--set", "headgate.upstreams=debug")
    assert done.returncode == 1
    assert "there is no logger headgate.upstreams, did you mean headgate.upstream?" in done.stderr
    strange = gwctl("proxy", "log", *port, "--set", "zzz=debug")
    assert "there is no logger zzz; loggers are headgate.admin, " in strange.stderr
    assert gwctl("proxy", "log", *port).stdout == "current log level is info\n"
    assert gwctl("proxy", "log", *port, "--set", "headgate=warn,asyncio=error").returncode == 0
