"""The command line of `gwctl`, and a configuration to look at."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

DIRECT = """
gateways:
  default: {port: {port}}
routes:
- name: shop
  policies:
    directResponse: {status: 200, body: hello}
    responseHeaderModifier: {set: {x-team: edge}}
"""


def gwctl(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headgate.cli.gwctl", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)
