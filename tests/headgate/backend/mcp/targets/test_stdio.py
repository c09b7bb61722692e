"""Servers as child processes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headgate.backend.mcp.failure import TargetFailure
from headgate.backend.mcp.targets import exchanges, stdio
from headgate.backend.mcp.targets.stdio import StdioServer
from headgate.dialect.mcp.jsonrpc import RpcMessage, parse
from headgate.document.secret import Secret
from headgate.ir.mcp import StdioTarget
from headgate.net.tasks import spawn

SAMPLE = ("-m", "headgate.sample.mcp_server")

# A server whose every move is told by the test: each line it gets is a program for it, in params.do.
PUPPET = """
import json, os, sys, time
def say(**members):
    print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)
def read():
    return json.loads(sys.stdin.readline())
for line in sys.stdin:
    message = json.loads(line)
    print("got " + line, end="", file=sys.stderr, flush=True)
    exec((message.get("params") or {}).get("do", ""), globals())
"""


def request(raw_id: object, do: str = "", method: str = "m", **params: object) -> RpcMessage:
    return parse(
        json.dumps({"jsonrpc": "2.0", "id": raw_id, "method": method, "params": {"do": do, **params}}).encode()
    )


def notification(do: str = "", method: str = "notifications/m", **params: object) -> RpcMessage:
    return parse(json.dumps({"jsonrpc": "2.0", "method": method, "params": {"do": do, **params}}).encode())


def with_server(
    use: Callable[[StdioServer], Awaitable[None]], *args: str, cmd: str = sys.executable, **target: object
) -> None:
    """Run `use` with a started server, the puppet unless `args` say otherwise."""

    async def run() -> None:
        found = StdioTarget(key="k", name="t", cmd=cmd, args=args or ("-c", PUPPET), **target)  # type: ignore[arg-type]
        server = StdioServer(found, lambda: None)
        await server.start()
        try:
            async with asyncio.timeout(60):
                await use(server)
        finally:
            await server.stop()

    asyncio.run(run())


async def rest(exchange: exchanges.TargetExchange | None) -> list[dict[str, object]]:
    """What comes until the end of an exchange."""
    assert exchange is not None
    found = []
    while (message := await exchange.inbox.get()) is not None:
        found.append(json.loads(message))
    return found


ANSWER = "say(id=message['id'], result={'got': message['id']})"


def test_equal_ids_at_once_do_not_meet_and_come_back_as_they_were_written() -> None:
    async def use(server: StdioServer) -> None:
        ids = [1, 1, "1", "a\u0007", 1]
        exchanges = [await server.send(request(raw_id, ANSWER)) for raw_id in ids]
        found = [await rest(exchange) for exchange in exchanges]
        assert [answers[0]["id"] for answers in found] == ids
        assert [answers[0]["result"] for answers in found] == [{"got": number} for number in range(1, 6)]

    with_server(use)


def test_answers_in_another_order_find_their_requests() -> None:
    async def use(server: StdioServer) -> None:
        first = await server.send(request("first", ""))
        # Answers itself, then the one before.
        second = await server.send(request("second", ANSWER + f"; say(id={1}, result='late')"))
        assert (await rest(second))[0]["id"] == "second"
        assert await rest(first) == [{"jsonrpc": "2.0", "id": "first", "result": "late"}]

    with_server(use)


def test_a_cancellation_names_the_server_s_number_and_ends_the_exchange(caplog) -> None:
    caplog.set_level(logging.INFO, "headgate.mcp.stdio")

    async def use(server: StdioServer) -> None:
        await server.send(request("other"))
        mine = await server.send(request(7))
        await server.send(notification(method="notifications/cancelled", requestId=7, reason="enough"))
        assert await rest(mine) == []
        assert mine is not None
        assert mine.failed
        # Neither an unknown id nor one that is over may hit a number of ours.
        for gone in (7, 1, "7", None, True):
            await server.send(notification(method="notifications/cancelled", requestId=gone))
        assert [a["result"] for a in await rest(await server.send(request("end", ANSWER)))] == [{"got": 3}]
        await said(caplog, '"id": 3')

    with_server(use)
    seen = [json.loads(line[4:]) for line in lines(caplog) if line.startswith("got")]
    cancelled = [message["params"] for message in seen if message["method"] == "notifications/cancelled"]
    assert cancelled == [{"do": "", "requestId": 2, "reason": "enough"}]


def lines(caplog) -> list[str]:
    return [record.line for record in caplog.records if record.message == "server says"]


async def said(caplog, text: str) -> None:
    """Wait until the server has said something on its standard error."""
    while not any(text in line for line in lines(caplog)):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def test_a_client_that_is_gone_cancels_and_a_late_answer_is_dropped(caplog) -> None:
    caplog.set_level(logging.INFO, "headgate.mcp.stdio")

    async def use(server: StdioServer) -> None:
        gone = await server.send(request("gone", "late = message['id']"))
        assert gone is not None
        server.give_up(gone)
        await said(caplog, "notifications/cancelled")
        found = await rest(await server.send(request("next", "say(id=late, result=0);" + ANSWER)))
        assert [(answer["id"], "result" in answer) for answer in found] == [("next", True)]
        assert len(gone.inbox) == 0

    with_server(use)
    cancelled = [json.loads(line[4:]) for line in lines(caplog) if "notifications/cancelled" in line]
    assert [message["params"]["requestId"] for message in cancelled] == [1]


PROGRESS = "say(method='notifications/progress', params={'progressToken': 't', 'progress': 1});"


def test_progress_goes_to_the_request_with_its_token_even_among_several() -> None:
    async def use(server: StdioServer) -> None:
        waiting = await server.send(request("waiting"))
        mine = await server.send(request("mine", PROGRESS + ANSWER, _meta={"progressToken": "t"}))
        found = await rest(mine)
        assert [message.get("method", message.get("id")) for message in found] == ["notifications/progress", "mine"]
        assert waiting is not None
        assert len(waiting.inbox) == 0

    with_server(use)


def test_what_belongs_to_no_request_waits_for_the_event_stream_and_a_second_stream_takes_over() -> None:
    async def use(server: StdioServer) -> None:
        await server.send(request("a"))
        await server.send(request("b"))
        ask = "say(method='notifications/tools/list_changed'); say(id='s1', method='roots/list');"
        await rest(await server.send(request("c", ask + ANSWER)))
        first = server.events()
        assert json.loads(await first.get() or b"")["method"] == "notifications/tools/list_changed"
        second = server.events()
        assert await first.get() is None
        assert json.loads(await second.get() or b"") == {"jsonrpc": "2.0", "id": "s1", "method": "roots/list"}

    with_server(use)


def test_a_server_s_request_during_the_only_call_comes_with_the_call_and_its_answer_goes_back() -> None:
    ask = "say(id='ask', method='sampling/createMessage'); asked = message['id']"

    async def use(server: StdioServer) -> None:
        exchange = await server.send(request(1, ask))
        assert exchange is not None
        assert json.loads(await exchange.inbox.get() or b"")["method"] == "sampling/createMessage"
        text = b'{"jsonrpc":"2.0","id":"ask","result":{"x":1}}'
        assert await server.send(parse(text)) is None
        # The puppet reads the answer as its next line; then it is told to finish.
        await server.send(notification("say(id=asked, result='done')"))
        assert (await rest(exchange))[0]["result"] == "done"

    with_server(use)


def test_a_server_request_that_nobody_can_take_is_refused_for_the_client() -> None:
    do = """
