"""What ci/systemd_check.sh runs under systemd, in a root with the package at /headgate.deb. Exits with 1 at a fault."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PORT, ADMIN, STATS = 25910, 25911, 25912
URL = f"http://127.0.0.1:{PORT}/"
CONFIG = Path("/etc/headgate/config.yaml")
TEXT = """
config: {{adminAddr: "127.0.0.1:{admin}", statsAddr: "[::]:{stats}", readinessAddr: "off"}}
gateways: {{default: {{port: {port}}}}}
routes: [{{policies: {{directResponse: {{status: 200, body: "{body}"}}}}}}]
"""
PATIENCE = 120.0


def ctl(*words: str) -> str:
    """Run systemctl; return what it prints."""
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"systemctl {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def fail(why: str) -> None:
    """End the check, with what systemd and the gateway have said."""
    last = ["journalctl", "-n", "60", "--no-pager", "-o", "short-precise"]
    said = subprocess.run(last, capture_output=True, text=True, check=False).stdout
    print(f"FAILED: {why}\n{said}")
    sys.exit(1)


def show(name: str) -> str:
    """A property of the service."""
    return ctl("show", "-P", name, "headgate.service")


def served() -> str:
    """What a request is answered with."""
    with urllib.request.urlopen(URL, timeout=PATIENCE) as answer:
        return str(answer.read().decode())


def expect(found: object, wanted: object, what: str) -> None:
    """Compare, and say what holds."""
    if found != wanted:
        fail(f"{what}: {found!r} instead of {wanted!r}")
    print(f"holds: {what}")


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for something."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            fail(f"{what}: never")
        time.sleep(0.05)
    print(f"holds: {what}")


def write(body: str) -> None:
    """Write the configuration, which only the gateway may read."""
    CONFIG.write_text(TEXT.format(admin=ADMIN, stats=STATS, port=PORT, body=body))
    subprocess.run(["chown", "root:headgate", str(CONFIG)], check=True)
    CONFIG.chmod(0o640)


@contextmanager
def clients(count: int = 3) -> Iterator[list[str]]:
    """Clients with a connection for each request; what went wrong. Each has been answered at the end."""
    over, wrong, answers = threading.Event(), [], [0] * count

    def ask(index: int) -> None:
        while not over.is_set() or not answers[index]:
            try:
                served()
                answers[index] += 1
            except (OSError, http.client.HTTPException) as error:
                wrong.append(repr(error))
                return

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield wrong
    finally:
        over.set()      # at a fault as well, or this process would never end
        for thread in threads:
            thread.join()
    print(f"       {sum(answers)} requests meanwhile")


def drop_in(unit: str, text: str) -> None:
    """Write a drop-in of a unit."""
    folder = Path(f"/etc/systemd/system/{unit}.d")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "check.conf").write_text(text)
    ctl("daemon-reload")


def start_and_reload() -> None:
    """The service by itself."""
    write("first")
    ctl("start", "headgate.service")
    expect((show("ActiveState"), served()), ("active", "first"), "a start returns when traffic is served")
    main = show("MainPID")
    expect(Path(f"/proc/{main}/status").read_text().split("Uid:")[1].split()[0] == "0", False, "it is not root")
    write("second")
    ctl("reload", "headgate.service")
    until(lambda: served() == "second", "a reload serves the new configuration")
    expect(show("MainPID"), main, "a reload keeps the process")
    CONFIG.write_text("nonsense: 1\n")
    subprocess.run(["systemctl", "reload", "headgate.service"], check=False)
    expect((show("ActiveState"), served()), ("active", "second"), "a file with a fault changes nothing")
    write("second")
    ctl("reload", "headgate.service")


def watchdog() -> None:
    """A gateway that stands still is killed and comes back."""
    drop_in("headgate.service", "[Service]\nWatchdogSec=3s\n")
    ctl("restart", "headgate.service")
    main = int(show("MainPID"))
    restarts = int(show("NRestarts"))
    os.kill(main, signal.SIGSTOP)
    until(lambda: int(show("NRestarts")) > restarts and show("ActiveState") == "active", "the watchdog starts it anew")
    expect((int(show("MainPID")) != main, served()), (True, "second"), "it serves again")


def upgrade() -> None:
    """A signal and the next version of the package: another process, no outage."""
    drop_in("headgate.service", "[Service]\nWatchdogSec=30s\n")
    ctl("restart", "headgate.service")
    main = show("MainPID")
    with clients() as wrong:
        ctl("kill", "--kill-whom=main", "-s", "USR2", "headgate.service")
        until(lambda: show("MainPID") not in (main, "0"), "an upgrade changes the main process")
        expect((show("ActiveState"), served()), ("active", "second"), "the service goes on")
    expect(wrong, [], "no request is lost at an upgrade")
    main = show("MainPID")
    with clients() as wrong:
        subprocess.run(["dpkg", "-i", "/headgate.deb"], check=True, stdout=subprocess.DEVNULL)
        until(lambda: show("MainPID") not in (main, "0"), "an upgrade of the package changes the main process")
        expect((show("ActiveState"), served()), ("active", "second"), "the service goes on")
    expect(wrong, [], "no request is lost at an upgrade of the package")
    write("third")
    ctl("reload", "headgate.service")
    until(lambda: served() == "third", "a reload reaches the process that took over")
    ctl("stop", "headgate.service")
    expect(show("Result"), "success", "a stop ends the process that took over")


def socket_unit() -> None:
    """Clients that come while the service is down wait in the socket."""
    drop_in("headgate.socket", f"[Socket]\nListenStream=\nListenStream={PORT}\nListenStream={STATS}\n")
    ctl("start", "headgate.socket")
    expect(show("ActiveState"), "inactive", "the socket listens without the service")
    expect(served(), "third", "the first client starts the service")
    with clients() as wrong:
        for _ in range(2):
            ctl("restart", "headgate.service")
    expect(wrong, [], "no client is refused at a restart")
    main = show("MainPID")
    with clients() as wrong:
        ctl("kill", "--kill-whom=main", "-s", "USR2", "headgate.service")
        until(lambda: show("MainPID") not in (main, "0"), "an upgrade with a socket unit")
    expect(wrong, [], "no request is lost there")
    with urllib.request.urlopen(f"http://127.0.0.1:{STATS}/metrics", timeout=PATIENCE) as answer:
        expect(b"gw_" in answer.read(), True, "the stats server has the other socket")


def main() -> None:
    """All of it."""
    subprocess.run(["dpkg", "-i", "/headgate.deb"], check=True)
    start_and_reload()
    watchdog()
    upgrade()
    socket_unit()
    subprocess.run(["dpkg", "-r", "headgate"], check=True, stdout=subprocess.DEVNULL)
    expect(Path("/usr/lib/headgate").exists(), False, "a removal ends it and takes its files")


if __name__ == "__main__":
    main()
