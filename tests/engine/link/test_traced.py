"""Requests that somebody watches: what the recorder hears, in which order, and that it is let go of."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from rig import GET, Rig, Upstream, on_rig

from headgate_engine.context.request import RequestContext
from headgate_engine.plan.retry import RetryPlan
from headgate_engine.plan.step import PythonStep


class Recorder:
    """Notes the names of what it hears, with the first argument where that is a text or a number."""

    body_limit = 64

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def clock(self) -> int:
        return 1

    def scoped(self, name: str) -> str:
        return name

    def __getattr__(self, name: str) -> Any:
        def note(*arguments: Any) -> None:
            first = arguments[0] if arguments and isinstance(arguments[0], str | int) else None
            self.heard.append(name if first is None else (name, first))

        return note


class Watchers:
    """Watches requests of paths that begin with /traced."""

    def __init__(self) -> None:
        self.recorders: list[Recorder] = []

    def take(self, ctx: RequestContext) -> Recorder | None:
        if not ctx.path.startswith("/traced"):
            return None
        self.recorders.append(Recorder())
        return self.recorders[-1]


def ask(path: bytes) -> bytes:
    return GET.replace(b"GET /", b"GET " + path)


PLAIN = [
    "started", "listener_chosen", ("request_snapshot", "gateway policies"), "route_chosen", "step_starts", "step_ended",
    ("request_snapshot", "route policies"), "backend_chosen", ("request_snapshot", "final request"),
    ("call_started", "backend:80"),
]  # fmt: skip
CALLED = [("body_snapshot", "final request"), ("call_ended", 200), ("response_snapshot", "raw response")]
ANSWERED = [
    ("response_snapshot", "backend response ready"), ("response_snapshot", "final response"), ("body_snapshot", "response"),
    ("finished", 200), "over",
]  # fmt: skip


@on_rig()
async def test_a_recorder_hears_the_way_of_a_request(rig: Rig) -> None:
    watchers = rig.worker.watchers = Watchers()
    rig.route.request_steps = (PythonStep("step", lambda _: None),)
    assert (await rig.ask(ask(b"/traced"))).status == 200
    assert watchers.recorders[0].heard == PLAIN + CALLED + ANSWERED


@on_rig()
async def test_a_recorder_hears_of_each_attempt(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        await up.reply(*((b"no", 503) if len(rig.seen) == 1 else (b"yes", 200)))

    rig.script = script
    rig.route.retry = RetryPlan(1, [503])
    watchers = rig.worker.watchers = Watchers()
    assert (await rig.ask(ask(b"/traced"))).body == b"yes"
    heard = watchers.recorders[0].heard
    assert [one for one in heard if one[0] in ("call_started", "call_ended", "note", "finished")] == [
        ("call_started", "backend:80"), ("call_ended", 503), ("note", "retry"), ("call_started", "backend:80"),
        ("call_ended", 200), ("finished", 200),
    ]  # fmt: skip


@pytest.mark.parametrize("leaves", [False, True])
@on_rig()
async def test_nothing_of_a_watched_request_is_left(rig: Rig, leaves: bool) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        if leaves:
            await up.closed()
        await up.reply(b"ok")

    rig.script = script
    watchers = rig.worker.watchers = Watchers()
    client = await rig.client()
    gc.collect()
    gc.disable()
    try:
        await client.send(ask(b"/traced"))
        if leaves:
            await rig.wait(lambda: rig.seen, "the request")
            client.reset()
        else:
            await client.answer()
        await rig.wait(lambda: "over" in watchers.recorders[0].heard, "the end of the trace")
        watched = weakref.ref(watchers.recorders.pop())
        assert watched() is None
    finally:
        gc.enable()


@on_rig()
async def test_a_request_that_nobody_wants_to_watch_goes_its_way(rig: Rig) -> None:
    watchers = rig.worker.watchers = Watchers()
    assert (await rig.ask(GET)).status == 200
    assert watchers.recorders == []
