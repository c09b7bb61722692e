"""The command line of `gwctl`, and a configuration to look at."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from tests import forked_rig

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
    """Run the command; with `options` of subprocess.run it is executed, which takes three times as long."""
    if not options:
        return forked_rig.run("headgate.cli.gwctl", *arguments)
    command = [sys.executable, "-m", "headgate.cli.gwctl", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)
