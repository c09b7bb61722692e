"""The Grafana dashboard: it is what its table makes, its queries are PromQL, and what they ask for exists."""

from __future__ import annotations

import copy
import json
import os
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.telemetry.families import BY_NAME, FAMILIES

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "headgate.json").read_text())
GRAPHS = [panel for panel in DASHBOARD["panels"] if panel["type"] == "timeseries"]
EXPRESSIONS = [target["expr"] for panel in GRAPHS for target in panel["targets"]]
PARTS = {f"{family.name}_{part}": family for family in FAMILIES if family.kind == "histogram" for part in ("bucket", "sum", "count")}
# Labels that Prometheus adds, and that of buckets.
ADDED = {"job", "instance", "le"}


def test_the_committed_dashboard_is_current() -> None:
    made = runpy.run_path(str(FOLDER / "dashboard.py"))["dashboard"]()
    assert made == DASHBOARD, "run: python deploy/grafana/dashboard.py > deploy/grafana/headgate.json"


def test_queries_name_metrics_and_labels_that_there_are() -> None:
    for expression in EXPRESSIONS:
        families = [BY_NAME.get(name) or PARTS[name] for name in re.findall(r"\bgw_\w+", expression)]
        assert families
        labels = {label for family in families for label in family.labels} | ADDED
        asked = re.findall(r"[{,] ?(\w+)(?:=|!=|=~)\"", expression)
        asked += [label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")]
        assert set(asked) <= labels, expression


def test_legends_name_labels_that_the_query_keeps() -> None:
    for panel in GRAPHS:
        for target in panel["targets"]:
            kept = re.match(r"(?:histogram_quantile\([\d.]+, )?(?:sum|max) by \(([^)]*)\)", target["expr"])
            if kept:
                names = {label.strip() for label in kept[1].split(",")}
                assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= names, target


CHECK = os.environ.get("HEADGATE_GRAFANA_CHECK", "")


def grafana_says(folder: Path, dashboard: dict[str, Any]) -> str:
    """What Grafana's SDK finds in a dashboard that it reads strictly, with its schemas of panels and queries."""
    path = folder / "dashboard.json"
    path.write_text(json.dumps(dashboard))
    return subprocess.run([CHECK, str(path)], capture_output=True, text=True, check=False).stdout


@pytest.mark.skipif(not CHECK, reason="make grafana-check builds the check")
def test_grafana_reads_it(tmp_path: Path) -> None:
    assert grafana_says(tmp_path, DASHBOARD) == ""


Spoil = Callable[[dict[str, Any]], None]


@pytest.mark.skipif(not CHECK, reason="make grafana-check builds the check")
@pytest.mark.parametrize(("spoil", "found"), [
    (lambda board: board.update(unknown=1), "Dashboard: unexpected field 'unknown'"),
    (lambda board: board["panels"][1]["options"]["legend"].update(unknown=1), "unexpected field 'unknown'"),
    (lambda board: board["panels"][1]["options"]["legend"].pop("calcs"), "panels[1].options.legend.calcs: required field"),
    (lambda board: board["panels"][1]["targets"][0].update(unknown=1), "panels[1].targets[0]"),
    (lambda board: board["panels"][1].pop("type"), "panels[1]: discriminator field 'type' not found"),
])  # fmt: skip
def test_grafana_finds_what_is_wrong(tmp_path: Path, spoil: Spoil, found: str) -> None:
    board = copy.deepcopy(DASHBOARD)
    spoil(board)
    assert found in grafana_says(tmp_path, board)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (package prometheus)")
def test_queries_are_promql(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{at}", "expr": expression.replace("$__rate_interval", "5m")} for at, expression in enumerate(EXPRESSIONS)
    ]
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", str(tmp_path / "rules.yaml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
