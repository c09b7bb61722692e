"""Further calls to the provider of a request, for what it does not take at once: lists of texts to embed.

The first part of the request goes the way of every request, with its credentials, retries and failover. When it has
been answered, the other parts go to the same place, some at a time, signed one by one. If one of them fails, the
request fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from headgate_engine.context.request import RequestContext, derived_context
from headgate_engine.link.client import CallError, HttpClient
from headgate_engine.llm.answer_body import TOO_LARGE
from headgate_engine.llm.target import LlmTarget
from headgate_engine.llm.translate.writers import dump_json
from headgate_engine.plan.step import settle
from headgate_engine.wire.coding import CodingError, DecodedTooLong, decode, name_of

# Calls of one request at a time.
AT_ONCE: Final = 8
NS_PER_S: Final = 1_000_000_000
# Fields that belong to one message, or to its connection.
OWN_FIELDS: Final = frozenset(("host", "content-length", "transfer-encoding", "connection", "expect", "te", "trailer"))


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """What a further call came to. A `status` of 0 means that there is no answer, and `body` says why."""

    status: int
    body: bytes
    headers: dict[str, str]


class FurtherCalls:
    """Makes further calls like the one that a request in progress has made: same target, same fields, other bodies.

    `limit` bounds the bytes of all answers.
    """

    def __init__(self, ctx: RequestContext, target: LlmTarget, limit: int) -> None:
        head = ctx.request
        self._source = ctx
        self._target = head.target
        self._authority = head.authority
        self._headers = [(name, value) for name, value in head.items() if name.lower() not in OWN_FIELDS]
        self._client = HttpClient(target.plan.pool, head.authority)
        self._steps = target.plan.final_steps
        self._timeout_s = target.plan.request_timeout_ns / NS_PER_S or None
        self._left = limit

    async def answers(self, bodies: tuple[Any, ...]) -> list[PartAnswer] | PartAnswer:
        """Return the answers in the order of the bodies, or the first one that failed."""
        found: dict[int, PartAnswer] = {}
        failed: list[PartAnswer] = []
        waiting = iter(enumerate(bodies))

        async def work(own: Iterator[tuple[int, Any]]) -> None:
            for position, body in own:
                if failed:
                    return
                answer = await self._answer(dump_json(body))
                if 200 <= answer.status < 300:
                    found[position] = answer
                else:
                    failed.append(answer)
                    for task in tasks:
                        if task is not asyncio.current_task():
                            task.cancel()

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work(waiting)) for _ in range(min(AT_ONCE, len(bodies)))]
        return failed[0] if failed else [found[position] for position in range(len(bodies))]

    async def _answer(self, body: bytes) -> PartAnswer:
        try:
            return await asyncio.wait_for(self._call(body), self._timeout_s)
        except DecodedTooLong:
            return PartAnswer(0, TOO_LARGE.encode(), {})
        except (CallError, CodingError, TimeoutError, ValueError) as error:
            return PartAnswer(0, (str(error) or type(error).__name__).encode(), {})

    async def _call(self, body: bytes) -> PartAnswer:
        own = derived_context(self._source, "POST", self._target, self._authority, self._headers, body)
        for step in self._steps:
            refused = await settle(step, own)
            if refused is not None:
                return PartAnswer(refused.status, refused.body, {})
        answer = await self._client.request("POST", self._target, own.request.items(), body, self._authority)
        try:
            told = await answer.read(max(self._left, 0))
        except ValueError:
            return PartAnswer(0, TOO_LARGE.encode(), {})
        finally:
            await answer.aclose()
        coding = name_of(answer.header("content-encoding"))
        if coding is not None:
            told = decode(coding, told, max(self._left, 0))
        self._left -= len(told)
        return PartAnswer(answer.status, told, {name.lower(): value for name, value in answer.headers})