for number in range(100):
    say(id=number, method='roots/list')
refused = read()
say(id=message['id'], result=refused)
"""

    async def use(server: StdioServer) -> None:
        await server.send(request("a"))
        found = await rest(await server.send(request("b", textwrap.dedent(do))))
        answer = found[0]["result"]
        assert isinstance(answer, dict)
        assert answer["error"]["message"] == "the client does not read"

    with_server(use)


def test_a_crash_answers_what_is_pending_and_refuses_what_comes() -> None:
    async def use(server: StdioServer) -> None:
        events = server.events()
        pending = await server.send(request("p"))
        dying = await server.send(request("d", "os._exit(3)"))
        for exchange, raw_id in ((pending, "p"), (dying, "d")):
            answer = (await rest(exchange))[0]
            assert answer["id"] == raw_id
            assert answer["error"] == {"code": -32603, "message": "MCP server t ended before it answered"}
        assert await events.get() is None
        assert server.dead
        assert await server.events().get() is None
        with pytest.raises(TargetFailure, match="not running"):
            await server.send(request("late"))

    with_server(use)


def test_a_server_that_is_stopped_has_not_ended_by_itself() -> None:
    async def use(server: StdioServer) -> None:
        pending = await server.send(request("p"))
        await server.stop()
        assert (await rest(pending))[0]["error"]["message"] == "MCP server t was stopped before it answered"

    with_server(use)


def test_a_server_that_closes_its_output_has_ended() -> None:
    async def use(server: StdioServer) -> None:
        answer = (await rest(await server.send(request(1, "os.close(1); time.sleep(60)"))))[0]
        assert "ended before it answered" in str(answer["error"])
        assert server.dead

    with_server(use)


def test_a_server_has_no_descriptors_but_its_own() -> None:
    async def use(server: StdioServer) -> None:
        answer = (await rest(await server.send(request(1, "say(id=message['id'], result=sorted(os.listdir('/proc/self/fd')))"))))[0]
        # The last one is of the listing itself.
        assert answer["result"] == ["0", "1", "2", "3"]

    with_server(use)


def test_a_message_past_the_limit_ends_the_server(monkeypatch) -> None:
    monkeypatch.setattr(stdio, "MAX_MESSAGE", 1000)

    async def use(server: StdioServer) -> None:
        answer = (await rest(await server.send(request(1, "say(id=message['id'], result='x' * 3000)"))))[0]
        assert "ended before it answered" in str(answer["error"])

    with_server(use)


def test_lines_that_are_no_messages_are_skipped() -> None:
    async def use(server: StdioServer) -> None:
        found = await rest(await server.send(request(1, "print('hello'); print('[]'); print();" + ANSWER)))
        assert [answer["result"] for answer in found] == [{"got": 1}]

    with_server(use)


def test_only_so_many_requests_may_be_under_way(monkeypatch) -> None:
    monkeypatch.setattr(exchanges, "MAX_PENDING", 2)

    async def use(server: StdioServer) -> None:
        await server.send(request(1))
        await server.send(request(2))
        with pytest.raises(TargetFailure, match="too many"):
            await server.send(request(3))

    with_server(use)


# A server that reads nothing until there is such a file.
DEAF = "while not os.path.exists(%r): time.sleep(0.01)"


async def held_back(server: StdioServer) -> int:
    """Wait until the server's pipe is full, and return how many bytes wait for it."""
    assert server._process is not None
    assert server._process.stdin is not None
    while not (found := server._process.stdin.transport.get_write_buffer_size()):  # noqa: ASYNC110 (nothing tells)
        await asyncio.sleep(0.001)
    return found


