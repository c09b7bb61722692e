"""The page on the request log: its configuration loads, its commands answer, its numbers are those of the code."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

from tests.end_to_end.asking import ask
from tests.end_to_end.conftest import gateway, resting  # noqa: F401 - fixtures

from headgate.admin.requests import HEARTBEAT_SECONDS, MAX_TAILS
from headgate.config.load import TextSource, load
from headgate.ir.request_log import MAX_BYTES, MAX_CONNECTIONS, MAX_RECORDS
from headgate.telemetry.requests.analytics import MAX_GROUPS
from headgate.telemetry.requests.question import FILTERS
from headgate.telemetry.requests.stores import SECONDS
from headgate.telemetry.requests.writer import LAST_RETRY, MAX_HELD, MAX_HELD_BYTES
from headgate_engine.llm.log_payload import MAX_PAYLOAD

PAGE = (Path(__file__).parents[2] / "docs/request-log.md").read_text()
CONFIG = "gateways: {default: {port: {port}}}\nroutes: [{name: ok, policies: {directResponse: {status: 200}}}]\n"


def test_the_configuration_loads() -> None:
    text, postgres = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    found = load(TextSource(text), environ={})
    store = load(TextSource(postgres), environ={"LOG_PASSWORD": "hidden"}).gateway.process.request_log
    assert (store.shown, store.max_records, store.max_age_ms) == ("postgres://db.example:5432/logs", 5_000_000, 2_592_000_000)
    assert store.max_connections == MAX_CONNECTIONS
    assert found.gateway.process.request_log.path == str(Path.cwd() / "data.db")
    assert found.gateway.frontend.access_log.database_add[0][0] == "agent"


def test_the_commands_answer(gateway) -> None:
    running = gateway(CONFIG, settings="database: {url: 'sqlite://data.db'}")
    ask(running)
    deadline = time.monotonic() + 20
    while not running.metric('gw_request_log_records_total{outcome="written"}'):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (block,) = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    answers = []
    for line in block.strip().splitlines():
        text = line.replace("127.0.0.1:15000", f"127.0.0.1:{running.admin}")
        done = subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=True, timeout=60)
        answers.append(json.loads(done.stdout))
    search, get, summary = answers
    assert search["logs"] == [get["log"]]
    assert summary["groups"][0].pop("meanMs") > 0
    assert summary["groups"] == [{"key": {"requestModel": None}, "requests": 1, "errors": 0, "totalTokens": 0, "cost": 0.0}]
    assert all(f"`{key}`" in PAGE for key in get["log"] if key not in ("genAi", "usage"))


def test_numbers_and_names_are_those_of_the_code() -> None:
    text = " ".join(PAGE.split())
    assert f"newest {MAX_RECORDS:,} records" in text
    assert (MAX_BYTES, MAX_PAYLOAD) == (1 << 30, 65536)
    assert f"{MAX_HELD} records or {MAX_HELD_BYTES >> 20} MiB of them wait in the supervisor" in text
    assert f"at least every {LAST_RETRY:.0f} seconds" in text
    assert f"longer than {SECONDS:.0f} seconds" in text
    assert f"`heartbeat` every {HEARTBEAT_SECONDS:.0f} s" in text
    assert f"{MAX_TAILS} at a time" in text
    assert f"the {MAX_GROUPS} largest groups" in text
    assert all(f"`{name}`" in text for name in FILTERS)
