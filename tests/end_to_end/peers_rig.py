"""What tests of peers and others share."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

MODULES = Path(__file__).resolve().parents[2] / "build" / "node" / "node_modules"
INSPECTOR = MODULES / ".bin" / "mcp-inspector"


def inspect(url: str, *arguments: str) -> dict[str, object]:
    done = subprocess.run(
        # Four programs of Node.js start behind the first call: on a busy machine that takes longer than the usual 15 s.
        [str(INSPECTOR), "--cli", url, "--transport", "http", "--connect-timeout", "120000", *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found
