"""/debug/trace through reloads, drains and deaths, and of requests that are not plain."""

from __future__ import annotations

import base64
import os
import signal
import socket
import threading

import pytest
from tests.end_to_end.asking import ask
from tests.end_to_end.processes import kill
from tests.end_to_end.trace_rig import GATEWAY, PLAIN
from tests.end_to_end.tracing import Watch, one, rows, wait_for

pytestmark = pytest.mark.warm


@pytest.fixture
def plain(gateway, echo):
    return gateway(GATEWAY % echo, workers=2)


# -- life and death of the processes ----------------------------------------------------------------------------------
def test_watchers_wait_through_a_reload_and_see_the_new_configuration(plain, echo) -> None:
    watch = Watch(plain)
    plain.write((GATEWAY % echo).replace("name: web", "name: other"))
    plain.wait_log("configuration reloaded")
    ask(plain)
    assert one(watch.wait(), "routeSelection")["selectedRoute"] == "default/other"


def test_a_drain_ends_the_traces_of_those_that_wait(plain) -> None:
    watch = Watch(plain)
    assert plain.stop() == 0
    assert watch.wait() == []


def test_a_trace_under_way_ends_with_its_request_during_a_drain(gateway, upstream) -> None:
    begun, go = threading.Event(), threading.Event()

    def script(connection) -> None:
        connection.recv(65536)
        begun.set()
        go.wait(30)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    running = gateway(GATEWAY % upstream(script), settings="connectionTerminationDeadline: 60s")
    watch, idle = Watch(running), Watch(running)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(ask(running)))
    thread.start()
    assert begun.wait(30)
    os.kill(running.process.pid, signal.SIGTERM)
    assert idle.wait() == []
    go.set()
    thread.join()
    assert answers[0].status == 200
    assert rows(watch.wait()) == PLAIN
    assert running.process.wait(30) == 0


def test_watchers_outlive_a_worker(plain) -> None:
    watch = Watch(plain)
    for pid in plain.worker_pids():
        kill(pid)
    wait_for(lambda: plain.log().count("worker restarted") == 2)
    ask(plain)
    assert rows(watch.wait()) == PLAIN


def test_the_trace_ends_when_its_worker_dies(gateway, upstream) -> None:
    begun = threading.Event()

    def script(connection) -> None:
        connection.recv(65536)
        begun.set()
        connection.recv(65536)

    running = gateway(GATEWAY % upstream(script))
    watch = Watch(running)
    client = socket.create_connection(("127.0.0.1", running.port))
    client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert begun.wait(30)
    kill(running.worker_pids()[0])
    assert rows(watch.wait()) == PLAIN[: PLAIN.index("backendCallResult")]
    client.close()
    wait_for(lambda: "worker restarted" in running.log())


def test_a_client_that_leaves_is_told(gateway, upstream) -> None:
    begun = threading.Event()

    def script(connection) -> None:
        connection.recv(65536)
        begun.set()
        connection.recv(65536)

    running = gateway(GATEWAY % upstream(script))
    watch = Watch(running)
    client = socket.create_connection(("127.0.0.1", running.port))
    client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert begun.wait(30)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    end = watch.wait()[-1]
    assert end["message"]["status"] is None
    assert end["message"]["error"] == "client closed the connection"
    assert end["severity"] == "error"


# -- kinds of requests ------------------------------------------------------------------------------------------------
def test_an_upgrade_is_traced_to_its_end_and_works(gateway, upstream) -> None:
    def script(connection) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n")
        while data := connection.recv(65536):
            connection.sendall(data.upper())

    running = gateway(GATEWAY % upstream(script))
    watch = Watch(running)
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 101 ")
        client.sendall(b"hello")
        assert client.recv(65536) == b"HELLO"
    events = watch.wait()
    assert events[-1]["message"]["status"] == 101
    assert "requestFinished" in rows(events)


def test_a_chunked_answer_reaches_the_client_piece_by_piece(gateway, upstream) -> None:
    go = threading.Event()

    def script(connection) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        go.wait(30)
        connection.sendall(b"4\r\nlast\r\n0\r\n\r\n")

    running = gateway(GATEWAY % upstream(script))
    watch = Watch(running)
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        seen = b""
        while b"first" not in seen:
            seen += client.recv(65536)
        wait_for(lambda: "responseSnapshot final response" in rows(watch.events))
        assert "requestFinished" not in rows(watch.events)
        go.set()
        while piece := client.recv(65536):
            seen += piece
    assert seen.endswith(b"4\r\nlast\r\n0\r\n\r\n")
    assert base64.b64decode(one(watch.wait(), "bodySnapshot response")["body"]) == b"firstlast"


def test_held_bodies_and_head_requests_are_traced(policies) -> None:
    running = policies("buffer: {request: {maxBytes: 10000}, response: {maxBytes: 100000}}")
    watch = Watch(running)
    assert ask(running, "POST", body="held").seen["body"] == "held"
    events = watch.wait()
    assert one(events, "policy buffer")["result"] == {"type": "apply", "details": {"bytes": 4}}
    assert rows(events)[-3:] == ["responseSnapshot final response", "bodySnapshot response", "requestFinished"]


def test_an_unknown_client_that_expects_100_is_traced(plain) -> None:
    watch = Watch(plain)
    with socket.create_connection(("127.0.0.1", plain.port), timeout=30) as client:
        client.sendall(b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\nconnection: close\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 100 ")
        client.sendall(b"body")
        seen = b""
        while piece := client.recv(65536):
            seen += piece
    assert b"HTTP/1.1 200 " in seen
    assert base64.b64decode(one(watch.wait(), "bodySnapshot final request")["body"]) == b"body"
