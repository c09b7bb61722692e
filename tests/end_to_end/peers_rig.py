"""What tests of peers and others share."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

MODULES = Path(__file__).resolve().parents[2] / "build" / "node" / "node_modules"
INSPECTOR = MODULES / ".bin" / "mcp-inspector"


def inspect(url: str, *arguments: str) -> dict[str, object]:
    done = subprocess.run(
        [str(INSPECTOR), "--cli", url, "--transport", "http", *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found
