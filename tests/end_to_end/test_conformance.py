"""The official MCP conformance suite through the gateway: nothing that a direct connection has is lost.

`make conformance-suite` installs it below build/conformance, with the Node.js it needs; without it these tests are
skipped. A part of it runs, and all of it with HEADGATE_CONFORMANCE=long (`make conformance`), where HEADGATE_REGOLD=1 writes
docs/conformance.md anew.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end import conformance
from tests.end_to_end.conformance import COMMAND, LONG, NODE, RESULTS, ROOT, SMOKE, SUITE, WAYS, Checks, Results, Way
from tests.end_to_end.running import Key, Pool

pytestmark = [
    pytest.mark.node,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not NODE.exists() or not SUITE.exists(), reason="run `make conformance-suite`"),
]
RUNS = [(way, revision) for way in WAYS for revision in way.revisions if LONG or (way.name, revision) in SMOKE]
# Runs of the suite at once: most of each is waiting.
AT_ONCE = 4


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


def config(way: Way, port: int, other: int) -> str:
    assert way.target is not None
    target = way.target.replace("{server}", str(port))
    more = way.more + "  dnsRebindingProtection: true\n"
    second = f'  - name: other\n    mcp: {{host: "127.0.0.1:{other}"}}\n' if way.name == "several" else ""
    return f"gateways:\n  default: {{port: {{port}}}}\nmcp:\n{more}  targets:\n  - name: one\n    {target}\n{second}"


class Runs:
    """Runs of the suite, several at once; each run has a server of its own."""

    def __init__(self, resting: Pool, folder: Path, other: int) -> None:
        self.results: Results = {}
        self._resting = resting
        self._folder = folder
        self._other = other     # the port of a server beside the one that is looked at
        self._taking = threading.Lock()

    def all(self, wanted: list[tuple[Way, str]]) -> None:
        """Run what is wanted, the direct runs first: others are compared with them."""
        direct = [(WAYS[0], revision) for revision in dict.fromkeys(revision for _, revision in wanted)]
        others = [(way, revision) for way, revision in wanted if way.target is not None]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for part in (direct, others):
                for _ in pool.map(lambda pair: self._run(*pair), part):
                    pass

    def _run(self, way: Way, revision: str) -> None:
        place = self._folder / f"{way.name}{revision}"
        with server(self._folder / f"{way.name}{revision}.log", *way.words) as port, self._gateway(way, port) as url:
            self.results[way.name, revision] = self._complete(f"{url}/mcp", way, revision, place)

    @contextlib.contextmanager
    def _gateway(self, way: Way, port: int) -> Iterator[str]:
        if way.target is None:
            yield f"http://127.0.0.1:{port}"
            return
        key: Key = (way.workers, "{}", "")
        with self._taking:
            running = self._resting.take(config(way, port, self._other), key)
        try:
            yield running.url
        finally:
            log = running.log()
            with self._taking:
                self._resting.give_back(key, running)
            assert "Traceback" not in log, log

    def _complete(self, url: str, way: Way, revision: str, folder: Path) -> Checks:
        """Run all scenarios, and those that fail unexpectedly alone once more."""
        found = conformance.run(url, revision, folder / "all")
        direct = self.results.get(("direct", revision), found)
        for again in range(1, conformance.TRIES):
            for scenario in [name for name, checks in found.items() if name not in way.exceptions]:
                checks = found[scenario]
                if conformance.worse(direct.get(scenario, checks), checks) or not conformance.passed(checks):
                    found |= conformance.run(url, revision, folder / f"{scenario}{again}", scenario)
        return found


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest,
    resting: Pool,
    lasting_sample: Callable[..., int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Results:
    """What the suite says of every run that the selected tests look at."""
    wanted: list[tuple[Way, str]] = []
    for item in request.session.items:
        if item.path == Path(__file__):
            call = getattr(item, "callspec", None)
            wanted += RUNS if call is None else [(call.params["way"], call.params["revision"])]
    runs = Runs(resting, tmp_path_factory.mktemp("conformance"), lasting_sample("mcp_server", "--http", "127.0.0.1:0"))
    runs.all([pair for pair in RUNS if pair in wanted])
    return runs.results


@pytest.mark.parametrize(("way", "revision"), RUNS, ids=[f"{way.name}-{revision}" for way, revision in RUNS])
def test_what_passes_directly_passes_through_the_gateway(results: Results, way: Way, revision: str) -> None:
    direct, through = results["direct", revision], results[way.name, revision]
    failing = [scenario for scenario, checks in direct.items() if not conformance.passed(checks)]
    assert not failing, "the server is not conformant itself"
    assert set(through) == set(direct)
    lost = {
        scenario: conformance.worse(checks, through[scenario])
        for scenario, checks in direct.items()
        if scenario not in way.exceptions
    }
    assert not {scenario: checks for scenario, checks in lost.items() if checks}


def test_the_page_tells_of_these_results(results: Results) -> None:
    page = conformance.cells(RESULTS.read_text())
    for way, revision in RUNS:
        for scenario in results["direct", revision]:
            told = page[revision, way.shown, scenario]
            assert told == conformance.cell(results, way, revision, scenario), (way.name, revision, scenario)


@pytest.mark.skipif(not LONG, reason="of all runs: `make conformance`")
def test_every_exception_is_one(results: Results) -> None:
    for way in WAYS:
        pairs = [(results["direct", revision], results[way.name, revision]) for revision in way.revisions]
        for scenario in way.exceptions:
            assert any(
                scenario in direct and conformance.worse(direct[scenario], through[scenario]) for direct, through in pairs
            ), (way.name, scenario)


@pytest.mark.skipif(not LONG, reason="of all runs: `make conformance`")
def test_the_list_of_results_is_current(results: Results) -> None:
    text = conformance.table(results)
    if os.environ.get("HEADGATE_REGOLD"):
        RESULTS.write_text(text)
    assert RESULTS.read_text() == text
