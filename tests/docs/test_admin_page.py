"""The page on the admin page: its commands run, its pictures and endpoints are there."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.end_to_end.conftest import gateway, resting  # noqa: F401 - fixtures

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "admin-page.md").read_text()
CONFIG = """
gateways:
  default: {port: {port}}
"""


def test_the_commands_answer(gateway) -> None:
    running = gateway(CONFIG)
    answers = []
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.strip().splitlines():
            text = line.replace("127.0.0.1:15000", f"127.0.0.1:{running.admin}")
            done = subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=True, timeout=60)
            answers.append(json.loads(done.stdout))
    assert answers[0] == {"result": True, "error": None}
    assert set(answers[1]) == {"build", "ui"}
    running.wait_log(f"url=http://127.0.0.1:{running.admin}/ui")


def test_the_pictures_are_there() -> None:
    names = re.findall(r"\((pictures/[^)]+)\)", PAGE)
    assert len(names) >= 10
    for name in names:
        assert (DOCS / name).read_bytes().startswith(b"\x89PNG"), name
