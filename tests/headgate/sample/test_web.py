"""The samples' HTTP server over a socket."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from headgate.sample.web import SampleRequest, SampleResponse, SampleServer


def talk(handler: object, data: bytes) -> bytes:
    async def run() -> bytes:
        server = await SampleServer(handler).start("127.0.0.1", 0)  # type: ignore[arg-type]
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        writer.write(data)
        async with asyncio.timeout(60):
            found = await reader.read()
        writer.close()
        server.close()
        return found

    return asyncio.run(run())


GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"


@pytest.mark.parametrize("status", [204, 304])
def test_answers_without_a_body_have_no_length(status: int) -> None:
    async def handle(request: SampleRequest) -> SampleResponse:
        return SampleResponse(status=status if request.path == "/" else 200, body=b"body")

    first, _, second = talk(handle, GET + LAST).partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 %d" % status)
    assert b"content-length" not in first.lower()
    assert second.startswith(b"HTTP/1.1 200")


def test_a_handler_that_raises_is_a_500_and_the_connection_goes_on() -> None:
    async def handle(request: SampleRequest) -> SampleResponse:
        if request.path == "/":
            raise LookupError("lost")
        return SampleResponse(body=b"fine")

    found = talk(handle, GET + LAST)
    assert found.startswith(b"HTTP/1.1 500")
    assert found.endswith(b"fine")


CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c",
    "from headgate.sample.web import end_with_parent; import time; end_with_parent(); print('on', flush=True); time.sleep(60)"],
    stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
"""


def test_a_sample_ends_with_its_parent() -> None:
    parent = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=20, check=True)
    pid = int(parent.stdout)
    for _ in range(100):
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return
        except (ProcessLookupError, FileNotFoundError):
            return
        subprocess.run(["sleep", "0.05"], check=True)
    raise AssertionError("it is still there")
