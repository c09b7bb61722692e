"""What connections do at their edges: pipelining, early answers, slow readers, reuse, upgrades."""

from __future__ import annotations

import contextlib
import queue
import re
import socket
import threading
import time

import pytest
from tests.end_to_end.connections_rig import (
    GET,
    echo_path,
    fill,
    ok,
    read_request,
    receive,
    start,  # noqa: F401
)
from tests.end_to_end.running import PATIENCE

pytestmark = pytest.mark.warm


def test_fifty_pipelined_requests_are_answered_in_order(start) -> None:
    _, connect = start(echo_path)
    sock = connect()
    paths = [b"/%d" % i if i % 3 else b"/direct/%d" % i for i in range(50)]
    sock.sendall(b"".join(GET % path for path in paths))
    data = receive(sock, b"/49")
    found = re.findall(rb"\r\n\r\n(/\d+|here)", data)
    assert found == [b"here" if path.startswith(b"/direct") else path for path in paths]


def test_a_request_may_come_byte_by_byte(start) -> None:
    _, connect = start(echo_path)
    sock = connect()
    for byte in b"POST /x HTTP/1.1\r\nhost: a.test\r\ncontent-length: 3\r\n\r\nabc":
        sock.sendall(bytes([byte]))
        time.sleep(0.0005)
    assert receive(sock, b"/x").startswith(b"HTTP/1.1 200 OK")


def test_hop_by_hop_fields_stop_here_and_the_rest_passes(start) -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        seen.append(read_request(connection))
        connection.sendall(
            b"HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nConnection: x-own\r\nX-Own: 1\r\nKeep-Alive: 5\r\nX-Kept: Yes\r\n\r\nok"
        )

    _, connect = start(script)
    sock = connect()
    sock.sendall(
        b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, X-Private\r\nX-Private: 1\r\nKeep-Alive: 9\r\n"
        b"Proxy-Connection: x\r\nTE: trailers, gzip\r\nX-Kept: Yes\r\nProxy-Authorization: p\r\n\r\n"
    )
    answer = receive(sock, b"ok")
    head = seen[0]
    assert b"X-Private" not in head
    assert b"eep-Alive" not in head
    assert b"roxy-Connection" not in head
    assert b"te: trailers\r\n" in head
    assert b"x-kept: Yes" in head
    assert b"proxy-authorization: p" in head
    assert b"host: a.test\r\n" in head
    assert answer.startswith(b"HTTP/1.1 200 Fine\r\n")
    assert b"x-kept: Yes\r\n" in answer
    assert b"x-own" not in answer.lower()


def test_trailers_pass_both_ways(start) -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        data = b""
        while b"x-sum: 1\r\n\r\n" not in data:
            data += connection.recv(65536)
        seen.append(data)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n0\r\nX-Out: 2\r\n\r\n"
        )

    _, connect = start(script)
    sock = connect()
    sock.sendall(
        b"POST / HTTP/1.1\r\nhost: a.test\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-Sum: 1\r\nHost: evil\r\n\r\n"
    )
    answer = receive(sock, b"\r\nx-out: 2\r\n\r\n")
    assert b"5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n" in seen[0]
    assert b"3\r\nabc\r\n0\r\n" in answer


