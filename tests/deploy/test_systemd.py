"""The units of deploy/systemd: what systemd's own programs say of them, and what the gateway relies on."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.config.load import TextSource, load

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
SYSTEM = Path("/usr/lib/systemd/system")


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"needs {program} (package systemd)")


def values(unit: str) -> dict[str, list[str]]:
    """The settings of a unit file."""
    found: dict[str, list[str]] = {}
    for line in (UNITS / unit).read_text().splitlines():
        name, sign, value = line.partition("=")
        if sign and not line.startswith(("#", "[")):
            found.setdefault(name, []).append(value)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with the units and what they name, and with the targets of this machine."""
    units = tmp_path / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    for path in [*SYSTEM.glob("*.target"), *SYSTEM.glob("*.slice"), *UNITS.glob("headgate.*")]:
        shutil.copy(path, units, follow_symlinks=True)
    for program in ("usr/bin/headgate", "bin/sh"):
        (tmp_path / program).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    for kind in ("sysusers.d", "tmpfiles.d"):
        shutil.copytree(UNITS / kind, tmp_path / "usr/lib" / kind)
    (tmp_path / "etc/headgate").mkdir(parents=True)
    (tmp_path / "etc/headgate/config.yaml").write_text("{}\n")
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (tmp_path / "etc/group").write_text("root:x:0:\n")
    return tmp_path


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


@needs("systemd-analyze")
@pytest.mark.skipif(not (SYSTEM / "sysinit.target").exists(), reason="systemd's own units are not installed")
def test_systemd_finds_no_fault(root: Path) -> None:
    verify = ["systemd-analyze", "verify", "--man=no", f"--root={root}"]
    done = run(*verify, "headgate.service", "headgate.socket")
    assert (done.returncode, done.stderr) == (0, "")
    unit = root / "usr/lib/systemd/system/headgate.service"
    unit.write_text(unit.read_text().replace("WatchdogSec", "WatchdgSec"))
    assert "WatchdgSec" in run(*verify, "headgate.service").stderr, "it would tell a misspelled setting"


@needs("systemd-analyze")
def test_the_sandbox_is_tight(root: Path) -> None:
    done = run("systemd-analyze", "security", "--offline=true", f"--root={root}", "headgate.service")
    match = re.search(r"exposure level for headgate.service: ([\d.]+)", done.stdout)
    assert match is not None, done.stderr
    assert float(match[1]) <= 2.5


@needs("systemd-sysusers")
@needs("systemd-tmpfiles")
def test_user_and_folders_are_made(root: Path) -> None:
    done = run("systemd-sysusers", f"--root={root}", "headgate.conf")
    if done.returncode:
        pytest.skip(f"systemd-sysusers does not run here: {done.stderr.strip()}")
    [entry] = [line for line in (root / "etc/passwd").read_text().splitlines() if line.startswith("headgate:")]
    _, _, uid, gid, _, home, shell = entry.split(":")
    assert home == "/var/lib/headgate"
    assert shell.endswith("nologin")
    done = run("systemd-tmpfiles", f"--root={root}", "--create", "headgate.conf")
    assert (done.returncode, done.stderr) == (0, "")
    config = (root / "etc/headgate/config.yaml").stat()
    assert (config.st_mode & 0o777, config.st_uid, config.st_gid) == (0o640, 0, int(gid))
    state = (root / "var/lib/headgate").stat()
    assert (state.st_mode & 0o777, state.st_uid) == (0o750, int(uid))


def test_the_service_fits_the_gateway() -> None:
    service = values("headgate.service")
    assert service["Type"] == ["notify"]
    assert service["NotifyAccess"] == ["main"], "workers and MCP servers have no say"
    assert service["ExecReload"] == ["/bin/sh -c 'kill -HUP ${MAINPID}'"]
    assert service["KillMode"] == ["mixed"], "workers end when they are told to, not by a signal"
    assert service["RemoveIPC"] == ["no"], "what was spent last stays in /dev/shm for the next start"
    drain_s = load(TextSource("binds: []")).gateway.process.max_termination_ms / 1000
    assert drain_s < int(service["TimeoutStopSec"][0].removesuffix("s"))
    assert int(service["WatchdogSec"][0].removesuffix("s")) >= 10, "a worker does not respond after five seconds"


def test_a_stop_waits_for_the_gateway() -> None:
    """As systemd itself does only for a child of its own, which a gateway is no more after an upgrade."""
    [line] = values("headgate.service")["ExecStop"]
    program = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("ready", flush=True)
signal.sigwait({signal.SIGTERM})
print("told", flush=True)
input()
"""
    command = [sys.executable, "-c", program]
    gateway = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert gateway.stdout is not None
    assert gateway.stdout.readline() == "ready\n"
    words = shlex.split(line.removeprefix("-").replace("${MAINPID}", str(gateway.pid)))
    stop = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert gateway.stdout.readline() == "told\n"
    assert stop.poll() is None
    gateway.communicate("\n", timeout=60)
    assert gateway.returncode == 0
    assert stop.communicate(timeout=60)[1] == ""
    # The last look finds no process: that is its status, and the dash in front says that it does not count.
    assert line.startswith("-")


def test_the_socket_is_that_of_the_first_configuration(tmp_path: Path) -> None:
    from headgate.cli.main import STARTER

    port = values("headgate.socket")["ListenStream"]
    assert [bind.port for bind in load(TextSource(STARTER.replace("{url}", f'"sqlite://{tmp_path}/data.db"'))).gateway.binds] == [int(port[0])]
    assert values("headgate.socket")["BindIPv6Only"] == ["both"], "else the gateway refuses [::]"
