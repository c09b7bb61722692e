"""The guide as somebody types it: each task's configuration runs in front of `headgate bench serve`, and its commands print what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from tests.end_to_end.running import free_port

from headgate.capacity.own_gateway import OwnPeers
from headgate.capacity.stand_ins.answers import Behaviour

PAGE = (Path(__file__).parents[2] / "docs/guide.md").read_text()
MIGRATION = (Path(__file__).parents[2] / "docs/migrate.md").read_text()
# What the page tells its reader to set.
SECRETS = {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-ant-1", "RED_KEY": "red-secret", "BLUE_KEY": "blue-secret"}
SERVE = "headgate bench serve --port 8000 --size 20 --tokens 5"
# A target that needs Node.js, which the page tells to leave out without it.
NODE = re.compile(r"^ *- name: files\n *stdio: .*\n", re.MULTILINE)
# Files that a task makes before the gateway starts.
MADE = ("cert.pem", "key.pem", "jwks.json")
BORDER = "-- end of a command --"


class Task(NamedTuple):
    """A task of the page. preparation: what makes its files. commands: what is typed, and what it prints; `...` stands for anything."""

    title: str
    preparation: str
    configuration: str
    commands: list[tuple[str, str]]


def block(kind: str, text: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each of which may go on behind a backslash."""
    found = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        end = next(number for number, line in enumerate(lines) if not line.endswith("\\")) + 1
        found.append(("\n".join(lines[:end]), "\n".join(lines[end:])))
    return found


def tasks() -> Iterator[Task]:
    for text in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        if block("console", text):
            typed = "".join(re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
            made = block("sh", text)
            yield Task(text.partition("\n")[0], made if "openssl" in made else "", block("yaml", text), commands(typed))


TASKS = list(tasks())


@pytest.fixture(scope="module")
def peers() -> Iterator[OwnPeers]:
    """What the page has its reader start."""
    with OwnPeers(Behaviour(size=20, tokens=5), 1) as running:
        yield running


def counted(command: str) -> str:
    """What waits until a command that reads metrics has something to say: a request is counted behind its answer."""
    return f"until {command} >/dev/null; do sleep 0.05; done; " if ":15020/metrics" in command else ""


def fits(printed: str, expected: str) -> bool:
    pattern = ".*".join(map(re.escape, expected.strip().split("...")))
    return re.fullmatch(pattern, printed.replace("\r", "").strip(), re.DOTALL) is not None


@pytest.mark.http1(reason="the commands are curl's")
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.title)
def test_commands_print_what_the_page_says(task: Task, gateway, peers: OwnPeers, tmp_path: Path) -> None:
    # Ports of the page, and those of this test.
    ports = {name: free_port() for name in ("8080", "8443", "9001", "8081", "4317")} | {"8000": peers.port}
    text = NODE.sub("", task.configuration).replace("sqlite:///tmp/", f"sqlite://{tmp_path}/")
    for name, port in ports.items():
        text = re.sub(rf"(?<=[: ]){name}\b", str(port), text)
    if task.preparation:
        subprocess.run(["bash", "-ec", task.preparation], cwd=tmp_path, check=True, capture_output=True, timeout=120)
        text = re.sub("|".join(map(re.escape, MADE)), lambda name: f"{tmp_path}/{name[0]}", text)
    document = yaml.safe_load(text)
    settings = yaml.safe_dump(document.pop("config")) if "config" in document else ""
    body = re.sub(r"\bport: (3000|4000)\b", "port: {port}", yaml.safe_dump(document))
    # Only those that it has in it: a gateway with others is executed, which takes twice as long as a fork.
    named = {name: value for name, value in SECRETS.items() if name in body + settings}
    running = gateway(body, environment=named, settings=settings)
    running.wait_ready()
    ports |= {"3000": running.port, "4000": running.port, "15020": running.stats}
    # In one shell, as somebody types them: a function or a variable stays.
    script = "\n".join(f"{counted(command)}{command}\necho '{BORDER}'" for command, _ in task.commands)
    for name, port in ports.items():
        script = re.sub(rf"(:|--port ){name}\b", rf"\g<1>{port}", script)
    script = script.replace("--local", f"--local -p {running.admin}")
    script = re.sub(r"\bgwctl keys (\w+)", rf"gwctl keys \1 -p {running.admin}", script)
    environment = {**os.environ, **SECRETS, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=600, cwd=tmp_path, env=environment, check=False
    )  # fmt: skip
    for (command, expected), printed in zip(task.commands, done.stdout.split(BORDER + "\n"), strict=False):
        for name, port in ports.items():
            printed = printed.replace(f":{port}", f":{name}")
        assert fits(printed, expected), f"{command}\nprints {printed!r}\nand not {expected!r}\n{done.stderr}\n{running.log()}"


IMPORTS = re.findall(r"^headgate import \S+ (\S+) -o headgate.yaml$", MIGRATION, re.MULTILINE)


@pytest.mark.parametrize("number", range(len(IMPORTS)))
def test_imports_write_what_the_page_says(number: int, tmp_path: Path) -> None:
    source = tmp_path / IMPORTS[number].replace("~/", "")
    source.parent.mkdir(exist_ok=True)
    source.write_text(re.findall(r"^```yml\n(.*?)^```", MIGRATION, re.MULTILINE | re.DOTALL)[number])
    expected = re.findall(r"^```yaml\n(.*?)^```", MIGRATION, re.MULTILINE | re.DOTALL)[number]
    command = re.findall(r"^headgate import .*$", MIGRATION, re.MULTILINE)[number]
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", expected), "x")
    environment = {**os.environ, **variables, "HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = f"set -e; {command}; headgate -f headgate.yaml --validate-only"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environment, check=False
    )  # fmt: skip
    assert done.stdout == "Configuration is valid!\n", done.stderr
    assert yaml.safe_load((tmp_path / "headgate.yaml").read_text()) == yaml.safe_load(expected)
    assert f"variables to set: {', '.join(sorted(variables))}" in done.stderr


def test_the_page_says_what_these_tests_start_and_set() -> None:
    assert SERVE in PAGE
    assert [name for name in SECRETS if f"{name}=" not in PAGE] == []
    assert len(TASKS) >= 15
    assert len(IMPORTS) == 2
    assert all(task.configuration for task in TASKS)
