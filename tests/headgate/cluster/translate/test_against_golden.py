"""From resources to IR and statuses, against golden files: HEADGATE_REGOLD=1 writes them, and the difference is to be read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_cases import CONDITIONS
from fault_cases import GOLDEN as SHOWN
from ir_golden import ir_json
from manifests import Json
from translate_cases import CASES

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import everything
from headgate.cluster.translate.fragments import assembled
from headgate.cluster.translate.gateway import Acknowledged
from headgate.config.load import TextSource, load
from headgate.document.write import write

TESTS = Path(__file__).parents[3]
# Where conditions are made: `Unmet("Reason", ...` and `Condition("Type", True, "Reason", ...`.
MADE = re.compile(r'(?:Unmet\(|Condition\("\w+", \w+,)\s*"(\w+)"')
GOLDEN = Path(__file__).parents[3] / "golden" / "cluster" / "translate"
MAIN = ObjectKey("edge", "main")
# Digests of what has a secret in it are those of one process.
DIGEST = re.compile(r"[0-9a-f]{32}")


def printed(documents: list[Json]) -> str:
    world = everything(Snapshot.of(documents), {MAIN: Acknowledged(1)})
    gateway = load(TextSource(write(assembled(world.gateways[MAIN]))), environ={}).gateway
    statuses: dict[str, Any] = {f"{one.kind.kind} {one.key}": one.content for one in world.statuses if one.kind.kind != "GatewayClass"}
    found = {"binds": ir_json(gateway.binds), "frontend": ir_json(gateway.frontend), "statuses": dict(sorted(statuses.items()))}
    return DIGEST.sub("<digest>", json.dumps(found, indent=1, ensure_ascii=False)) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_resources_come_to_the_golden_ir_and_statuses(name: str) -> None:
    file, found = GOLDEN / f"{name}.json", printed(CASES[name])
    if os.environ.get("HEADGATE_REGOLD"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(found)
    assert found == file.read_text()
    assert "canary" not in found


def test_there_is_no_other_file() -> None:
    assert {one.stem for one in GOLDEN.iterdir()} == set(CASES)


def conditions(value: Any, kind: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the conditions of a status: kind, type, status, reason."""
    if isinstance(value, list):
        for one in value:
            yield from conditions(one, kind)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name == "conditions":
                yield from ((kind, each["type"], each["status"], each["reason"]) for each in one)
            else:
                yield from conditions(one, f"{kind}/listener" if name == "listeners" else kind)


def test_every_condition_is_shown_with_a_message() -> None:
    found: set[tuple[str, ...]] = set()
    for path in GOLDEN.iterdir():
        for about, status in json.loads(path.read_text())["statuses"].items():
            found |= set(conditions(status, about.split()[0]))
            assert '"message": ""' not in json.dumps(status), about
    listed = {row[:4] for row in CONDITIONS}
    assert len(listed) == len(CONDITIONS)
    assert {row[:4] for row in CONDITIONS if row[4] == SHOWN} - found == set()
    assert found - listed == set()
    for *row, test in CONDITIONS:
        if test != SHOWN:
            text = (TESTS / test).read_text()
            assert all(word in text for word in (row[1], row[3])), row


def test_the_table_has_every_reason_that_is_given() -> None:
    sources = [one for part in ("translate", "deploy") for one in (TESTS.parent / "pysrc/headgate/cluster" / part).glob("*.py")]
    given = {reason for path in sources for reason in MADE.findall(path.read_text())}
    assert given - {row[3] for row in CONDITIONS} == set()