def test_a_server_that_does_not_read_holds_back_its_clients_not_our_memory(tmp_path: Path) -> None:
    async def use(server: StdioServer) -> None:
        await server.send(request(0, DEAF % str(tmp_path / "listen")))
        big = [spawn("test", server.send(request(n, ANSWER, x="x" * 300_000))) for n in range(1, 9)]
        waiting = await held_back(server)
        await asyncio.sleep(0)  # the others have their turn
        assert 0 < waiting < 400_000
        assert sum(task.done() for task in big) <= 1
        (tmp_path / "listen").touch()
        found = [await task for task in big]
        assert [(await rest(exchange))[0]["result"] for exchange in found] == [{"got": n} for n in range(2, 10)]

    with_server(use)


def test_a_cancelled_send_leaves_nothing_behind(tmp_path: Path) -> None:
    async def use(server: StdioServer) -> None:
        await server.send(request(0, DEAF % str(tmp_path / "listen")))
        stuck = spawn("test", server.send(request(1, x="x" * 300_000)))
        queued = spawn("test", server.send(request(2)))
        await held_back(server)
        stuck.cancel()
        queued.cancel()
        await asyncio.wait([stuck, queued])
        assert len(server._exchanges.pending) == 1
        (tmp_path / "listen").touch()
        assert [answer["result"] for answer in await rest(await server.send(request(3, ANSWER)))] == [{"got": 4}]

    with_server(use)


def test_the_environment_is_a_clean_one_or_empty(monkeypatch) -> None:
    monkeypatch.setenv("SESSION_KEY", "secret")
    monkeypatch.setenv("OPENAI_API_KEY", "expanded by the configuration")
    monkeypatch.setenv("LC_TIME", "C")
    names = "('SESSION_KEY', 'OPENAI_API_KEY', 'LC_TIME', 'OWN')"
    ask = request(1, f"say(id=message['id'], result=[os.environ.get(k) for k in {names}])")
    found: list[object] = []

    async def use(server: StdioServer) -> None:
        found.append((await rest(await server.send(ask)))[0]["result"])

    own = (("OWN", Secret("mine")),)
    with_server(use, env=own)
    with_server(use, env=own, clear_env=True)
    with_server(use, env=(("SESSION_KEY", Secret("given")),))
    assert found == [[None, None, "C", "mine"], [None, None, None, "mine"], ["given", None, "C", None]]


