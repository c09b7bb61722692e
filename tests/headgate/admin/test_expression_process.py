"""Expressions that are tried in a process with limits, with attacks on time and memory."""

from __future__ import annotations

import asyncio
import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from headgate.admin.expression_process import MAX_WAITING, MEMORY_BYTES, ExpressionEvaluations
from headgate.net.tasks import spawn

Answer = tuple[int, dict[str, Any]]


def body(expression: str, data: Any = None) -> bytes:
    return json.dumps({"expression": expression, "data": data}).encode()


def tried(text: bytes, functions: str = "", wall_seconds: float = 60.0) -> Answer:
    return asyncio.run(ExpressionEvaluations(wall_seconds).evaluate(text, functions))


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_values_functions_and_faults_come_back() -> None:
    assert tried(body("twice(request.path)", {"request": {"path": "/ä"}}), "twice(a) { a + a }") == (200, {"result": "/ä/ä", "error": None})
    assert tried(body("1 / 0"))[1]["error"]
    status, document = tried(body("1 +"))
    assert (status, document["result"]) == (400, None)
    assert tried(b"\xff\x00{}")[0] == 400


LONG = {"request": {"headers": {"x": "x" * 50_000}}}


@pytest.mark.parametrize(
    ("expression", "data"),
    [
        ('request.headers.x.split("").map(c, request.headers.x)', LONG),
        ('request.headers.x.split("").map(c, request.headers.x + c)', LONG),
        ('request.headers.x.split("").map(c, request.headers.x.split("").map(d, d + c))', LONG),
        ("[1, 2, 3, 4, 5, 6, 7, 8, 9].map(a, " * 12 + "a" + ")" * 12, None),
        ("jwt.a.map(x, jwt.a.map(y, jwt.a.map(z, x)))", {"jwt": {"a": list(range(3000))}}),
    ],
)
def test_attacks_on_time_and_memory_end_in_an_error(expression: str, data: Any) -> None:
    before = children()
    status, document = tried(body(expression, data))
    assert status == 200
    assert document["error"]
    assert document["result"] is None
    assert children() == before


def test_cpu_time_is_limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spoil(monkeypatch, tmp_path, "while True: pass")
    assert "CPU time" in tried(body("1"))[1]["error"]


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spoil(monkeypatch, tmp_path, f"x = b'x' * {MEMORY_BYTES}")
    assert "MiB of memory" in tried(body("1"))[1]["error"]


def test_time_is_limited_and_the_process_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spoil(monkeypatch, tmp_path, "import time; time.sleep(3600)")
    before = children()
    assert tried(body("1"), wall_seconds=0.5) == (200, {"result": None, "error": "the evaluation takes more than 0.5 s"})
    assert children() == before


def test_a_result_is_limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spoil(monkeypatch, tmp_path, "return 200, {'result': 'x' * (5 << 20), 'error': None}")
    assert "the result is longer" in tried(body("1"))[1]["error"]


def test_a_process_whose_result_nobody_reads_is_seen_to_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """asyncio stops reading a pipe when it has twice the limit, and reports no end before the pipe is read to its end."""
    spoil(monkeypatch, tmp_path, "return 200, {'result': 'x' * (5 << 20), 'error': None}")
    monkeypatch.setattr(asyncio, "create_subprocess_exec", functools.partial(asyncio.create_subprocess_exec, limit=16))
    monkeypatch.setattr("headgate.admin.expression_process.MAX_RESULT", 10)
    assert "the result is longer" in tried(body("1"))[1]["error"]


def test_a_process_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spoil(monkeypatch, tmp_path, "import os; os._exit(3)")
    assert tried(body("1"))[1]["error"] == "the evaluation ended with status 3"


def test_the_environment_stays_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("API_KEY", "never-shown")
    spoil(monkeypatch, tmp_path, "import os; return 200, {'result': sorted(os.environ), 'error': None}")
    assert "API_KEY" not in tried(body("1"))[1]["result"]


def spoil(monkeypatch: pytest.MonkeyPatch, folder: Path, line: str) -> None:
    """Replace the evaluation in the process by one line of code."""
    (folder / "sitecustomize.py").write_text(
        "import sys, types\n"
        "fake = types.ModuleType('headgate.admin.expressions')\n"
        f"def try_expression(body, functions):\n    {line}\n"
        "fake.try_expression = try_expression\n"
        "sys.modules[fake.__name__] = fake\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_one_at_a_time_and_few_wait() -> None:
    async def run() -> list[Answer]:
        evaluations = ExpressionEvaluations()
        return await asyncio.gather(*(evaluations.evaluate(body(f"{one}"), "") for one in range(MAX_WAITING + 3)))

    found = asyncio.run(run())
    assert [status for status, _ in found] == [200] * (MAX_WAITING + 1) + [429] * 2
    assert [document["result"] for _, document in found][: MAX_WAITING + 1] == list(range(MAX_WAITING + 1))
    assert "in progress" in found[-1][1]["error"]


def test_a_request_that_is_given_up_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    start = asyncio.create_subprocess_exec
    started = asyncio.Event()

    async def noted(*words: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*words, **options)
        started.set()
        return process

    async def run() -> None:
        evaluations = ExpressionEvaluations()
        task = spawn("evaluation", evaluations.evaluate(body("1"), ""))
        await started.wait()
        assert children() != before
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert children() == before
        assert (await evaluations.evaluate(body("2"), ""))[1]["result"] == 2

    before = children()
    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    asyncio.run(run())
