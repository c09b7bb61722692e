"""Backends written in Python, as the exchange runs them."""

from __future__ import annotations

import asyncio
import gc

import pytest
from rig import GET, MS, Rig, on_rig

from headgate_engine.link.handler import HandlerBackend, HandlerCall, encode_headers
from headgate_engine.plan.plans import BackendPlan, RoutePlan
from headgate_engine.route.table import RouteRule, RouteTable

HEAD = b"HEAD / HTTP/1.1\r\nhost: a.test\r\n\r\n"


def serve(rig: Rig, handle: object) -> None:
    rig.backend = BackendPlan("h", "mcp", HandlerBackend(rig.worker, "h", handle))  # type: ignore[arg-type]
    rig.route = RoutePlan("r", "default", "", (rig.backend,), (1,))
    rig.listener.routes = RouteTable([RouteRule(target=rig.route)])


@on_rig()
async def test_a_handler_sees_the_request_and_answers(rig: Rig) -> None:
    async def handle(call: HandlerCall) -> None:
        seen = (call.method, call.target, call.path, call.authority, call.body, call.secure, call.headers.get("X-A"))
        assert seen == ("POST", "/p?q=1", "/p", "a.test", b"hello", False, "1")
        call.reply(201, [("X-B", "2")], b"made")

    serve(rig, handle)
    answer = await rig.ask(b"POST /p?q=1 HTTP/1.1\r\nhost: a.test\r\nx-a: 1\r\ncontent-length: 5\r\n\r\nhello")
    assert (answer.status, answer.get("x-b"), answer.body) == (201, "2", b"made")


@on_rig()
async def test_a_stream_arrives_in_its_pieces(rig: Rig) -> None:
    async def handle(call: HandlerCall) -> None:
        stream = call.stream(200, [("content-type", "text/event-stream")])
        for piece in (b"one ", b"", b"two"):
            await stream.send(piece)
        await stream.end()

    serve(rig, handle)
    client = await rig.client()
    for _ in range(2):
        assert (await client.ask(GET)).body == b"one two"


@on_rig()
async def test_a_call_is_freed_at_its_end(rig: Rig) -> None:
    """Thousands of rings a second would be the garbage collector's to find, in pauses of many milliseconds."""

    class RequestTelemetry:
        def __init__(self, call: HandlerCall) -> None:
            self.call = call
            self.told: list[int] = []

        def ended(self, status: int, last: bytes) -> None:
            self.told.append(status)

    notes: list[list[int]] = []

    async def handle(call: HandlerCall) -> None:
        call.telemetry = RequestTelemetry(call)
        notes.append(call.telemetry.told)
        call.reply(200, (), b"done")

    def alive() -> int:
        return sum(type(one) in (HandlerCall, RequestTelemetry) for one in gc.get_objects())

    serve(rig, handle)
    client = await rig.client()
    gc.collect()
    gc.disable()
    try:
        before = alive()
        for _ in range(5):
            assert (await client.ask(GET)).body == b"done"
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert alive() == before
    finally:
        gc.enable()
    assert notes == [[200]] * 5


@on_rig()
async def test_head_of_a_stream_has_no_body(rig: Rig) -> None:
    async def handle(call: HandlerCall) -> None:
        stream = call.stream(200)
        await stream.send(b"data")
        await stream.end()

    serve(rig, handle)
    client = await rig.client()
    for _ in range(2):
        assert (await client.ask(HEAD)).body == b""


@on_rig(faults=1)
async def test_a_second_answer_is_an_error_that_the_client_does_not_see(rig: Rig) -> None:
    async def handle(call: HandlerCall) -> None:
        call.reply(200, (), b"first")
        call.reply(200, (), b"second")

    serve(rig, handle)
    client = await rig.client()
    assert (await client.ask(GET)).body == b"first"


@on_rig()
async def test_a_stream_that_is_left_open_breaks_the_connection(rig: Rig) -> None:
    async def handle(call: HandlerCall) -> None:
        stream = call.stream(200)
        await stream.send(b"data")

    serve(rig, handle)
    client = await rig.client()
    await client.send(GET)
    data = await client.ended()
    assert data.endswith(b"4\r\ndata\r\n")      # no last chunk: the client can tell


