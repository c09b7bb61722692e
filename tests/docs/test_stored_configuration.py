"""The page on configuration in a database does what it says."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.end_to_end.conftest import gateway, resting  # noqa: F401 - fixtures
from tests.end_to_end.page_rig import call
from tests.end_to_end.stored_rig import put, route

from headgate.config.resources.kinds import KINDS

PAGE = (Path(__file__).parents[2] / "docs/stored-configuration.md").read_text()


def block(kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def start(gateway: Callable[..., Any]) -> Any:
    settings, _, rest = block("yaml").removeprefix("config:\n").partition("gateways:")
    return gateway("gateways:" + rest.replace("4000", "{port}"), settings=settings)


def test_the_commands(gateway: Callable[..., Any]) -> None:
    running = start(gateway)
    said = []
    for line in block("sh").strip().splitlines():
        text = line.replace(":15000", f":{running.admin}").replace(":4000", f":{running.port}")
        said.append(subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=True).stdout)
    assert json.loads(said[0])["status"] == "success"
    assert said[1] == "hello"
    assert [one["id"] for one in json.loads(said[2])["resources"]] == ["hello"]
    assert json.loads(said[3])["message"] == "Configuration resource deleted successfully"
    assert call(running, "/")[0] == 404


def test_a_resource_is_removed_from_the_database(gateway: Callable[..., Any]) -> None:
    running = start(gateway)
    assert put(running, "traffic.route", route("hello", "x"))[0] == 200
    lines = [line for line in block("sql").replace("headgate.", "").splitlines() if "NOTIFY" not in line]
    with sqlite3.connect(running.path.parent / "data.db", isolation_level=None) as connection:
        connection.executescript("\n".join(lines))
    running.wait(lambda: call(running, "/hello")[0] == 404)


def test_every_kind_is_listed() -> None:
    listed = set(re.findall(r"`((?:llm|mcp|traffic|ui|virtualKeys)\.\w+|modelCatalog)`", PAGE.split("## Resources")[1].split("A value has")[0]))
    assert listed >= set(KINDS)
