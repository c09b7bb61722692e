"""Requests that wait for the answer of a service: they go on, end, fail, are given up, and leave nothing behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from rig import GET, Rig, on_rig
from tests.engine.link.grpc_peer import HEAD, GrpcPeer, GrpcServer, framed, peer_and_caller

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.consult import ConsultStep, GrpcQuestion
from headgate_engine.link.grpc_call import GrpcCaller, GrpcFailure

PATH = "/test.v1.Check/Ask"
FINE = [(b"grpc-status", b"0")]


class Policy:
    """Asks with the target; `told`: what has come back."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.reply: Reply | None = None

    def compose(self, ctx: RequestContext) -> tuple[bytes, Any] | Reply | None:
        if ctx.target == "/free":
            return None
        return Reply(403, b"known") if ctx.target == "/known" else (ctx.target.encode(), len(self.told))

    def conclude(self, ctx: RequestContext, message: bytes | None, failure: GrpcFailure | None, note: Any) -> Reply | None:
        self.told.append((message, None if failure is None else failure.code, note))
        if ctx.target == "/wrong":
            raise ZeroDivisionError("a policy's own fault")
        return self.reply


def step_of(policy: Policy, *callers: GrpcCaller, timeout_s: float = 30.0) -> ConsultStep:
    question = GrpcQuestion(PATH, callers, lambda: iter(range(len(callers))), policy, timeout_s=timeout_s, limit=100)
    return ConsultStep("asking", lambda ctx: None, question)


def answer(server: GrpcServer) -> None:
    """Each call gets its own message back."""

    def react(peer: GrpcPeer, event: str, stream: int) -> None:
        if event == "end":
            peer.peer.respond(stream, HEAD)
            peer.peer.send(stream, peer.come[stream])
            peer.peer.end(stream, FINE)

    server.react = react


def get(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nhost: a.test\r\n\r\n".encode()


@on_rig()
async def test_answers(rig: Rig) -> None:
    async with peer_and_caller(rig.worker) as (server, caller):
        answer(server)
        policy = Policy()
        rig.route.request_steps = (step_of(policy, caller),)
        client = await rig.client()
        assert (await client.ask(get("/a"))).status == 200
        assert (await client.ask(get("/free"))).status == 200
        assert (await client.ask(get("/known"))).status == 403
        policy.reply = Reply(429, b"no")
        found = await client.ask(get("/b"))
        assert (found.status, found.body) == (429, b"no")
        assert policy.told == [(b"/a", None, 0), (b"/b", None, 1)]
        assert len(server.peers) == 1


@on_rig(faults=1)
async def test_a_policy_that_raises_is_a_500(rig: Rig) -> None:
    async with peer_and_caller(rig.worker) as (server, caller):
        answer(server)
        rig.route.request_steps = (step_of(Policy(), caller),)
        client = await rig.client()
        found = await client.ask(get("/wrong"))
        assert (found.status, found.body) == (500, b"internal error")
        assert (await client.ask(get("/fine"))).status == 200


@on_rig()
async def test_failures(rig: Rig) -> None:
    async with peer_and_caller(rig.worker) as (server, caller):
        policy = Policy()
        rig.route.request_steps = (step_of(policy, caller),)

        def react(peer: GrpcPeer, event: str, stream: int) -> None:
            if event == "end":
                target = peer.come[stream][5:]
                if target == b"/reset":
                    peer.peer.reset(stream, 2)
                elif target == b"/closed":
                    peer.transport.abort()
                else:
                    peer.peer.respond(stream, HEAD)
                    peer.peer.send(stream, {b"/long": framed(b"a" * 101), b"/cut": b"\0\0\0\0\2a", b"/none": b""}[target])
                    peer.peer.end(stream, FINE)

        server.react = react
        for target in ("/reset", "/closed", "/long", "/cut", "/none"):
            assert (await rig.ask(get(target))).status == 200, "the policy lets it go on"
        assert [code for _, code, _ in policy.told] == [14, 14, 8, 13, 13]


@on_rig()
async def test_one_that_hangs(rig: Rig) -> None:
    async with peer_and_caller(rig.worker) as (server, caller):
        policy = Policy()
        rig.route.request_steps = (step_of(policy, caller, timeout_s=0.05),)
        assert (await rig.ask(GET)).status == 200
        assert [code for _, code, _ in policy.told] == [4]
        await rig.wait(lambda: server.resets == 1, "the call is given up")


@on_rig()
async def test_a_client_that_leaves(rig: Rig) -> None:
    async with peer_and_caller(rig.worker) as (server, caller):
        asked = asyncio.Event()

        def react(peer: GrpcPeer, event: str, stream: int) -> None:
            if event == "end":
                asked.set()

        server.react = react
        policy = Policy()
        rig.route.request_steps = (step_of(policy, caller),)
        client = await rig.client()
        await client.send(GET)
        await asked.wait()
        client.reset()
        await rig.wait(lambda: server.resets == 1, "the call is given up")
        assert policy.told == []


@on_rig()
async def test_an_endpoint_that_is_gone_is_skipped(rig: Rig) -> None:
    async with peer_and_caller(rig.worker) as (server, caller):
        answer(server)
        async with peer_and_caller(rig.worker) as (_, gone):
            pass
        policy = Policy()
        rig.route.request_steps = (step_of(policy, gone, caller),)
        assert (await rig.ask(get("/a"))).status == 200
        rig.route.request_steps = (step_of(policy, gone),)
        assert (await rig.ask(get("/b"))).status == 200
        assert policy.told == [(b"/a", None, 0), (None, 14, 1)]


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="endpoint"):
        step_of(Policy())
    with pytest.raises(TypeError):
        step_of(Policy(), object())  # type: ignore[arg-type]
