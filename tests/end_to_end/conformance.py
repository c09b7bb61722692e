"""Runs of the official MCP conformance suite: against a server of ours, and through the gateway in front of it.

What passes directly must pass through the gateway, check by check; EXCEPTIONS says where it cannot and why.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = ROOT / "build" / "conformance" / "node_modules"
NODE = MODULES / "node" / "bin" / "node"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
RESULTS = ROOT / "docs" / "conformance.md"
VERSION = "0.2.0-alpha.12"
OLD = ("2025-03-26", "2025-06-18", "2025-11-25")
NEW = "2026-07-28"
# The scenarios of the extension for tasks, which are of no revision.
TASKS = "Tasks, extension of 2026-07-28"
TASK_SCENARIOS = tuple(
    f"tasks-{name}"
    for name in (
        "lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input", "request-headers",
        "dispatch-and-envelope", "required-task-error", "mrtr-composition",
    )
)  # fmt: skip
# Without HEADGATE_CONFORMANCE=long (`make conformance`) these alone are tried.
LONG = os.environ.get("HEADGATE_CONFORMANCE") == "long"
SMOKE = [(way, revision) for way in ("direct", "http") for revision in (OLD[-1], NEW, TASKS)]
TASK_SMOKE = ("tasks-lifecycle",)
# Every way is tried with the last revision that has sessions; with all of them only where the words are the gateway's.
LAST_TWO = (OLD[-1], NEW)
FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d+Z")
# The suite waits half a second for some things; a busy machine may need another try.
TRIES = 3

NO_SESSION = "the server asks the client, and there is no session on which the answer could come back"
HANGS_UP = "the server is to hang up in a call: a process cannot, a server without sessions neither, and a client without one could not come back"
URIS = "URIs carry the name of their target where there are several"
FIELDS = "the server behind standard input sees no fields, and the gateway does not know which arguments they repeat"
SESSIONS = "a server with sessions has no `server/discover`: the client is told so, and begins a session"
KEYS = "the server's own keys of its questions are looked for: one with sessions has none, and the gateway makes some"
NONE = "there are no sessions, so what is said of them does not apply"
SESSION_SCENARIOS = ("server-initialize", "server-session-lifecycle", "server-sse-multiple-streams")
URI_SCENARIOS = ("resources-read-text", "resources-read-binary", "resources-templates-read")
ASKING = ("tools-call-sampling", "tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums")


@dataclass(frozen=True)
class Way:
    """How the suite reaches the server. `target`: None for directly; `words` of the server; `more` of `mcp`."""

    name: str
    shown: str
    target: str | None = None
    words: tuple[str, ...] = ()
    more: str = ""
    revisions: tuple[str, ...] = (*OLD, NEW, TASKS)
    exceptions: dict[str, str] = field(default_factory=dict)
    workers: int = 2


HTTP = "mcp: {host: \"127.0.0.1:{server}\"}"
COMMAND = [sys.executable, "-m", "tests.peers.conformant"]


def stdio(*words: str) -> str:
    """Return the target of a child process."""
    script = f"cd {ROOT} && exec {' '.join([*COMMAND, *words])}"
    return f"stdio: {{cmd: /bin/sh, args: [-c, {json.dumps(script)}]}}"


WAYS = (
    Way("direct", "directly"),
    Way("http", "StreamableHTTP", HTTP),
    Way("stdio", "standard input and output", stdio(), exceptions={"http-custom-header-server-validation": FIELDS, "server-sse-polling": HANGS_UP},
        revisions=(*LAST_TWO, TASKS), workers=1),  # each worker has its process, and a change in one is none in the other
    Way("rules", "StreamableHTTP with authorization", HTTP, more="  policies: {mcpAuthorization: {rules: ['true']}}\n",
        revisions=LAST_TWO),
    Way("several", "with a second target, `prefixMode: never`", HTTP, more="  prefixMode: never\n",
        revisions=(*LAST_TWO, TASKS),
        exceptions={**dict.fromkeys(URI_SCENARIOS, URIS),
                    "resources-subscribe": URIS, "resources-unsubscribe": URIS,
                    "server-stateless": SESSIONS, "dns-rebinding-protection": SESSIONS,
                    "tasks-capability-negotiation": SESSIONS}),
    Way("stateless", "`statefulMode: stateless`", HTTP, more="  statefulMode: stateless\n",
        revisions=LAST_TWO,
        exceptions={**dict.fromkeys(ASKING, NO_SESSION), **dict.fromkeys(SESSION_SCENARIOS, NONE),
                    "server-sse-polling": HANGS_UP}),
    Way("new-server", "clients with sessions, server without", HTTP, ("--only", "new"), revisions=OLD,
        exceptions={"server-sse-polling": HANGS_UP}),
    Way("new-process", "clients with sessions, process without", stdio("--only", "new"), ("--only", "new"),
        revisions=OLD[-1:], exceptions={"server-sse-polling": HANGS_UP}),
    Way("old-server", "clients without sessions, server with", HTTP, ("--only", "old"), revisions=(NEW,),
        exceptions={"server-stateless": SESSIONS, "dns-rebinding-protection": SESSIONS,
                    "http-custom-header-server-validation": FIELDS,
                    "input-required-result-basic-elicitation": KEYS,
                    "input-required-result-ignore-extra-params": KEYS}),
)  # fmt: skip
Checks = dict[str, list[tuple[str, str]]]


def run(url: str, revision: str, folder: Path, scenario: str | None = None) -> Checks:
    """Return the checks of each scenario: name and status, sorted."""
    if revision == TASKS and scenario is None:
        # Most of each is waiting for a task.
        scenarios = TASK_SCENARIOS if LONG else TASK_SMOKE
        with concurrent.futures.ThreadPoolExecutor(len(scenarios)) as pool:
            parts = list(pool.map(lambda one: run(url, TASKS, folder / one, one), scenarios))
        return {key: checks for part in parts for key, checks in part.items()}
    only = ["--scenario", scenario, "--force"] if scenario else ["--suite", "all"]
    version = NEW if revision == TASKS else revision
    done = subprocess.run(
        [str(NODE), str(SUITE), "server", "--url", url, *only, "--spec-version", version, "-o", str(folder)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    found: Checks = {}
    for path in folder.iterdir():
        name = FOLDER.fullmatch(path.name)
        assert name is not None, path.name
        written = path / "checks.json"
        # A scenario that gives up leaves none.
        checks = json.loads(written.read_text()) if written.exists() else []
        found[name[1]] = sorted((check["id"], check["status"]) for check in checks)
    assert found, done.stdout + done.stderr
    return found


def passed(checks: list[tuple[str, str]]) -> bool:
    """Tell whether nothing failed."""
    return all(status != "FAILURE" for _, status in checks)


def worse(direct: list[tuple[str, str]], through: list[tuple[str, str]]) -> list[str]:
    """Return the checks that were fine directly and are not through the gateway."""
    fine = {name for name, _ in direct} - {name for name, status in direct if status != "SUCCESS"}
    good = {name for name, _ in through} - {name for name, status in through if status != "SUCCESS"}
    return sorted(fine - good)


Results = dict[tuple[str, str], Checks]


def cell(results: Results, way: Way, revision: str, scenario: str) -> str:
    """Return what is written of a scenario: `x`, `fails`, or the reason why it cannot pass."""
    checks = results[way.name, revision].get(scenario, [])
    if scenario in way.exceptions and worse(results["direct", revision][scenario], checks):
        return way.exceptions[scenario]
    return "x" if checks and passed(checks) else "fails"


def cells(page: str) -> dict[tuple[str, str, str], str]:
    """Return what a page says, by revision, way and scenario."""
    parts = page.split("\n## ")[1:]
    reasons = dict(re.findall(r"^- (\w): (.+)\.$", parts.pop(), re.MULTILINE))
    found = {}
    for part in parts:
        revision, _, rows = part.partition("\n")
        heads, _, *lines = ([one.strip() for one in row.strip("|").split("|")] for row in rows.split("\n") if row)
        for scenario, *words in lines:
            for shown, word in zip(heads[1:], words, strict=True):
                found[revision, shown, scenario] = reasons.get(word, word) if word != "x" else word
    return found


def table(results: Results) -> str:
    """Return the list of results as a page."""
    lines = [
        "# MCP conformance",
        "",
        f"`@modelcontextprotocol/conformance` {VERSION}, its server scenarios: against the server in `tests/peers/conformant`, and",
        "through the gateway in front of it. `make conformance` runs it; `tests/end_to_end/test_conformance.py` compares every",
        "check of every scenario with the direct run and with this page. x: passes; a letter: it cannot, for the reason below.",
        "",
    ]
    reasons: dict[str, str] = {}
    for revision in (*OLD, NEW, TASKS):
        ways = [way for way in WAYS if revision in way.revisions]
        lines += [f"## {revision}", "", "| scenario | " + " | ".join(way.shown for way in ways) + " |"]
        lines.append("|---" * (len(ways) + 1) + "|")
        for scenario in sorted(results["direct", revision]):
            row = [cell(results, way, revision, scenario) for way in ways]
            words = [one if one in ("x", "fails") else reasons.setdefault(one, chr(ord("a") + len(reasons))) for one in row]
            lines.append(f"| {scenario} | " + " | ".join(words) + " |")
        lines.append("")
    lines += ["## Reasons", "", *(f"- {letter}: {reason}." for reason, letter in reasons.items())]
    return "\n".join(lines) + "\n"
