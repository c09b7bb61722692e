"""What ci/wheel_aarch64.sh runs with the interpreter of the root, where the wheel is. Exits with 1 at a fault.

Every compiled module is imported, and a configuration is read by the command. It serves nothing: QEMU 7.2 opens only
a few files of /proc/self (ELOOP for the others), which a gateway counts its threads and descriptors by.
"""

from __future__ import annotations

import importlib
import platform
import subprocess
import sys
from pathlib import Path

import headgate_engine

CONFIG = """
gateways: {default: {port: 25910}}
routes:
- policies:
    timeout: {requestTimeout: 300s}
    transformations: {response: {set: {x-said: '"seen " + request.path'}}}
  backends: [{host: "127.0.0.1:25911"}]
"""


def expect(found: object, wanted: object, what: str) -> None:
    """Compare, and say what holds."""
    if found != wanted:
        sys.exit(f"FAILED: {what}: {found!r} instead of {wanted!r}")
    print(f"holds: {what}", flush=True)


def main() -> None:
    """All of it."""
    expect(platform.machine(), "aarch64", "this is aarch64")
    root = Path(headgate_engine.__path__[0])
    modules = sorted(root.rglob("*.cpython-311-aarch64-linux-gnu.so"))
    for path in modules:
        name = ".".join(path.relative_to(root.parent).parts).partition(".cpython")[0]
        importlib.import_module(name)
    expect(len(modules) > 0, True, f"{len(modules)} modules of the engine are loaded")
    config = Path("/tmp/config.yaml")
    config.write_text(CONFIG)
    command = [sys.executable, "-m", "headgate.cli.main", "--validate-only", "-f", str(config)]
    expect(subprocess.run(command, check=False).returncode, 0, "the command reads a configuration")
    config.write_text(CONFIG.replace("requestTimeout", "nonsense"))
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    expect((done.returncode != 0, "nonsense" in done.stderr), (True, True), "it refuses one with a fault")


if __name__ == "__main__":
    main()
