"""Answers that are kept for clients who lost them."""

from __future__ import annotations

import asyncio

import pytest

from headgate.backend.mcp import resuming
from headgate.backend.mcp.resuming import KeptAnswers, worker_of


class Sent:
    """A stream that keeps what it is sent."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.ended = False

    async def send(self, data: bytes) -> None:
        self.data.append(data)

    async def end(self) -> None:
        self.ended = True


def test_an_answer_is_followed_to_its_end() -> None:
    async def run() -> None:
        answers = KeptAnswers(3)
        kept = answers.open(lambda: None)
        first = kept.replay.last_id
        assert worker_of(first) == 3
        kept.add(b"one")
        kept.cancel()
        found = answers.find(first)
        assert found is kept
        sent = Sent()
        following = asyncio.get_running_loop().create_task(found.follow(sent, first))
        await asyncio.sleep(0)
        second = kept.add(b"two")
        await asyncio.sleep(0.01)
        kept.finish()
        await following
        assert b"".join(sent.data).count(b"event: message") == 2
        assert second.encode() in sent.data[-1]
        assert sent.ended

    asyncio.run(run())


def test_an_answer_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resuming, "AWAY_SECONDS", 0.01)

    async def run() -> None:
        given_up = asyncio.Event()
        answers = KeptAnswers(0)
        kept = answers.open(given_up.set)
        kept.cancel()
        async with asyncio.timeout(40):
            await given_up.wait()
        # A reader keeps it alive, one that goes begins the time anew; a whole answer is never given up.
        given_up.clear()
        kept = answers.open(given_up.set)
        kept.cancel()
        reader = asyncio.get_running_loop().create_task(kept.follow(Sent(), kept.replay.last_id))
        await asyncio.sleep(0.05)
        assert not given_up.is_set()
        reader.cancel()
        async with asyncio.timeout(40):
            await given_up.wait()
        given_up.clear()
        whole = answers.open(given_up.set)
        whole.finish()
        whole.cancel()
        await asyncio.sleep(0.05)
        assert not given_up.is_set()
        answers.forget_later(whole)
        await asyncio.sleep(0.05)
        assert answers.find(whole.replay.last_id) is None

    asyncio.run(run())


def test_only_so_many_are_kept() -> None:
    answers = KeptAnswers(0)
    ids = [answers.open(lambda: None).replay.last_id for _ in range(resuming.MOST_ANSWERS + 1)]
    assert answers.find(ids[0]) is None
    assert all(answers.find(one) is not None for one in ids[1:])


@pytest.mark.parametrize("event_id", [None, "", "x", "0w-1", "fffff0w00000000-1", "0w00000000-", "gw00000000-1", "0w00000000-\u0661"])
def test_ids_of_other_streams_lead_nowhere(event_id: str | None) -> None:
    assert worker_of(event_id) is None
    assert KeptAnswers(0).find(event_id) is None
