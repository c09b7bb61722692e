"""Documents of HTTP services: read once, fetched again when they are old, kept when that fails."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Iterable

import pytest

from headgate.backend.mcp.failure import TargetFailure
from headgate.backend.mcp.targets.openapi import LEAST_SECONDS, RETRY_SECONDS, ApiDocument, body_of
from headgate.ir.policy.document_source import DocumentSource
from headgate.net.tasks import spawn


def api(name: str) -> bytes:
    return json.dumps({"openapi": "3.0.0", "paths": {"/a": {"get": {"operationId": name}}}}).encode()


class Answer:
    """A response; `aclose` is counted."""

    def __init__(self, status: int, body: bytes, **fields: str) -> None:
        self.status = status
        self.headers = [(name.replace("_", "-"), value) for name, value in fields.items()]
        self.body = body
        self.closed = 0

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)

    async def read(self, limit: int) -> bytes:
        if len(self.body) > limit:
            raise ValueError("too long")
        return self.body

    def __aiter__(self) -> AsyncIterator[bytes]:
        raise NotImplementedError

    async def aclose(self) -> None:
        self.closed += 1


class Client:
    """Gives the answers in turn; an OSError is raised."""

    def __init__(self, *answers: Answer | OSError) -> None:
        self.answers = list(answers)
        self.calls = 0

    async def request(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes | None = None,
        authority: str | None = None,
    ) -> Answer:
        self.calls += 1
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


SOURCE = DocumentSource.remote("http://docs.test/api.json")


async def names(document: ApiDocument) -> list[str]:
    found = list((await document.api()).tools)
    if document._loading is not None:
        await asyncio.wait([document._loading])
    return found


def test_a_fetched_document_is_kept_as_long_as_it_says_and_used_while_it_is_fetched_again() -> None:
    async def run() -> None:
        clock = Clock()
        client = Client(Answer(200, api("one"), cache_control="public, max-age=100"), Answer(200, api("two")))
        document = ApiDocument(SOURCE, client, clock)
        assert await asyncio.gather(names(document), names(document)) == [["one"], ["one"]]
        clock.now += 99
        assert (await names(document), client.calls) == (["one"], 1)
        clock.now += 1
        assert (await names(document), client.calls) == (["one"], 2)
        assert await names(document) == ["two"]
        clock.now += 23 * 3600
        assert (await names(document), client.calls) == (["two"], 2)

    asyncio.run(run())


def test_a_short_life_is_prolonged() -> None:
    async def run() -> None:
        clock = Clock()
        client = Client(Answer(200, api("one"), cache_control="max-age=0"), Answer(200, api("two")))
        document = ApiDocument(SOURCE, client, clock)
        await names(document)
        clock.now += LEAST_SECONDS - 1
        assert (await names(document), client.calls) == (["one"], 1)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (Answer(500, b""), "status 500"),
        (Answer(200, b"no"), "not a map"),
        (Answer(200, b"\xff"), "utf-8"),
        (OSError("refused"), "refused"),
    ],
)
def test_a_failure_is_told_tried_again_later_and_does_not_take_what_there_is(
    broken: Answer | OSError, reason: str
) -> None:
    async def run() -> None:
        clock = Clock()
        client = Client(broken, Answer(200, api("one"), cache_control="max-age=60"), broken, Answer(200, api("two")))
        document = ApiDocument(SOURCE, client, clock)
        for _ in range(2):
            with pytest.raises(TargetFailure, match=reason):
                await names(document)
        assert client.calls == 1
        clock.now += RETRY_SECONDS
        assert await names(document) == ["one"]
        clock.now += 60
        assert (await names(document), client.calls) == (["one"], 3)
        assert (await names(document), client.calls) == (["one"], 3)
        clock.now += RETRY_SECONDS
        assert (await names(document), await names(document)) == (["one"], ["two"])

    asyncio.run(run())


def test_who_goes_away_while_it_is_fetched_leaves_the_fetch_to_others() -> None:
    async def run() -> None:
        client = Client(Answer(200, api("one")))
        document = ApiDocument(SOURCE, client)
        first = spawn("test", document.api())
        second = spawn("test", document.api())
        await asyncio.sleep(0)
        first.cancel()
        assert list((await second).tools) == ["one"]
        assert client.calls == 1

    asyncio.run(run())


@pytest.mark.parametrize("coding", ["gzip", "deflate", "X-GZIP", "identity"])
def test_codings_of_bodies(coding: str) -> None:
    packed = {"deflate": zlib.compress, "identity": bytes}.get(coding, gzip.compress)(b"text" * 100)
    assert asyncio.run(body_of(Answer(200, packed, content_encoding=coding), 1000)) == b"text" * 100


@pytest.mark.parametrize(
    ("body", "coding", "reason"),
    [
        (gzip.compress(b"0" * 5000, mtime=0), "gzip", "longer than 1000"),
        (gzip.compress(b"text" * 100, mtime=0)[:-9], "gzip", "cut short"),
        (b"plain", "gzip", "decompressed"),
        (b"?", "br", "content encoding 'br'"),
    ],
)
def test_bodies_that_cannot_be_read(body: bytes, coding: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        asyncio.run(body_of(Answer(200, body, content_encoding=coding), 1000))
