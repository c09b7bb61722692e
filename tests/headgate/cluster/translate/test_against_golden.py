"""From resources to IR and statuses, against golden files: HEADGATE_REGOLD=1 writes them, and the difference is to be read."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from ir_golden import ir_json
from manifests import Json
from translate_cases import CASES

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import everything
from headgate.cluster.translate.fragments import assembled
from headgate.cluster.translate.gateway import Acknowledged
from headgate.config.load import TextSource, load
from headgate.document.write import write

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
