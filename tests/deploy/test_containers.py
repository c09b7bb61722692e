"""What the Containerfile promises: small images of a user without rights, from locked packages, that know their health.

`make container-check` builds and runs them, which needs a builder and its base images.
"""

from __future__ import annotations

import json
import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from headgate.cluster.controller.settings import ControllerSettings
from headgate.cluster.deploy import pod

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy/containers/Containerfile"


class Stage(NamedTuple):
    """`steps`: instructions in capitals, each with what stands behind it."""

    base: str
    steps: list[tuple[str, str]]

    def all(self, word: str) -> list[str]:
        return [rest for name, rest in self.steps if name == word]

    def last(self, word: str) -> str:
        return self.all(word)[-1]


def parsed() -> dict[str, Stage]:
    """The stages by name."""
    text = re.sub(r"^\s*#.*\n", "", FILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    stages: dict[str, Stage] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        word, rest = line.split(None, 1)
        if word == "FROM":
            base, name = re.fullmatch(r"(\S+) AS (\w+)", rest).groups()  # type: ignore[union-attr]
            stages[name] = Stage(base, [])
        elif stages:
            stages[name].steps.append((word, " ".join(rest.split())))
    return stages


def test_what_runs_is_only_copied() -> None:
    """No compiler and no package manager's leftovers: nothing is run in the stages that become images."""
    stages = parsed()
    assert set(stages) == {"build", "gateway", "controller"}
    gateway, controller = stages["gateway"], stages["controller"]
    assert gateway.all("COPY") == ["--from=build /opt/headgate /opt/headgate"]
    assert controller.base == "gateway"
    for stage in (gateway, controller):
        assert stage.all("RUN") == []
        assert stage.all("ADD") == []
    assert controller.all("COPY") == []
    # The interpreter of the environment is the one of the image that it was built with.
    assert gateway.base == stages["build"].base
    assert gateway.base.endswith("-slim")


def test_they_run_as_the_user_of_pods() -> None:
    stages = parsed()
    assert stages["gateway"].all("USER") == [f"{pod.USER}:{pod.USER}"]
    assert stages["controller"].all("USER") == []
    assert pod.USER > 0


def test_they_ask_where_health_is_told() -> None:
    stages = parsed()
    for name, port, path in (
        ("gateway", pod.READY_PORT, pod.READY_PATH),
        ("controller", ControllerSettings().health_port, "/readyz"),
    ):
        options, command = re.fullmatch(r"(.*) CMD (\[.*\])", stages[name].last("HEALTHCHECK")).groups()  # type: ignore[union-attr]
        words = json.loads(command)
        compile(words[2], "health check", "exec")
        assert f"http://127.0.0.1:{port}{path}'" in words[2]
        assert "--start-period=" in options
        assert any(str(port) in line.split() for line in stages["gateway"].all("EXPOSE") + stages[name].all("EXPOSE"))


def test_packages_are_locked() -> None:
    for line in parsed()["build"].all("RUN"):
        for command in re.findall(r"pip (?:--python \S+ )?(?:install|wheel)[^&]*", line):
            assert "--require-hashes -r ci/locks/" in command or "--no-deps" in command, command


def test_the_engine_is_compiled_as_for_a_release() -> None:
    build = parsed()["build"]
    assert "OPTIMIZE=3" in build.all("ARG")
    assert any('HEADGATE_OPTIMIZE="$OPTIMIZE"' in line for line in build.all("RUN"))


def test_what_is_copied_is_in_the_context() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert ".git" in ignored
    for line in parsed()["build"].all("COPY"):
        for name in line.split()[:-1]:
            assert (ROOT / name).exists(), name
            assert not any(fnmatch(name, pattern.removeprefix("**/")) for pattern in ignored), name


def test_every_command_of_the_documents_keeps_the_health_check() -> None:
    """Podman's own format of images drops it, with a warning."""
    listed = subprocess.run(["git", "ls-files", "*.md", "ci/container.sh"], cwd=ROOT, capture_output=True, text=True, check=True)
    commands = [
        line
        for name in [*listed.stdout.split(), "deploy/containers/Containerfile"]
        for line in (ROOT / name).read_text().splitlines()
        if re.search(r"(podman|buildah) (build|bud)\b.*Containerfile", line)
    ]
    assert len(commands) >= 4
    assert [line for line in commands if "--format docker" not in line] == []
