"""A real PostgreSQL server for tests: a cluster of its own in a temporary folder, run by a user that is not root.

Debian's package `postgresql` installs the programs; tests are skipped where there are none.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.running import PATIENCE, free_port

PASSWORD = "p@ss/wörd"
IN_URL = "p%40ss%2Fw%C3%B6rd"
UNPRIVILEGED = ("postgres", "nobody")


def programs() -> Path | None:
    """The folder of the newest server that is installed."""
    named = os.environ.get("HEADGATE_POSTGRES")
    folders = [Path(named)] if named else sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parts[-2]))
    return next((one for one in reversed(folders) if (one / "postgres").exists()), None)


class Server:
    """One cluster, whose user `gw` has a password."""

    def __init__(self, bin_folder: Path) -> None:
        self._bin = bin_folder
        self.folder = Path(tempfile.mkdtemp(prefix="headgate-postgres-"))
        self.port = free_port()
        self._who: dict[str, Any] = {"cwd": "/"}
        if os.getuid() == 0:
            name = next(one for one in UNPRIVILEGED if one in {entry.pw_name for entry in pwd.getpwall()})
            entry = pwd.getpwnam(name)
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
            self._who |= {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            self._owner = (entry.pw_uid, entry.pw_gid)
        else:
            self._owner = (os.getuid(), os.getgid())
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        secret = self.put("password", PASSWORD)
        # Without fsync(2) a kill of the server loses nothing: only a crash of the machine would.
        subprocess.run(
            [
                self._bin / "initdb", "-D", self.folder / "data", "-U", "gw", "-A", "scram-sha-256", f"--pwfile={secret}",
                "--no-sync", "-E", "UTF8", "--locale=C",
            ],
            check=True, stdout=subprocess.DEVNULL, **self._who,
        )  # fmt: skip

    def put(self, name: str, text: str) -> Path:
        """Write a file that only the server's user can read."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        os.chown(path, *self._owner)
        return path

    def start(self, **settings: str) -> None:
        """Start the server, and wait until it answers."""
        settings = {"fsync": "off", "listen_addresses": "127.0.0.1", "max_connections": "40", **settings}
        command = [self._bin / "postgres", "-D", self.folder / "data", "-k", self.folder, "-p", str(self.port)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **self._who)
        deadline = time.monotonic() + PATIENCE
        while subprocess.run([self._bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False).returncode:
            assert self._process.poll() is None, (self.folder / "log").read_text()[-3000:]
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def signal(self, number: int) -> None:
        """Send a signal to all processes of the server."""
        assert self._process is not None
        # Processes of connections have sessions of their own, and are children of the first.
        children = subprocess.run(
            ["pgrep", "-P", str(self._process.pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        for pid in (self._process.pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """End it as a crash would."""
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def stop(self) -> None:
        """End it and remove all of it."""
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        shutil.rmtree(self.folder)

    def query(self, text: str, database: str = "postgres") -> list[list[str]]:
        """The rows that psql prints."""
        command = [self._bin / "psql", "-X", "-q", "-A", "-t", "-h", str(self.folder), "-p", str(self.port), "-U", "gw", "-d", database]
        done = subprocess.run(
            [*command, "-v", "ON_ERROR_STOP=1", "-c", text], capture_output=True, text=True, env={**os.environ, "PGPASSWORD": PASSWORD}, check=False
        )
        assert done.returncode == 0, done.stderr
        return [line.split("|") for line in done.stdout.splitlines()]

    def database(self) -> str:
        """The name of a new, empty database."""
        self._databases += 1
        name = f"d{self._databases}"
        self.query(f"CREATE DATABASE {name}")
        return name

    def url(self, database: str, *, password: str = IN_URL, query: str = "") -> str:
        return f"postgresql://gw:{password}@127.0.0.1:{self.port}/{database}{query}"


@contextlib.contextmanager
def postgres(**settings: str) -> Iterator[Server]:
    """A server that runs; the test is skipped where none is installed."""
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL's server is not installed (package postgresql, or HEADGATE_POSTGRES=<its folder of programs>)")
    pytest.importorskip("asyncpg", reason="the extra postgres is not installed")
    server = Server(found)
    try:
        server.start(**settings)
        yield server
    finally:
        server.stop()