def test_a_client_that_asks_first_is_told_to_go_on(start) -> None:
    _, connect = start(echo_path)
    sock = connect()
    sock.sendall(b"POST /asked HTTP/1.1\r\nhost: a.test\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n")
    assert receive(sock, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    sock.sendall(b"hello")
    assert receive(sock, b"/asked").startswith(b"HTTP/1.1 200 OK")


def test_a_client_that_asks_first_and_is_refused_loses_its_connection(start) -> None:
    _, connect = start(echo_path)
    sock = connect()
    sock.sendall(b"POST /direct HTTP/1.1\r\nhost: a.test\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n")
    answer = receive(sock)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert b"connection: close" in answer


def test_hints_pass_to_the_client(start) -> None:
    def script(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + ok(b"done"))

    _, connect = start(script)
    sock = connect()
    sock.sendall(GET % b"/")
    answer = receive(sock, b"done")
    assert answer.startswith(b"HTTP/1.1 103 ")
    assert b"HTTP/1.1 200 OK" in answer


def test_an_early_answer_arrives_whole_while_the_body_is_still_sent(start) -> None:
    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 9\r\n\r\ntoo large")
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while connection.recv(65536):
                pass

    _, connect = start(script)
    sock = connect()
    sock.sendall(b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: 100000000\r\n\r\n" + b"x" * 100000)
    answer = receive(sock)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.endswith(b"too large")
    assert b"connection: close" in answer


def test_a_small_unread_body_does_not_cost_the_connection(start) -> None:
    _, connect = start(echo_path)
    sock = connect()
    sock.sendall(b"POST /direct HTTP/1.1\r\nhost: a.test\r\ncontent-length: 10\r\n\r\n12345")
    assert receive(sock, b"here").startswith(b"HTTP/1.1 200 OK")
    sock.sendall(b"67890" + GET % b"/next")
    assert receive(sock, b"/next").startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_cut_response_never_looks_complete(start, framing: str) -> None:
    passed = threading.Event()

    def script(connection: socket.socket) -> None:
        read_request(connection)
        if framing == "length":
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart")
        else:
            connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n")
        passed.wait(PATIENCE)

    _, connect = start(script)
    sock = connect()
    sock.sendall(GET % b"/")
    assert receive(sock, b"part" if framing == "length" else b"part\r\n").startswith(b"HTTP/1.1 200 OK")
    passed.set()
    try:
        rest = receive(sock)
    except ConnectionResetError:
        return
    assert not rest.endswith(b"0\r\n\r\n")


def test_a_kept_connection_that_broke_is_replaced_for_a_get_but_not_for_a_post(start) -> None:
    counts = {"GET": 0, "POST": 0}
    connections = [0]

    def script(connection: socket.socket) -> None:
        connections[0] += 1
        first = connections[0] in (1, 3)
        while request := read_request(connection):
            method = request.split(b" ")[0].decode()
            counts[method] += 1
            if first and counts["GET"] + counts["POST"] in (2, 5):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return
            connection.sendall(ok(b"fine"))

    running, _ = start(script)
    assert running.fetch(running.url) == (200, "fine")
    # The second request arrives on the kept connection, which breaks without an answer: sent again, unseen.
    assert running.fetch(running.url) == (200, "fine")
    assert counts["GET"] == 3


def test_the_most_recent_connection_is_used_again(start) -> None:
    opened = []

    def script(connection: socket.socket) -> None:
        opened.append(connection)
        echo_path(connection)

    running, _ = start(script)
    for _ in range(20):
        running.fetch(running.url)
    assert len(opened) == 1


def rss(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.parametrize("direction", ["download", "upload"])
def test_a_slow_reader_costs_no_memory(start, direction: str) -> None:
    total = 200_000_000
    accepted: queue.SimpleQueue[socket.socket] = queue.SimpleQueue()
    over = threading.Event()

    def script(connection: socket.socket) -> None:
        if direction == "upload":
            connection.recv(1000)
        else:
            read_request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % total)
        accepted.put(connection)
        over.wait(300)

    running, connect = start(script)
    try:
        running.fetch(f"{running.url}/direct")
        pid = running.worker_pids()[0]
        before = rss(pid)
        sock = connect()
        if direction == "download":
            sock.sendall(GET % b"/")
        else:
            sock.sendall(b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n" % total)
        upstream = accepted.get(timeout=60)
        sent = fill(upstream if direction == "download" else sock, running, bytes(50_000_000))
        # Socket buffers hold some megabytes; what matters is that the sender was stopped and the gateway kept nothing.
        assert sent < 40_000_000
        assert rss(pid) - before < 3_000_000
    finally:
        over.set()


def test_a_slow_reader_gets_everything_in_the_end(start) -> None:
    body = bytes(range(256)) * 64_000
    answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    for at in range(0, len(body), 50_000):
        piece = body[at : at + 50_000]
        answer += b"%x\r\n%s\r\n" % (len(piece), piece)
    answer += b"0\r\n\r\n"
    accepted: queue.SimpleQueue[socket.socket] = queue.SimpleQueue()
    full = threading.Event()

    def script(connection: socket.socket) -> None:
        read_request(connection)
        connection.setblocking(False)
        accepted.put(connection)
        assert full.wait(300)
        connection.settimeout(300)
        connection.sendall(answer[sent:])

    running, connect = start(script)
    sock = connect()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    sock.sendall(GET % b"/")
    sent = fill(accepted.get(timeout=60), running, answer)
    assert sent < len(answer), "everything between the two ends is full now"
    full.set()
    data = bytearray()
    while not data.endswith(b"\r\n0\r\n\r\n"):
        piece = sock.recv(100_000)
        assert piece, "cut"
        data += piece
        if len(data) < 2_000_000:
            time.sleep(0.001)
    found, at = bytearray(), data.index(b"\r\n\r\n") + 4
    while True:
        begin = data.index(b"\r\n", at) + 2
        length = int(data[at : begin - 2], 16)
        if not length:
            break
        found += data[begin : begin + length]
        at = begin + length + 2
    assert bytes(found) == body


def test_an_upgrade_becomes_a_tunnel_with_half_close(start) -> None:
    def script(connection: socket.socket) -> None:
        head = read_request(connection)
        assert b"connection: upgrade" in head
        assert b"upgrade: echo" in head.lower()
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nhello ")
        while data := connection.recv(65536):
            connection.sendall(data.upper())
        connection.sendall(b"bye")

    _, connect = start(script)
    sock = connect()
    sock.sendall(b"GET /ws HTTP/1.1\r\nhost: a.test\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n")
    head = receive(sock, b"hello ")
    assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert b"connection: upgrade\r\n" in head
    assert b"upgrade: echo\r\n" in head
    sock.sendall(b"raw \x00 bytes")
    assert receive(sock, b"BYTES") == b"RAW \x00 BYTES"
    sock.shutdown(socket.SHUT_WR)
    assert receive(sock) == b"bye"


def test_an_upgrade_to_something_else_is_a_502(start) -> None:
    def script(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n")
        connection.recv(1)      # until the gateway has closed it

    _, connect = start(script)
    sock = connect()
    sock.sendall(b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n")
    assert receive(sock, b"failed").startswith(b"HTTP/1.1 502 ")


@pytest.mark.parametrize("wanted", [b"h2c", b"websocket, H2C"])
def test_nobody_gets_a_tunnel_for_http_2_past_the_policies(start, wanted: bytes) -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        seen.append(read_request(connection))
        if b"upgrade" in seen[-1].lower():
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")
        connection.sendall(ok(b"plain"))

    _, connect = start(script)
    sock = connect()
    sock.sendall(
        b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: upgrade, http2-settings\r\nupgrade: %s\r\n"
        b"http2-settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n" % wanted
    )
    assert receive(sock, b"plain").startswith(b"HTTP/1.1 200 OK")
    assert b"http2-settings" not in seen[0]


@pytest.mark.parametrize(
    ("data", "start_of_answer"),
    [
        (b"CONNECT a.test:443 HTTP/1.1\r\nhost: a.test:443\r\n\r\n", b"HTTP/1.1 405 "),
        (b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.1 400 "),
        (b"HEAD /direct HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n", b"HTTP/1.1 200 OK"),
    ],
)
def test_answers_of_the_gateway_itself(start, send_raw, data: bytes, start_of_answer: bytes) -> None:
    running, _ = start(echo_path)
    answer = send_raw(running.port, data)
    assert answer.startswith(start_of_answer)
    if data.startswith(b"HEAD"):
        assert answer.endswith(b"\r\n\r\n")
        assert b"content-length: 4" in answer


@pytest.mark.http1(reason="httpx sends no RST_STREAM when a response is closed")
@pytest.mark.cold      # counts all connections of the gateway, and those of tests before it may still be there
def test_clients_that_vanish_leave_nothing_behind(start) -> None:
    def script(connection: socket.socket) -> None:
        read_request(connection)
        with contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 500_000)
            time.sleep(0.05)

    running, connect = start(script)

    def vanish(number: int) -> None:
        sock = connect()
        sock.sendall(GET % b"/" if number % 2 else b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: 99\r\n\r\nxx")
        if number % 2 and number % 3 == 0:
            sock.recv(100)
        if number % 5 == 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()

    threads = [threading.Thread(target=vanish, args=(number,)) for number in range(150)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    deadline = time.monotonic() + 40
    while True:
        import json

        worker = json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")[1])["workers"][0]
        # A connection whose client left before it was there is kept for the next one.
        if worker["connections"] == 0 and all(pool["open"] == pool["idle"] for pool in worker["pools"].values()):
            break
        assert time.monotonic() < deadline, (worker["connections"], worker["pools"])
        time.sleep(0.05)
    assert running.fetch(f"{running.url}/direct") == (200, "here")
