"""Files of a configuration that are not what they should be, in front of a running gateway."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.end_to_end.asking import ask

PROTECTED = """
gateways: {{default: {{port: {{port}}}}}}
routes:
- policies:
    basicAuth: {{htpasswd: {{file: "{path}"}}}}
    directResponse: {{status: 200, body: {body}}}
"""
# Password: password.
USERS = "ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n"
ADA = {"authorization": "Basic YWRhOnBhc3N3b3Jk"}


def test_reloads_go_on_behind_a_named_pipe(gateway: Callable[..., Any], tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(USERS)
    running = gateway(PROTECTED.format(path=users, body="one"))
    assert ask(running, headers=ADA).body == b"one"
    users.unlink()
    os.mkfifo(users)
    running.wait_log("not a regular file")
    assert ask(running, headers=ADA).body == b"one", "a failed reload keeps the running configuration"
    users.unlink()
    users.write_text(USERS)
    running.write(PROTECTED.format(path=users, body="two"))
    running.wait_log("generation=2")
    assert ask(running, headers=ADA).body == b"two"


def test_the_configuration_itself_is_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    os.mkfifo(path)
    done = subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", "-f", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "cannot read the configuration: not a regular file" in done.stderr
