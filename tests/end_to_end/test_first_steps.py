"""What newcomers run into: a port that is taken, no arguments, an empty file, a file that was repaired."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from tests.end_to_end.asking import ask
from tests.end_to_end.running import PATIENCE, free_port

CONFIG = """
config: {{adminAddr: "127.0.0.1:{admin}", statsAddr: off, readinessAddr: off, workerThreads: 1}}
gateways: {{default: {{port: {port}}}}}
routes: [{{policies: {{directResponse: {{status: 200, body: hello}}}}}}]
"""


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env={**os.environ, **environment},
    )


def test_make_run_names_the_port_that_is_taken_and_what_to_do(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        port = taken.getsockname()[1]
        config.write_text(CONFIG.format(admin=free_port(), port=port))
        done = run("headgate.cli.quickstart", str(config))
        assert done.returncode == 1
        assert (
            f":{port} is already in use: stop the process that uses it (`ss -ltnp 'sport = :{port}'` shows which)" in done.stderr
        )
        assert (
            f"quickstart: the gateway has not started, for the reason above. Its ports are in {config}" in done.stderr
        )
        assert "ready" not in done.stdout
        config.write_text(CONFIG.format(admin=port, port=free_port()))
        done = run("headgate.cli.quickstart", str(config))
    assert done.returncode == 1
    assert (
        f"admin server: cannot listen on 127.0.0.1:{port}: Address already in use (set config.adminAddr to another address, or to off)"
        in done.stderr
    )


def test_make_run_takes_no_other_gateway_for_its_own(gateway: Callable[..., Any], tmp_path: Path) -> None:
    """A gateway of somebody else is ready at the usual ports; this one has none of them, and says when it is ready itself."""
    port = free_port()
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(admin=free_port(), port=port))
    with subprocess.Popen(
        [sys.executable, "-m", "headgate.cli.quickstart", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert any("Headgate is ready" in line for line in process.stdout)
            assert httpx.get(f"http://127.0.0.1:{port}/", timeout=PATIENCE).text == "hello"
        finally:
            process.send_signal(signal.SIGTERM)


def test_without_arguments_it_says_what_it_does(tmp_path: Path) -> None:
    folder = tmp_path / "headgate"
    folder.mkdir()
    path = folder / "config.yaml"
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        path.write_text(CONFIG.format(admin=free_port(), port=taken.getsockname()[1]))
        done = run("headgate.cli.main", XDG_CONFIG_HOME=str(tmp_path), KUBERNETES_SERVICE_HOST="")
    assert done.stderr.splitlines()[0] == f"headgate: serves {path}; use -f for another file, -h for all options"
    assert done.returncode == 1


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("# later\n")
    done = run("headgate.cli.main", "-f", str(path), "--validate-only")
    assert (done.returncode, done.stderr) == (0, "warning: the configuration is empty: nothing is served\n")


def test_a_file_that_says_again_what_runs_is_logged(gateway: Callable[..., Any]) -> None:
    text = "gateways: {default: {port: {port}}}\nroutes: [{policies: {directResponse: {status: 200, body: x}}}]\n"
    running = gateway(text)
    running.write(text.replace("status: 200", "status: none"))
    running.wait_log("Failed to reload config")
    running.write(text)
    running.wait_log("configuration repaired: it is already in force")
    assert "generation=2" not in running.log()
    assert ask(running).body == b"x"


def test_a_file_in_the_working_directory_is_found_and_one_beside_the_configuration_is_preferred(tmp_path: Path) -> None:
    here, beside = tmp_path / "here", tmp_path / "beside"
    for folder in (here, beside):
        folder.mkdir()
    config = beside / "config.yaml"
    config.write_text(
        "gateways: {default: {port: 1}}\nroutes: [{policies: {basicAuth: {htpasswd: {file: users}}}, backends: [{host: 'a:1'}]}]\n"
    )
    words = [sys.executable, "-m", "headgate.cli.main", "-f", str(config), "--validate-only"]

    def validate() -> str:
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=here).stderr

    assert "cannot read 'users': No such file or directory" in validate()
    (here / "users").write_text("ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n")
    assert validate() == ""
    (beside / "users").write_text("nonsense\n")
    assert "basicAuth.htpasswd" in validate(), "the one beside the configuration counts"


def test_a_variable_that_is_not_set_hides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text('gateways: {default: {port: "${NO_SUCH_PORT}"}}\nroutes: [{policies: {rateLimit: []}}]\n')
    done = run("headgate.cli.main", "-f", str(path), "--validate-only")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"environment variable not found: NO_SUCH_PORT ({path}:1)",
        f"routes[0].policies: unknown field 'rateLimit', did you mean 'localRateLimit'? ({path}:2)",
    ]
