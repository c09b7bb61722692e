"""Shared test code lies in tests/oracles; this makes it importable."""

from __future__ import annotations

import functools
import os
import socketserver
import ssl
import sys
from pathlib import Path
from typing import Any

import certifi
import pytest
from hypothesis import settings
from tests import collecting, costs, forked_rig, forked_run

sys.path.insert(0, str(Path(__file__).parent / "oracles"))
# Drivers (engine/headgate_drivers) are not installed. At the end: an engine that is built elsewhere goes first.
sys.path.append(str(Path(__file__).parents[1] / "engine"))

# CI runs the same examples every time, so that a change is judged by its own merit; every other run explores.
# No deadlines: how long an example takes is the machine's business.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
settings.register_profile("ci", deadline=None, derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", metavar="FILE", help="write the processor time of each test file")
    forked_run.pytest_addoption(parser)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--costs"):
        config.pluginmanager.register(costs.Costs(), "costs")
    forked_run.pytest_configure(config)
    many = config.getoption("--processes") or getattr(config.option, "numprocesses", None)
    if many and not hasattr(config, "workerinput"):
        collecting.rewrite_all(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Any:
    with collecting.without_collector():
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    costs.longest_first(items, costs.read())


def pytest_collection_finish() -> None:
    forked_rig.collected()


def read_public_authorities_once() -> None:
    """Every httpx client reads the public certificates (certifi's, or those that SSL_CERT_FILE names), which takes 20 ms; no test
    talks to a public server.
    """
    made = ssl.create_default_context
    files = {certifi.where(), os.environ.get("SSL_CERT_FILE")}
    public = functools.cache(lambda file: made(cafile=file))

    def create(*purpose: Any, **options: Any) -> ssl.SSLContext:
        if not purpose and options.keys() == {"cafile"} and options["cafile"] in files:
            return public(options["cafile"])
        return made(*purpose, **options)

    ssl.create_default_context = create


read_public_authorities_once()
# Programs of Node are started by the dozen, and keep compiled code here.
os.environ.setdefault("NODE_COMPILE_CACHE", str(Path(__file__).parents[1] / "build" / "node-compiled"))
# A server of a test that is kept from accepting has room for those who come: with the default of five, the kernel lets more
# than those wait for a second or three until it looks again.
socketserver.TCPServer.request_queue_size = 256
