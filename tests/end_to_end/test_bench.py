"""`headgate bench` as users start it, at low rates: what it measures is there, and is the gateway's."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import trustme
from tests.end_to_end.processes import alive, children_of
from tests.end_to_end.tls_rig import (
    authority,  # noqa: F401
    issue,
)
from tests.end_to_end.tracing import wait_for

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/bench-report.schema.json").read_text())
SHORT = ("-t", "1", "--warm-up", "0", "-r", "20", "-c", "2", "--timeout", "60")


def bench(*words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-m", "headgate.cli.main", "bench", *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == status, done.stderr
    return done


def measured(*words: str) -> dict[str, Any]:
    """A report, which keeps to its schema."""
    document: dict[str, Any] = json.loads(bench(*words, *SHORT, "--json", "-").stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


KINDS = {
    "http": (),
    "http2": ("--http2", "--streams", "4"),
    "chat": ("-k", "chat"),
    "stream": ("-k", "stream", "--tokens", "7"),
    "stream-messages": ("-k", "stream", "--format", "messages", "--tokens", "7"),
    "stream-responses": ("-k", "stream", "--format", "responses", "--tokens", "7"),
    "stream-http2": ("-k", "stream", "--tokens", "7", "--http2"),
    "mcp": ("-k", "mcp"),
    "mcp-http2": ("-k", "mcp", "--http2"),
    "processes": ("--processes", "2"),
    "no-keepalive": ("--no-keepalive",),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_gateway_of_its_own(name: str) -> None:
    words = KINDS[name]
    document = measured(*words)
    (step,) = document["steps"]
    assert (step["good"], step["failed"], step["errors"]) == (20, 0, {})
    assert step["latency_ms"]["count"] == 20
    assert document["workload"]["own_gateway"]
    assert document["workload"]["protocol"] == ("2" if "--http2" in words else "1.1")
    assert step["target"]["processes"] >= 2
    assert step["target"]["peak_mb"] > 1
    if "stream" in name:
        assert step["tokens"]["count"] == 20 * 7
        assert (step["first_token_ms"]["count"], step["between_tokens_ms"]["count"]) == (20, 20 * 6)
    else:
        assert step["first_token_ms"] is None


def test_a_gateway_of_the_user(gateway, echo, tmp_path: Path) -> None:
    running = gateway(f"gateways:\n  default: {{port: {{port}}}}\nroutes:\n- backends: [{{host: '127.0.0.1:{echo}'}}]\n")
    page = tmp_path / "report.html"
    document = json.loads(bench(f"{running.url}/x", *SHORT, "--json", "-", "--html", str(page)).stdout)
    assert document["steps"][0]["good"] == 20
    assert not document["workload"]["own_gateway"]
    assert document["steps"][0]["target"]["processes"] >= 2
    assert "Latency by second" in page.read_text()


def test_a_report_keeps_no_secret_of_what_was_sent(gateway, echo, tmp_path: Path) -> None:
    running = gateway(f"gateways:\n  default: {{port: {{port}}}}\nroutes:\n- backends: [{{host: '127.0.0.1:{echo}'}}]\n")
    json_path, page = tmp_path / "report.json", tmp_path / "report.html"
    sent = ("-H", "authorization: Bearer SECRET-1", "-H", "cookie: a=SECRET-2", "-d", "SECRET-3")
    done = bench(f"{running.url}/x?key=SECRET-4&SECRET-5", *SHORT, *sent, "--json", str(json_path), "--html", str(page))
    assert json.loads(json_path.read_text())["steps"][0]["good"] == 20
    assert json.loads(json_path.read_text())["workload"]["url"] == f"{running.url}/x?key=***&***"
    assert "SECRET" not in json_path.read_text() + page.read_text() + done.stdout + done.stderr


def test_errors_are_told_by_kind(gateway) -> None:
    text = "gateways:\n  default: {port: {port}}\nroutes:\n- policies: {directResponse: {status: 429, body: no}}\n"
    running = gateway(text)
    assert "the first request failed: status 429" in bench(running.url, *SHORT, status=1).stderr
    done = bench(running.url, *SHORT, "--no-check")
    assert re.search(r"20 x status 429", done.stdout)


def test_the_search_for_the_saturation_ends_at_a_bound(gateway) -> None:
    limit = "{maxTokens: 5, tokensPerFill: 1, fillInterval: 3600s}"
    text = f"gateways:\n  default: {{port: {{port}}}}\nroutes:\n- policies: {{localRateLimit: [{limit}], directResponse: {{status: 200}}}}\n"
    running = gateway(text)
    done = bench(running.url, *SHORT, "--saturate", "--no-check")
    assert "not even the first rate was carried: 100.0% errors, more than 1.0%" in done.stdout


def test_peers_for_a_gateway_of_the_user(gateway, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "headgate.cli.main", "bench", "serve", "--port", "0", "--size", "5"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as peers:
        assert peers.stderr is not None
        port = re.search(r":(\d+)/", peers.stderr.readline())
        assert port is not None
        running = gateway(f"gateways:\n  default: {{port: {{port}}}}\nroutes:\n- backends: [{{host: '127.0.0.1:{port[1]}'}}]\n")
        assert running.fetch(running.url) == (200, "xxxxx")
        peers.terminate()
    assert peers.returncode == 0


def test_reports_are_written_and_compared(tmp_path: Path) -> None:
    first = tmp_path / "first.json"
    done = bench(*SHORT, "--repeat", "2", "--json", str(first))
    assert "http: GET http://127.0.0.1:" in done.stdout
    assert "at 20 a second" in bench("compare", str(first), str(first)).stdout


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_what_was_started_ends_with_it(number: signal.Signals, status: int) -> None:
    words = [sys.executable, "-m", "headgate.cli.main", "bench", "-t", "600", "--warm-up", "0", "--processes", "2"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as measuring:
        wait_for(lambda: len(children_of(measuring.pid)) == 4)      # peers, a gateway, two generators
        started = children_of(measuring.pid)
        measuring.send_signal(number)
        assert measuring.wait(60) == status
    wait_for(lambda: not any(alive(pid) for pid in started))


def test_tls_with_both_protocols(gateway, authority: trustme.CA, tmp_path: Path) -> None:
    issue(authority, tmp_path, "a", "localhost")
    tls = f"{{cert: {tmp_path}/a.pem, key: {tmp_path}/a.key}}"
    running = gateway(
        f"gateways:\n  default: {{port: {{port}}, protocol: HTTPS, tls: {tls}}}\n"
        "routes:\n- policies: {transformations: {response: {set: {x: '\"1\"'}}}, directResponse: {status: 200, body: ok}}\n"
    )
    url = f"https://localhost:{running.port}/"
    refused = bench(url, *SHORT, status=1).stderr
    assert "the first request failed: connect: tls: certificate" in refused
    for words in (("--cacert", str(tmp_path / "ca.pem")), ("--insecure",)):
        for protocol in ((), ("--http2",)):
            document = json.loads(bench(url, *SHORT, *words, *protocol, "--json", "-").stdout)
            assert (document["steps"][0]["good"], document["steps"][0]["errors"]) == (20, {})
