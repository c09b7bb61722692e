"""The official MCP conformance suite through the gateway: nothing that a direct connection has is lost.

`make conformance-suite` installs it below build/conformance, with the Node.js it needs; without it these tests are
skipped. HEADGATE_REGOLD=1 writes docs/conformance.md anew.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end import conformance
from tests.end_to_end.conformance import COMMAND, NODE, RESULTS, ROOT, SAMPLE, SUITE, WAYS, Checks, Way

pytestmark = [
    pytest.mark.node,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not NODE.exists() or not SUITE.exists(), reason="run `make conformance-suite`"),
]
RUNS = [(way, revision) for way in WAYS for revision in way.revisions]
results: dict[tuple[str, str], Checks] = {}


@contextlib.contextmanager
def server(log: Path, *words: str) -> Iterator[int]:
    """Run the conformant server; its port."""
    command = [*COMMAND, "--http", "127.0.0.1:0", *words]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().split()[1])
        finally:
            process.terminate()


def config(way: Way, port: int) -> str:
    assert way.target is not None
    target = way.target.replace("{server}", str(port))
    more = way.more + "  dnsRebindingProtection: true\n"
    second = SAMPLE if way.name == "several" else ""
    return f"gateways:\n  default: {{port: {{port}}}}\nmcp:\n{more}  targets:\n  - name: one\n    {target}\n{second}"


def complete(url: str, way: Way, revision: str, folder: Path) -> Checks:
    """Run all scenarios, and those that fail unexpectedly alone once more."""
    found = conformance.run(url, revision, folder / "all")
    direct = results.get(("direct", revision), found)
    for again in range(1, conformance.TRIES):
        for scenario in [name for name, checks in found.items() if name not in way.exceptions]:
            checks = found[scenario]
            if conformance.worse(direct.get(scenario, checks), checks) or not conformance.passed(checks):
                found |= conformance.run(url, revision, folder / f"{scenario}{again}", scenario)
    return found


@pytest.fixture
def ran(gateway: Callable[..., Any], tmp_path: Path) -> Callable[[Way, str], Checks]:
    """`ran(way, revision)` runs the suite, once for each."""

    def run(way: Way, revision: str) -> Checks:
        if (way.name, revision) not in results:
            if way.target is not None:
                run(WAYS[0], revision)
            with server(tmp_path / f"{way.name}{revision}.log", *way.words) as port:
                url = f"http://127.0.0.1:{port}" if way.target is None else gateway(config(way, port), way.workers).url
                results[way.name, revision] = complete(f"{url}/mcp", way, revision, tmp_path / f"{way.name}{revision}")
        return results[way.name, revision]

    return run


@pytest.mark.parametrize(("way", "revision"), RUNS, ids=[f"{way.name}-{revision}" for way, revision in RUNS])
def test_what_passes_directly_passes_through_the_gateway(
    ran: Callable[[Way, str], Checks], way: Way, revision: str
) -> None:
    direct = ran(WAYS[0], revision)
    failing = [scenario for scenario, checks in direct.items() if not conformance.passed(checks)]
    assert not failing, "the server is not conformant itself"
    through = ran(way, revision)
    assert set(through) == set(direct)
    lost = {
        scenario: conformance.worse(checks, through[scenario])
        for scenario, checks in direct.items()
        if scenario not in way.exceptions
    }
    assert not {scenario: checks for scenario, checks in lost.items() if checks}


def test_every_exception_is_one(ran: Callable[[Way, str], Checks]) -> None:
    for way in WAYS:
        pairs = [(ran(WAYS[0], revision), ran(way, revision)) for revision in way.revisions]
        for scenario in way.exceptions:
            assert any(
                scenario in direct and conformance.worse(direct[scenario], through[scenario]) for direct, through in pairs
            ), (way.name, scenario)


def test_the_list_of_results_is_current(ran: Callable[[Way, str], Checks]) -> None:
    for way, revision in RUNS:
        ran(way, revision)
    text = conformance.table(results)
    if os.environ.get("HEADGATE_REGOLD"):
        RESULTS.write_text(text)
    assert RESULTS.read_text() == text
