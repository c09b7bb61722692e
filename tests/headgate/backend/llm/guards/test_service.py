"""What counts as the same call to a guard's service."""

from __future__ import annotations

import pytest
import uvloop
from tests.oracles.guard_rig import rig

from headgate.backend.llm.guards.compile import settled
from headgate_engine.context.request import make_context

BODY = b'{"messages": [{"role": "user", "content": "hi"}]}'


def calls(first: str, second: str, answer: object) -> list[str | None]:
    """The hosts of the calls that two guards make, which are asked the same."""
    found: list[str | None] = []

    async def main() -> None:
        async with rig() as one:
            one.service.says(answer)
            guards = one.guards("{request: [" + first + ", " + second + "]}")
            assert await settled(guards.begin(make_context("POST")).request(BODY, "completions")) == BODY
            found.extend(call.header("host") for call in one.service.calls)

    uvloop.run(main())
    return found


@pytest.mark.parametrize(("second", "hosts"), [("b.test", ["a.test", "b.test"]), ("a.test", ["a.test"])])
def test_a_verdict_holds_for_one_authority(second: str, hosts: list[str]) -> None:
    hook = "{webhook: {target: {host: '127.0.0.1:{port}'}, headers: {':authority': '\"%s\"'}}}"
    assert calls(hook % "a.test", hook % second, {"action": {}}) == hosts


@pytest.mark.parametrize(("second", "count"), [("k2", 2), ("k1", 1)])
def test_a_verdict_holds_for_one_credential(second: str, count: int) -> None:
    key = "{key: {value: %s, location: {header: {name: authorization}}}}"
    guard = "{azureContentSafety: {endpoint: 'http://127.0.0.1:{port}', policies: {backendAuth: " + key + "}}}"
    assert len(calls(guard % "k1", guard % second, {"categoriesAnalysis": []})) == count
