"""What policy servers take is loaded with the first of them."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
import headgate.pipeline.compile
print(sorted(name for name in ("grpc", "h2", "google.protobuf", "headgate.net.grpc") if name in sys.modules))
"""


def test_a_gateway_without_policy_servers_does_not_load_grpc() -> None:
    found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
