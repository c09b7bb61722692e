"""The command line of `headgate bench`: what it takes, and what it refuses with which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.headgate.capacity.report.report_rig import report, step

from headgate.cli.bench import WORSE, command, run, wanted_of


def asked(*words: str) -> Any:
    """What the options ask for."""
    context = command.commands["run"].make_context("run", list(words))
    more = dict(context.params)
    for name in ("json_path", "html_path", "quiet"):
        del more[name]
    return wanted_of(more.pop("url"), more)


def test_options_become_a_measurement(tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"abc")
    wanted = asked(
        "http://a/", "-r", "max", "-c", "4", "-d", f"@{body}", "-H", "X-One: 1:2", "--http2", "--streams", "8", "-t", "3", "--warm-up", "0", "--timeout", "2",
    )  # fmt: skip
    assert (wanted.url, wanted.rate, wanted.method, wanted.body, wanted.fields) == ("http://a/", 0.0, "POST", b"abc", (("x-one", "1:2"),))
    assert (wanted.shape.connections, wanted.shape.streams, wanted.shape.seconds, wanted.shape.grace) == (4, 8, 3.0, 2.0)
    assert asked().method == "GET"
    assert asked().shape.streams == 0
    assert len(asked("--kind", "chat", "--prompt-bytes", "77").prompt) == 77
    assert asked("--kind", "mcp", "--arguments", '{"a": 1}').arguments == {"a": 1}


WRONG = {
    "rate-word": (("-r", "fast"), "0.001 to 10,000,000, or max"),
    "rate-zero": (("-r", "0"), "0.001 to 10,000,000, or max"),
    "rate-nan": (("-r", "nan"), "0.001 to 10,000,000, or max"),
    "header": (("-H", "nothing"), "expected NAME: VALUE"),
    "kind": (("-k", "ftp"), "'http', 'chat', 'stream', 'mcp'"),
    "saturate-max": (("--saturate", "-r", "max"), "needs a rate to start from"),
    "saturate-repeat": (("--saturate", "--repeat", "2"), "exclude each other"),
    "http2-close": (("--http2", "--no-keepalive"), "for HTTP/1.1"),
    "processes": (("-c", "1", "--processes", "2"), "needs at least one connection"),
    "mcp-body": (("-k", "mcp", "-d", "x"), "--tool and --arguments"),
    "chat-method": (("-k", "chat", "-X", "PUT"), "--method is for http"),
    "pid": (("--pid", "1"), "give its URL"),
    "trust": (("--cacert", "a", "--insecure"), "exclude each other"),
    "arguments": (("-k", "mcp", "--arguments", "{"), "not JSON"),
    "arguments-list": (("-k", "mcp", "--arguments", "[]"), "expected an object"),
    "unknown": (("--nothing",), "No such option"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_go_together_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, told = WRONG[name]
    assert run(words) == 2
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("words", "told"), [
    (("ftp://a/",), "a URL such as http://"),
    (("http://127.0.0.1:1/", "-d", "@/no/such/file"), "No such file"),
    (("http://127.0.0.1:1/", "--pid", "999999999"), "there is no process 999999999"),
    (("http://name.invalid/",), "name.invalid"),
    (("http://127.0.0.1:1/",), "the first request failed: connect: refused"),
    (("http://127.0.0.1:1/", "-X", "A B"), "cannot be sent"),
    (("http://127.0.0.1:1/", "-k", "mcp"), "refused"),
    (("https://127.0.0.1:1/", "--cacert", "/no/such/file"), "No such file"),
    (("-f", "/no/such/file", "http://127.0.0.1:1/"), "the gateway did not start"),
    (("compare", "/no/such/file", "/no/such/file"), "No such file"),
])  # fmt: skip
def test_what_cannot_be_measured_is_told(words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 1
    assert told in capsys.readouterr().err


def test_two_reports_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, factor in (("a", 1.0), ("b", 2.0)):
        (tmp_path / name).write_text(json.dumps(report(step(factor=factor))))
    assert run(["compare", str(tmp_path / "a"), str(tmp_path / "a")]) == 0
    assert run(["compare", str(tmp_path / "b"), str(tmp_path / "a")]) == 0
    assert run(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == WORSE
    assert "worse" in capsys.readouterr().out


def test_help_names_the_sub_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("run", "serve", "compare"))
