"""Nothing of HTTP/2 becomes something else in HTTP/1.1 or in another connection of HTTP/2, on the way up or down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest
from tests.attack import http2_answers as answers
from tests.attack.http2_cases import CLASSES, GET, SOCKET, Case, Outcome, Passed
from tests.attack.http2_rig import Heard, Http2Recording, Part, check_fields, exchange, head
from tests.attack.recording_rig import Bystander, Recording, tell
from tests.end_to_end.running import Gateway, free_port

CONFIG = """
gateways:
  default: {port: {port}}
  second: {port: SECOND}
routes:
- gateways: [default]
  backends: [{host: "127.0.0.1:%d", policies: {http: {version: HTTP/1.1}}}]
- gateways: [second]
  backends: [{host: "127.0.0.1:%d", policies: {http: {version: HTTP/2}}}]
"""
# What the gateway adds or writes anew.
OURS = {b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"host", b"x-case", b"sec-websocket-key"}
AT_ONCE = 50


class Rig:
    """A gateway before both backends, and who else is there."""

    def __init__(self, ports: dict[str, int], older: Recording, newer: Http2Recording) -> None:
        self.older, self.newer = older, newer
        self.ports = ports
        self.others = [Bystander(port) for port in self.ports.values()]

    def arrived(self, version: str) -> dict[bytes, Passed]:
        """The requests that are complete, by case."""
        found: dict[bytes, Passed] = {}
        if version == "2":
            for one in self.newer.arrived:
                fields = tuple(pair for pair in one.fields if pair[0][:1] != b":" and pair[0] not in OURS)
                method = b"GET" if one.value(b":protocol") else one.value(b":method")
                found[one.value(b"x-case")] = Passed(
                    method, one.value(b":path"), one.value(b":authority"), fields, one.body, tuple(one.trailers), one.value(b":protocol"))
            return found
        for old in self.older.arrived:
            message = old.message
            pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in message.fields]
            fields = tuple(pair for pair in pairs if pair[0] not in OURS)
            trailers = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in message.trailers)
            known = dict(pairs)
            assert (b"upgrade" in known) is (known.get(b"connection") == b"upgrade"), pairs
            found[known.get(b"x-case", b"")] = Passed(
                message.start[0].encode(), message.start[1].encode(), known[b"host"], fields, message.body, trailers, known.get(b"upgrade", b""))
        return found


@pytest.fixture(scope="module")
def newer() -> Iterator[Http2Recording]:
    found = Http2Recording()
    yield found
    found.close()


@pytest.fixture(scope="module")
def rig(serving: Callable[..., Gateway], recording: Recording, newer: Http2Recording) -> Rig:
    second, recording.switches = free_port(), True
    running = serving((CONFIG % (recording.port, newer.port)).replace("SECOND", str(second)))
    return Rig({"1.1": running.port, "2": second}, recording, newer)


def named(parts: list[Part], case: bytes) -> list[Part]:
    """The parts, with the number of the case in the first head."""
    first = parts[0]
    return [Part([*(first.fields or []), (b"x-case", case)], b"", first.end), *parts[1:]]


def told(heard: Heard, arrived: Passed | None) -> Outcome:
    """What came of a case: `cut` where nothing complete arrived and the client knows."""
    if arrived is None:
        return heard.outcome
    return arrived if heard.outcome in ("200", "200 cut") else f"{heard.outcome}, but it arrived: {arrived}"


def expected(outcome: Outcome, parts: list[Part], version: str) -> Outcome:
    # A message of HTTP/1.1 with a length has no trailers.
    sized = any(name == b"content-length" for name, _ in parts[0].fields or [])
    return outcome._replace(trailers=()) if sized and version == "1.1" and isinstance(outcome, Passed) else outcome


def same(found: Outcome, outcome: Outcome) -> bool:
    return found in ("400", "reset") if outcome == "cut" else found == outcome


@pytest.mark.parametrize("version", ["1.1", "2"])
@pytest.mark.parametrize("kind", CLASSES)
def test_a_class_of_requests_leads_nowhere(rig: Rig, kind: str, version: str) -> None:
    wrong: dict[str, tuple[Outcome, Outcome]] = {}
    for start in range(0, len(CLASSES[kind]), AT_ONCE):
        cases: list[Case] = CLASSES[kind][start : start + AT_ONCE]
        numbers = [f"{kind}/{version}/{start + at}".replace(" ", "-").encode() for at in range(len(cases))]
        # A good request on the same connection stands behind them all: nothing of them is left in its tables.
        streams = [named(parts, number) for (_, parts, _), number in zip(cases, numbers, strict=True)]
        *heard, last = exchange(rig.ports[version], [*streams, [head(*GET, (b"x-case", b"last"), end=True)]])
        assert (last.outcome, last.body) == ("200", b"/a")
        for other in rig.others:
            other.ask()
        arrived = rig.arrived(version)
        for (name, parts, given), number, one in zip(cases, numbers, heard, strict=True):
            found, outcome = told(one, arrived.get(number)), expected(given, parts, version)
            if not same(found, outcome):
                wrong[name] = (found, outcome)
    assert not wrong, "\n".join(f"{name}: {found}, expected {outcome}" for name, (found, outcome) in wrong.items())
    assert (rig.older.faults, rig.newer.faults) == ([], []), "a backend got what can be read in two ways"
    assert not any("smuggled" in one.message.start[1] for one in rig.older.arrived)


# -- answers -----------------------------------------------------------------------------------------------------------
# What the gateway adds or writes anew in an answer, and what says where it came from.
ADDED = {b"content-length", b"transfer-encoding", b"connection", b"date", b":status", b"te", b"trailer"}


def pairs_of(fields: Iterable[tuple[str, str]]) -> tuple[tuple[bytes, bytes], ...]:
    found = ((name.encode("latin-1"), value.encode("latin-1")) for name, value in fields)
    return tuple(pair for pair in found if pair[0] not in ADDED)


def asked_over_1(port: int, method: str, case: bytes) -> answers.Outcome:
    """Ask on a connection, and behind it, on the same connection, for something good."""
    request = b"%s /a HTTP/1.1\r\nhost: a.test\r\nte: trailers\r\nx-case: %s\r\n\r\n" % (method.encode(), case)
    told = tell(port, request + b"GET /good HTTP/1.1\r\nhost: a.test\r\n\r\n", heads=int(method == "HEAD"))
    got = [one for one in told.answers if one.start[0][0] != "1"]
    if not got or told.rest:
        assert not got, told
        assert b"stolen" not in told.rest, told
        return "cut"
    first, *others = got
    assert [(one.start, one.body) for one in others] in ([], [(("200",), b"/good")]), others
    if first.start == ("502",):
        return "502"
    if not others:
        return "cut"           # the connection was ended, which is all that can be said behind a length of 0
    framing = first.value("content-length"), first.value("transfer-encoding")
    assert method == "HEAD" or first.start[0] in ("204", "304") or framing in ((str(len(first.body)), ""), ("", "chunked")), framing
    assert first.start != ("204",) or framing == ("", ""), framing
    return answers.Told(int(first.start[0]), first.body, pairs_of(first.fields), pairs_of(first.trailers))


def asked_over_2(port: int, cases: list[answers.Case], numbers: list[bytes]) -> list[answers.Outcome]:
    streams = [[head((b":method", method.encode()), *GET[1:], (b"te", b"trailers"), (b"x-case", number), end=True)]
               for (_, method, _, _), number in zip(cases, numbers, strict=True)]
    found: list[answers.Outcome] = []
    for one in exchange(port, streams):
        for fields in one.interim:
            check_fields(fields[1:])
        check_fields([pair for pair in one.fields if pair[0] != b":status"])
        check_fields(one.trailers)
        if one.outcome in ("502", "reset") or one.outcome.endswith("cut"):
            found.append("502" if one.outcome == "502" else "cut")
            continue
        trailers = pairs_of((name.decode("latin-1"), value.decode("latin-1")) for name, value in one.trailers)
        fields_ = pairs_of((name.decode("latin-1"), value.decode("latin-1")) for name, value in one.fields)
        found.append(answers.Told(int(one.value(b":status")), one.body, fields_, trailers))
    return found


@pytest.mark.parametrize("version", ["1.1", "2"])
@pytest.mark.parametrize("kind", answers.CLASSES)
def test_a_class_of_answers_leads_nowhere(rig: Rig, kind: str, version: str) -> None:
    wrong: dict[str, tuple[answers.Outcome, answers.Outcome]] = {}
    for start in range(0, len(answers.CLASSES[kind]), AT_ONCE):
        cases = answers.CLASSES[kind][start : start + AT_ONCE]
        numbers = [f"answers/{kind}/{version}/{start + at}".encode() for at in range(len(cases))]
        for number, (_, _, parts, _) in zip(numbers, cases, strict=True):
            rig.newer.scripts[number] = lambda _request, parts=parts: parts
        if version == "2":
            heard = asked_over_2(rig.ports["2"], cases, numbers)
        else:
            heard = [asked_over_1(rig.ports["2"], method, number) for (_, method, _, _), number in zip(cases, numbers, strict=True)]
        for other in rig.others:
            other.ask()
        for (name, method, _, outcome), found in zip(cases, heard, strict=True):
            if version == "1.1" and isinstance(outcome, answers.Told) and (method == "HEAD" or outcome.status == 204):
                outcome = outcome._replace(trailers=())       # HTTP/1.1 has none without content
            if found != outcome:
                wrong[name] = (found, outcome)
    assert not wrong, "\n".join(f"{name}: {found}, expected {outcome}" for name, (found, outcome) in wrong.items())
    assert rig.newer.faults == []


def test_an_answer_that_does_not_switch_opens_no_tunnel(rig: Rig) -> None:
    """To a client of HTTP/2 each 2xx to its extended CONNECT would (RFC 8441 section 5)."""
    rig.older.switches = False
    try:
        refused, good = exchange(rig.ports["1.1"], [[head(*SOCKET, (b"x-case", b"no-switch"))], [head(*GET, (b"x-case", b"good"), end=True)]])
    finally:
        rig.older.switches = True
    assert (refused.outcome, good.outcome) == ("502", "200")
    assert b"/a" not in refused.body
