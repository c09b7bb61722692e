"""Attempts that are made again: of what, how often, and from which request."""

from __future__ import annotations

import asyncio

import pytest
from rig import GET, MS, Rig, Upstream, on_rig

from headgate_engine.link.pool import Pool
from headgate_engine.link.upstream import Http1Upstream
from headgate_engine.plan.retry import RetryPlan
from headgate_engine.steps.headers import RequestHeaderStep

POST = b"POST /a HTTP/1.1\r\nhost: a.test\r\ncontent-length: 5\r\n\r\nhello"


def failing(times: int, status: int = 503) -> object:
    """A script that answers `status` that many times, over all connections, and echoes from then on."""

    async def script(up: Upstream) -> None:
        while True:
            request = await up.request()
            if len(up.rig.seen) <= times:
                await up.reply(b"no", status)
            else:
                await up.reply(request.body)

    return script


@pytest.mark.parametrize("retries", [0, 1, 2, 3])
@on_rig()
async def test_a_listed_status_is_tried_again(rig: Rig, retries: int) -> None:
    rig.script = failing(2)  # type: ignore[assignment]
    rig.route.retry = RetryPlan(retries, [503]) if retries else None
    answer = await rig.ask(POST)
    assert answer.status == (200 if retries >= 2 else 503)
    assert len(rig.seen) == min(retries, 2) + 1
    assert [request.get("x-retry-attempt") for request in rig.seen] == [None, "1", "2"][: len(rig.seen)]
    assert all(request.body == b"hello" for request in rig.seen)


@on_rig()
async def test_other_statuses_are_the_answer(rig: Rig) -> None:
    rig.script = failing(1, 500)  # type: ignore[assignment]
    rig.route.retry = RetryPlan(3, [503])
    assert (await rig.ask(GET)).status == 500
    assert len(rig.seen) == 1


@on_rig()
async def test_every_attempt_starts_from_the_same_request(rig: Rig) -> None:
    rig.script = failing(2)  # type: ignore[assignment]
    rig.route.retry = RetryPlan(2, [503])
    rig.backend.request_steps = (RequestHeaderStep(added=[("x-added", "1")]),)
    assert (await rig.ask(POST)).body == b"hello"
    assert [request.all("x-added") for request in rig.seen] == [["1"]] * 3


@on_rig()
async def test_broken_connections_are_tried_again(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        if up.number < 3:
            up.reset()
            return
        await up.reply(b"third")

    rig.script = script
    rig.route.retry = RetryPlan(2)
    assert (await rig.ask(POST)).body == b"third"


@on_rig()
async def test_a_backend_that_is_not_there_is_tried_again(rig: Rig) -> None:
    real, tries = rig.connect_upstream, 0

    async def connect(factory: object) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ConnectionRefusedError(111, "Connection refused")
        await real(factory)  # type: ignore[arg-type]

    rig.pool = Pool(rig.worker, "c", b"backend:80", connect, Http1Upstream(rig.worker))
    rig.backend.pool = rig.pool
    rig.route.retry = RetryPlan(2)
    assert (await rig.ask(POST)).body == b"/a hello"
    assert tries == 3


@on_rig()
async def test_a_late_answer_is_tried_again(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        if up.number == 1:
            await up.closed()
        else:
            await up.reply(b"second")

    rig.script = script
    rig.route.backend_timeout_ns = 1000 * MS      # also the time that the second attempt has
    rig.route.retry = RetryPlan(1)
    assert (await rig.ask(POST)).body == b"second"


@on_rig()
async def test_the_deadline_of_the_request_ends_the_back_off(rig: Rig) -> None:
    rig.script = failing(9)  # type: ignore[assignment]
    rig.route.retry = RetryPlan(5, [503], backoff_ns=60_000 * MS)
    rig.route.request_timeout_ns = 80 * MS
    answer = await rig.ask(GET)
    assert (answer.status, answer.body) == (504, b"request timeout")
    assert len(rig.seen) == 1


@on_rig()
async def test_attempts_are_apart_by_the_back_off(rig: Rig) -> None:
    rig.script = failing(2)  # type: ignore[assignment]
    rig.route.retry = RetryPlan(2, [503], backoff_ns=40 * MS)
    start = asyncio.get_running_loop().time()
    assert (await rig.ask(POST)).status == 200
    assert asyncio.get_running_loop().time() - start >= 0.08


@on_rig()
async def test_a_client_that_goes_during_the_back_off_is_forgotten(rig: Rig) -> None:
    rig.script = failing(9)  # type: ignore[assignment]
    rig.route.retry = RetryPlan(5, [503], backoff_ns=60_000 * MS)
    client = await rig.client()
    await client.send(GET)
    await rig.wait(lambda: rig.seen, "the first attempt")
    client.reset()


@on_rig()
async def test_a_body_that_comes_in_pieces_is_sent_again(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        if up.number == 1:
            await up.intake.until(b"hel")
            up.reset()
            return
        request = await up.request()
        await up.reply(request.body)

    rig.script = script
    rig.route.retry = RetryPlan(1)
    client = await rig.client()
    await client.send(b"POST / HTTP/1.1\r\nhost: a.test\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n")
    await rig.wait(lambda: rig.accepted == 2, "the second attempt")
    await client.send(b"2\r\nlo\r\n0\r\n\r\n")
    assert (await client.answer()).body == b"hello"


@pytest.mark.parametrize("size", [65536, 65537])
@on_rig()
async def test_a_long_body_is_sent_once(rig: Rig, size: int) -> None:
    rig.script = failing(1)  # type: ignore[assignment]
    rig.route.retry = RetryPlan(3, [503])
    answer = await rig.ask(b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n%s" % (size, b"x" * size))
    assert answer.status == (200 if size <= 65536 else 503)


class Verdicts:
    """Stands for a compiled expression."""

    def __init__(self, *verdicts: int) -> None:
        self.verdicts = list(verdicts)

    def test(self, ctx: object) -> int:
        return self.verdicts.pop(0)


@pytest.mark.parametrize(("verdict", "seen"), [(1, 2), (0, 1), (-1, 1)])
@on_rig()
async def test_conditions_decide(rig: Rig, verdict: int, seen: int) -> None:
    rig.script = failing(1, 500)  # type: ignore[assignment]
    rig.route.retry = RetryPlan(3, [503], condition=Verdicts(verdict, 0))
    assert (await rig.ask(GET)).status == (200 if seen == 2 else 500)
    assert len(rig.seen) == seen


@pytest.mark.parametrize(("verdict", "seen"), [(1, 2), (0, 1), (-1, 1)])
@on_rig()
async def test_preconditions_decide(rig: Rig, verdict: int, seen: int) -> None:
    rig.script = failing(1)  # type: ignore[assignment]
    rig.route.retry = RetryPlan(3, [503], precondition=Verdicts(verdict))
    await rig.ask(GET)
    assert len(rig.seen) == seen


@on_rig()
async def test_trailers_go_with_every_attempt(rig: Rig) -> None:
    rig.script = failing(1)  # type: ignore[assignment]
    rig.route.retry = RetryPlan(1, [503])
    answer = await rig.ask(
        b"POST / HTTP/1.1\r\nhost: a.test\r\nte: trailers\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n"
        b"5\r\nhello\r\n0\r\nx-sum: 9\r\n\r\n"
    )
    assert answer.body == b"hello"
    assert [request.trailers for request in rig.seen] == [[("x-sum", "9")]] * 2
