"""One informer, with a client whose answers are written down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from manifests import Json, service

from headgate.cluster.calls import ApiError
from headgate.cluster.snapshot import SERVICE
from headgate.cluster.watch.informer import Informer
from headgate.cluster.watch.kinds import KINDS
from headgate.cluster.watch.pauses import Pauses
from headgate.cluster.watch.store import Store


class Scripted:
    """Answers of one call after the other; an error is raised. The last call never ends."""

    def __init__(self, *answers: list[Json] | ApiError) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.done = asyncio.Event()

    async def list_pages(self, path: str, query: Mapping[str, str] | None = None, metadata: bool = False) -> AsyncIterator[Json]:
        async for one in self._next(f"list {path} {dict(query or {})}"):
            yield one

    async def watch(self, path: str, version: str, query: Mapping[str, str] | None = None, metadata: bool = False) -> AsyncIterator[Json]:
        async for one in self._next(f"watch {version}"):
            yield one

    async def _next(self, what: str) -> AsyncIterator[Json]:
        self.asked.append(what)
        if not self.answers:
            self.done.set()
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        for one in answer:
            yield one


def page(version: str, *items: Json) -> Json:
    return {"metadata": {"resourceVersion": version}, "items": list(items)}


def event(what: str, version: str, document: Json) -> Json:
    found = {**document, "metadata": {**document["metadata"], "resourceVersion": version}}
    return {"type": what, "object": found}


def run(*answers: list[Json] | ApiError) -> tuple[Scripted, Store, list[float], int]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def follow() -> tuple[Scripted, Store, list[float], int]:
        client, listed = Scripted(*answers), []
        store = Store(KINDS, lambda: None)
        watched = next(one for one in KINDS if one.kind == SERVICE)
        informer = Informer(client, watched, store, lambda: listed.append(1), Pauses(lambda: 0.0), sleep)
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(informer.run())
        await asyncio.wait_for(client.done.wait(), 60)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return client, store, waits, len(listed)

    return asyncio.run(follow())


def test_a_watch_begins_at_the_version_of_the_first_page() -> None:
    client, store, waits, listed = run([page("7", service()), page("9", service("shop/pay"))])
    assert client.asked == ["list /api/v1/services {}", "watch 7"]
    assert store.counts()[SERVICE] == 2
    assert (waits, listed) == ([], 1)


def test_it_goes_on_behind_the_last_event() -> None:
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "30"}}}
    client, store, waits, _ = run([page("7")], [event("ADDED", "8", service()), bookmark], [event("DELETED", "31", service())])
    assert client.asked[1:] == ["watch 7", "watch 30", "watch 31"]
    assert store.counts()[SERVICE] == 0
    assert waits == []


@pytest.mark.parametrize("error", [ApiError(410, "Expired", ""), ApiError(0, "Gone", "")])
def test_what_is_gone_is_listed_again(error: ApiError) -> None:
    client, store, _, listed = run([page("7", service())], error, [page("50")])
    assert client.asked[2:] == ["list /api/v1/services {}", "watch 50"]
    assert store.counts()[SERVICE] == 0
    assert listed == 2


def test_pauses_grow_with_failures_and_end_with_an_event() -> None:
    broken = ApiError(500, "InternalError", "")
    _, _, waits, _ = run(broken, broken, broken, [page("7")], broken, [event("ADDED", "8", service())], broken)
    assert waits == [0.1, 0.2, 0.4, 0.8, 0.1]


def test_a_kind_that_is_not_there_counts_as_listed() -> None:
    _, store, _, listed = run([page("7", service())], ApiError(404, "NotFound", ""))
    assert store.counts()[SERVICE] == 0
    assert listed == 2


def test_a_watch_that_ends_at_once_is_not_begun_again_at_once() -> None:
    client, _, waits, _ = run([page("7")], [], [], [event("ADDED", "8", service())], [])
    assert client.asked[1:] == ["watch 7", "watch 7", "watch 7", "watch 8", "watch 8"]
    assert waits == [0.1, 0.2, 0.1]
