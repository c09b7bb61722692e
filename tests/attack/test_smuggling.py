"""No bytes make two requests at the backend of what the gateway took for one, and no answer goes to another client."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.attack.exhaustion_rig import connected
from tests.attack.recording_rig import Bystander, Recording, Told, tell
from tests.attack.smuggling_cases import CLASSES, MARK, Outcome
from tests.end_to_end.running import Gateway

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- hostnames: [blocked.test]
  policies: {directResponse: {status: 200, body: blocked}}
- matches: [{path: {pathPrefix: /direct}}]
  policies: {directResponse: {status: 200, body: direct}}
- matches: [{path: {pathPrefix: /a}}, {path: {pathPrefix: /x}}, {path: {exact: /smuggled}}, {path: {pathPrefix: /bystander}}]
  backends: [{host: "127.0.0.1:%d"}]
"""


@pytest.fixture(scope="module")
def running(serving: Callable[..., Gateway], recording: Recording) -> Gateway:
    return serving(CONFIG % recording.port)


@pytest.fixture(scope="module")
def bystander(running: Gateway) -> Iterator[Bystander]:
    found = Bystander(running.port)
    yield found
    found.close()


def heads_of(data: bytes) -> int:
    return int(data.startswith(b"HEAD "))


def outcome_of(told: Told, arrived: list[Any]) -> Outcome:
    """What a client was told, in the words of the cases; the answers of the backend are for requests that arrived, in their order."""
    serials = [answer.value("x-serial") for answer in told.answers if answer.value("x-serial")]
    known = {str(one.serial): one.message.start[1] for one in arrived}
    assert [one for one in serials if one != "0"] == list(known), "answers and requests are not the same, or in another order"
    found: list[str | int] = []
    for answer in told.answers:
        serial = answer.value("x-serial")
        if answer.start[0][0] == "1":
            continue
        if serial == "0":
            assert answer.body == b"early", answer
            found.append("/x/-early")
        elif serial:
            assert answer.body.decode() in ("", known[serial])
            found.append(known[serial])
        else:
            found.append(int(answer.start[0]))
    return tuple(found)


def attack(running: Gateway, recording: Recording, bystander: Bystander, data: bytes, pieces: int = 0) -> Outcome:
    """Send it, check what no bytes may do, and return what came of it."""
    before = recording.arrived[-1].serial if recording.arrived else 0
    told = tell(running.port, data, pieces, heads=heads_of(data))
    arrived = recording.since(before)
    assert recording.faults == [], "the backend got what can be read in two ways"
    assert told.rest == b"", f"an answer that is none: {told.rest!r}"
    found = outcome_of(told, arrived)
    bystander.ask()
    for part in recording.unfinished:
        assert b"\r\n\r\n" not in part or b"-early" in part or b"chunked" in part or b"content-length" in part.lower(), part
    recording.unfinished.clear()
    return found


@pytest.mark.parametrize("kind", CLASSES)
def test_a_class_of_smuggling_leads_nowhere(
    running: Gateway, recording: Recording, bystander: Bystander, kind: str, long: bool
) -> None:
    wrong = {}
    for name, data, outcome in CLASSES[kind]:
        for pieces in (0, 1, 3) if long and len(data) < 5000 else (0,):
            found = attack(running, recording, bystander, data, pieces)
            if found != outcome:
                wrong[name, pieces] = (found, outcome)
    assert not wrong, "\n".join(f"{name}: {found}, expected {outcome}" for name, (found, outcome) in wrong.items())


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# Behind the preface there are frames (RFC 9113 section 3.4): no bytes of HTTP/1.1 are read there, and no preface is read behind them.
PREFACED = {
    "a request": PREFACE + MARK, "two": PREFACE + MARK * 2, "a preface": PREFACE * 2, "a chunk": PREFACE + b"0\r\n\r\n" + MARK, "cut": PREFACE[:-4] + MARK,
    "behind a request that closes": b"GET /direct HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n" + PREFACE + MARK, "in lower case": PREFACE.lower() + MARK,
    "behind an answer": b"GET /direct HTTP/1.1\r\nhost: a\r\n\r\n" + PREFACE + MARK, "a space before": b" " + PREFACE + MARK,
}  # fmt: skip


