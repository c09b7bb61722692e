"""The time in which a service has to answer."""

from __future__ import annotations

import asyncio

from rig import GET, Rig, on_rig

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.answer_deadline import AnswerDeadline
from headgate_engine.plan.step import AsyncStep


@on_rig()
async def test_it_fires_once_it_is_over(rig: Rig) -> None:
    fired: list[str] = []

    def begin(ctx: RequestContext) -> asyncio.Future[Reply]:
        over: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def late() -> None:
            fired.append("late")
            over.set_result(Reply(504, b"late"))

        closed = AnswerDeadline(ctx, 0.01, lambda: fired.append("closed"))
        closed.set(True)
        closed.close()
        closed.set(True)
        stopped = AnswerDeadline(ctx, 0.01, lambda: fired.append("stopped"))
        stopped.set(True)
        stopped.set(False)
        moved = AnswerDeadline(ctx, 0.05, late)
        moved.set(True)
        moved.set(True)
        return over

    rig.route.request_steps = (AsyncStep("begin", begin),)
    assert (await rig.ask(GET)).status == 504
    assert fired == ["late"]