def test_its_standard_error_goes_to_the_log_in_lines_of_bounded_length(caplog) -> None:
    caplog.set_level(logging.INFO, "headgate.mcp.stdio")
    do = "sys.stderr.write('a\\n' + 'b' * 100000 + '\\n' + 'c\\n' + 'd'); sys.stderr.flush(); os._exit(0)"

    async def use(server: StdioServer) -> None:
        await rest(await server.send(request(1, do)))
        await said(caplog, "d")

    with_server(use)
    found = [line for line in lines(caplog) if not line.startswith("got")]
    assert [found[0], found[-2], found[-1]] == ["a", "c", "d"]
    assert set("".join(found[1:-2])) == {"b"}
    assert max(len(line) for line in found) <= stdio.MAX_LOG_LINE


def test_a_program_that_is_not_there_is_a_failure_that_names_it() -> None:
    async def run() -> None:
        server = StdioServer(StdioTarget(key="k", name="t", cmd="/no/such/program"), lambda: None)
        with pytest.raises(TargetFailure, match="cannot start /no/such/program: No such file"):
            await server.start()
        await server.stop()

    asyncio.run(run())


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_gone(pid: int) -> None:
    deadline = time.monotonic() + 40
    while alive(pid):
        assert time.monotonic() < deadline, f"{pid} lives on"
        time.sleep(0.02)


STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
CHILD = "import subprocess; say(id=message['id'], result=subprocess.Popen(['sleep', '60']).pid)"


def test_stopping_kills_a_stubborn_server_and_its_children(monkeypatch) -> None:
    monkeypatch.setattr(stdio, "STOP_SECONDS", 0.2)
    pids: list[int] = []

    async def use(server: StdioServer) -> None:
        await server.send(notification(STUBBORN))
        pids.append((await rest(await server.send(request(1, CHILD))))[0]["result"])  # type: ignore[arg-type]
        await server.send(notification("time.sleep(60)"))
        assert server._process is not None
        pids.append(server._process.pid)
        # A caller that is cancelled does not leave the work half done.
        stopping = spawn("test", server.stop())
        await asyncio.sleep(0)
        stopping.cancel()
        await asyncio.wait([stopping])

    with_server(use)
    for pid in pids:
        wait_gone(pid)


def test_children_of_a_server_that_ended_by_itself_are_killed() -> None:
    pids: list[int] = []

    async def use(server: StdioServer) -> None:
        pids.append((await rest(await server.send(request(1, CHILD))))[0]["result"])  # type: ignore[arg-type]
        await rest(await server.send(request(2, "os._exit(0)")))

    with_server(use)
    wait_gone(pids[0])


def test_nothing_outlives_a_killed_worker() -> None:
    worker = textwrap.dedent(
        """
        import asyncio
        from headgate.backend.mcp.targets.stdio import StdioServer
        from headgate.ir.mcp import StdioTarget

        async def main():
            target = StdioTarget(key="k", name="t", cmd="sh", args=("-c", "trap '' TERM; sleep 600 & echo $$ $! >&2; cat"))
            server = StdioServer(target, lambda: None)
            server._log = lambda line: print(line.decode(), flush=True)
            await server.start()
            print("started", flush=True)
            await asyncio.sleep(600)

        asyncio.run(main())
        """
    )
    process = subprocess.Popen([sys.executable, "-c", worker], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    # The guard is told in the start; what the server says may come before that or behind it.
    lines = [process.stdout.readline() for _ in range(2)]
    lines.remove("started\n")
    pids = [int(word) for word in lines[0].split()]
    assert len(pids) == 2
    assert all(alive(pid) for pid in pids)
    process.kill()
    process.wait()
    for pid in pids:
        wait_gone(pid)


def test_the_sample_server_speaks_through_it() -> None:
    async def use(server: StdioServer) -> None:
        call = parse(
            b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3}}}'
        )
        assert (await rest(await server.send(call)))[0]["result"]["content"][0]["text"] == "5"  # type: ignore[index]

    with_server(use, *SAMPLE)


def test_the_exit_is_told_once() -> None:
    told: list[int] = []

    async def run() -> None:
        server = StdioServer(StdioTarget(key="k", name="t", cmd="true"), lambda: told.append(os.getpid()))
        await server.start()
        while not server.dead:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await server.stop()
        await server.stop()

    asyncio.run(run())
    assert told == [os.getpid()]