@on_rig()
async def test_a_handler_without_an_answer_is_a_500(rig: Rig) -> None:
    async def handle(call: HandlerCall) -> None:
        return None

    serve(rig, handle)
    assert (await rig.ask(GET)).status == 500


@on_rig(faults=1)
async def test_a_handler_that_raises_is_a_500(rig: Rig) -> None:
    async def handle(call: HandlerCall) -> None:
        raise LookupError("lost")

    serve(rig, handle)
    assert (await rig.ask(GET)).status == 500


@pytest.mark.parametrize(("name", "value"), [("x a", "1"), ("", "1"), ("x", "1\r\ny: 2"), ("x", "a\0")])
def test_fields_that_cannot_be_sent(name: str, value: str) -> None:
    with pytest.raises(ValueError, match="header"):
        encode_headers([(name, value)])


@pytest.mark.parametrize("deadline", ["request", "attempt"])
@on_rig()
async def test_a_handler_has_a_deadline_for_its_head(rig: Rig, deadline: str) -> None:
    cancelled: list[bool] = []

    async def handle(call: HandlerCall) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    serve(rig, handle)
    if deadline == "request":
        rig.route.request_timeout_ns = 50 * MS
    else:
        rig.route.backend_timeout_ns = 50 * MS
    answer = await rig.ask(GET)
    body = b"request timeout" if deadline == "request" else b"upstream call timeout"
    assert (answer.status, answer.body) == (504, body)
    await rig.wait(lambda: cancelled, "the cancellation")


@on_rig()
async def test_a_stream_may_take_longer_than_the_deadline_of_its_head(rig: Rig) -> None:
    async def handle(call: HandlerCall) -> None:
        stream = call.stream(200)
        await asyncio.sleep(1.2)
        await stream.send(b"late")
        await stream.end()

    serve(rig, handle)
    rig.route.request_timeout_ns = rig.route.backend_timeout_ns = 1000 * MS
    assert (await rig.ask(GET)).body == b"late"


@on_rig()
async def test_a_handler_is_cancelled_with_its_client(rig: Rig) -> None:
    begun, cancelled = asyncio.Event(), list[bool]()

    async def handle(call: HandlerCall) -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(call.gone)
            raise

    serve(rig, handle)
    client = await rig.client()
    await client.send(GET)
    await begun.wait()
    client.reset()
    await rig.wait(lambda: cancelled, "the cancellation")
    assert cancelled == [True]


class RequestTelemetry:
    """What a handler is told of the end."""

    def __init__(self) -> None:
        self.ends: list[tuple[int, bytes]] = []
        self.labels: list[str] = []
        self.call: HandlerCall | None = None

    def ended(self, status: int, answer: bytes) -> None:
        assert self.call is not None
        self.ends.append((status, answer))
        self.labels.append(self.call.route_labels())


@on_rig()
async def test_a_note_is_told_how_it_ended(rig: Rig) -> None:
    notes: list[RequestTelemetry] = []
    hold = asyncio.Event()

    async def handle(call: HandlerCall) -> None:
        telemetry = call.telemetry = RequestTelemetry()
        telemetry.call = call
        notes.append(telemetry)
        assert call.place is not None
        match call.path:
            case "/reply":
                call.reply(404, [], b"none")
            case "/stream":
                stream = call.stream(200)
                await stream.send(b"first")
                await stream.send(b"last")
                await stream.end()
            case "/fail":
                pass  # no answer at all
            case _:
                hold.set()
                await asyncio.sleep(30)

    serve(rig, handle)
    for path in ("reply", "stream", "fail"):
        await rig.ask(f"GET /{path} HTTP/1.1\r\nhost: a.test\r\n\r\n".encode())
    client = await rig.client()
    await client.send(b"GET /hold HTTP/1.1\r\nhost: a.test\r\n\r\n")
    await hold.wait()
    client.close()
    async with asyncio.timeout(40):
        while not notes[-1].ends:  # noqa: ASYNC110 (nothing else tells)
            await asyncio.sleep(0.01)
    assert [note.ends for note in notes] == [[(404, b"none")], [(200, b"last")], [(500, b"")], [(0, b"")]]
    assert all('route="default/r"' in label for note in notes for label in note.labels)