def test_nothing_is_smuggled_behind_the_preface_of_http_2(running: Gateway, recording: Recording, bystander: Bystander) -> None:
    for name, data in PREFACED.items():
        bystander.ask()
        before, served = len(recording.arrived), recording.arrived[-1].serial
        with connected(running.port) as client:
            with contextlib.suppress(OSError):
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                while client.recv(65536):
                    pass           # to its end: the connection is closed
        assert len(recording.arrived) == before, (name, recording.since(served))
    bystander.ask()
    assert recording.faults == []


# Parts of heads and bodies; any of them may follow any other.
FIELDS = (
    b"Content-Length: 2", b"Content-Length: 0", b"Content-Length: %d" % len(MARK), b"Content-Length: +2", b"Content-Length:2 ", b"Content-Length: 2,2",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding : chunked", b"transfer-encoding:\tchunked", b"Transfer-Encoding: x",
    b"Transfer_Encoding: chunked", b"Connection: close", b"Connection: keep-alive", b"Connection: content-length", b"Connection: transfer-encoding",
    b"Expect: 100-continue", b"X: y", b" folded", b"X: a\nY: b", b"X: a\rY: b", b"Upgrade: h2c", b"Trailer: x", b"Host: b.test", b"TE: trailers", b": x", b"",
)  # fmt: skip
BODIES = (
    b"", b"ok", b"0\r\n\r\n", b"2\r\nok\r\n0\r\n\r\n", b"2;a=b\r\nok\r\n0\r\nX: y\r\n\r\n", b"2\nok\n0\n\n", b"0\r\nContent-Length: 9\r\n\r\n", b"ffffffffffffffff\r\n",
    MARK, b"%x\r\n%s\r\n0\r\n\r\n" % (len(MARK), MARK), b"\r\n", b"G",
)  # fmt: skip
START = (
    b"POST /a HTTP/1.1", b"GET /a HTTP/1.1", b"POST /a HTTP/1.0", b"POST http://a.test/a HTTP/1.1", b"POST /direct HTTP/1.1", b"POST /none HTTP/1.1",
    b"CONNECT a.test:80 HTTP/1.1", b"OPTIONS * HTTP/1.1", b"GET  /a HTTP/1.1", b"DELETE /a HTTP/1.1", b"GET /x/-extra HTTP/1.1",
)


def any_request(chance: random.Random) -> bytes:
    fields = [b"Host: a.test", *chance.choices(FIELDS, k=chance.randrange(5))]
    chance.shuffle(fields)
    head = b"".join(field + b"\r\n" for field in (chance.choice(START), *fields))
    return head + b"\r\n" + b"".join(chance.choices(BODIES, k=chance.randrange(3)))


def test_no_mixture_leads_anywhere(running: Gateway, recording: Recording, bystander: Bystander, long: bool) -> None:
    """RFC 9112 section 11.2; T-Reqs (CCS 2021) found most of its cases so: what stands in the classes above, thrown together."""
    chance = random.Random(14)
    counted, before = 0, len(recording.arrived)
    for _ in range(20_000 if long else 1_000):
        data = b"".join(any_request(chance) for _ in range(chance.randrange(1, 4)))
        found = attack(running, recording, bystander, data, chance.choice((0, 0, 0, 7)))
        counted += sum(isinstance(one, str) for one in found)
    assert counted > 50, "most of it was refused, and nothing shown"
    assert len(recording.arrived) - before == counted + (20_000 if long else 1_000), "the bystander's, and those that were answered"


def test_what_the_gateway_counted_is_what_arrived(running: Gateway, recording: Recording, bystander: Bystander) -> None:
    bystander.ask()
    _, page = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")
    lines = [line for line in page.splitlines() if line.startswith("gw_requests_total{") and 'status="200"' in line]
    forwarded = [line for line in lines if 'backend="unknown"' not in line]
    assert sum(float(line.rpartition(" ")[2]) for line in forwarded) == len(recording.arrived) + recording.early > 0, forwarded
    assert running.metric("gw_worker_restarts_total") == 0
