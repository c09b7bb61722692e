"""The one-file program in a root that has nothing else: no Python, no libraries, no shell, nothing to write but /tmp."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.end_to_end.running import Gateway, free_port, traffic_port

ROOT = Path(__file__).parents[2]
NOBODY = 65534
# $1: the root, $2: options of the tmpfs at /tmp, or "none"; then the command. One process from here to the interpreter.
ENTER = """
set -e
root=$1 tmp=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
for node in null zero full random urandom; do mount --bind "/dev/$node" "$root/dev/$node"; done
[ "$tmp" = none ] || mount -t tmpfs -o "$tmp" tmpfs "$root/tmp"
mount -o remount,ro,bind "$root"
exec env -i /usr/sbin/chroot --userspec=65534:65534 "$root" "$@"
"""
TMP = "size=500m,mode=1777"
PROGRAMS = ("/headgate", "/gwctl")


def built() -> Path | None:
    """The program: HEADGATE_BINARY, or the one in dist/."""
    named = os.environ.get("HEADGATE_BINARY")
    found = [Path(named)] if named else sorted((ROOT / "dist").glob("headgate-*-linux-x86_64"))
    return found[-1] if found and found[-1].exists() else None


def reason() -> str:
    """Why the tests cannot run here; "" if they can."""
    if built() is None:
        return "the one-file program is not built (make binary)"
    if os.geteuid() != 0 or not shutil.which("unshare") or not Path("/usr/sbin/chroot").exists():
        return "a root of its own needs root, unshare and chroot"
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return "" if probe.returncode == 0 else "mounts of its own are not allowed here"


def make_root(folder: Path) -> Path:
    """An empty root with the program, which `gwctl` is a link to."""
    root = folder / "root"
    for name in ("proc", "dev", "tmp", "etc/headgate"):
        (root / name).mkdir(parents=True)
    for node in ("null", "zero", "full", "random", "urandom"):
        (root / "dev" / node).touch()
    program = built()
    assert program is not None
    shutil.copy(program, root / "headgate")
    (root / "gwctl").symlink_to("headgate")
    folder.chmod(0o755)
    return root


def entered(root: Path, *words: str, tmp: str = TMP) -> list[str]:
    """A command within the root, as the user nobody."""
    return ["unshare", "--mount", "sh", "-c", ENTER, "sh", str(root), tmp, *words]


def run(root: Path, *words: str, tmp: str = TMP) -> subprocess.CompletedProcess[str]:
    """What a command within the root does."""
    return subprocess.run(entered(root, *words, tmp=tmp), capture_output=True, text=True, check=False, timeout=250)


class RootedGateway(Gateway):
    """A gateway within the root. The configuration is written from outside."""

    def __init__(self, folder: Path, text: str, workers: int) -> None:
        self.root = make_root(folder)
        self.port, self.spare = traffic_port(), traffic_port()
        self.admin, self.stats, self.readiness = (free_port() for _ in range(3))
        self.path = self.root / "etc/headgate/config.yaml"
        self.log_path = folder / "log.txt"
        self._workers, self._settings = workers, ""
        self._log_start, self._counted = 0, {}
        self.write(text)
        with self.log_path.open("wb") as log:
            command = entered(self.root, "/headgate", "-f", "/etc/headgate/config.yaml")
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def begun(folder: Path, text: str, workers: int = 1) -> RootedGateway:
    """A gateway that serves."""
    for attempt in range(3):
        running = RootedGateway(folder / str(attempt), text, workers)
        try:
            running.wait_ready()
        except AssertionError:
            running.process.kill()
            # Another program of this machine took a port that was free a moment ago.
            if attempt == 2 or "already in use" not in running.log():
                raise
            continue
        return running
    raise AssertionError("unreachable")
