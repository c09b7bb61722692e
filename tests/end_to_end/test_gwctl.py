"""`gwctl` against a running gateway."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.gwctl_rig import DIRECT, gwctl

pytestmark = pytest.mark.warm


def error(*arguments: str) -> str:
    done = gwctl(*arguments, env={**os.environ, "KUBECONFIG": "/nowhere/kubeconfig"})
    assert done.returncode == 1
    assert not done.stdout
    assert done.stderr.startswith("Error: ")
    return done.stderr[7:].rstrip("\n")


@pytest.fixture
def running(gateway: Callable[..., Any]) -> Any:
    return gateway(DIRECT, 2)


def test_the_whole_configuration(running: Any, tmp_path: Path) -> None:
    port = str(running.admin)
    short, as_json = (gwctl("proxy", "config", "all", "--local", "-p", port, *more) for more in ((), ("-o", "json")))
    assert json.loads(as_json.stdout)["binds"][0]["key"] == f"bind/{running.port}"
    assert short.stdout.startswith('{\n  "workloads": []')
    assert short.stdout.count("\n") == as_json.stdout.count("\n")
    saved = tmp_path / "dump.json"
    saved.write_text(as_json.stdout)
    rendered = gwctl("proxy", "c", "all", "-f", str(saved), "-o", "yaml").stdout
    assert yaml.safe_load(rendered) == json.loads(as_json.stdout)
    assert rendered.startswith("backends:")
    piped = gwctl("proxy", "cfg", "all", "--file", "-", input=as_json.stdout)
    assert json.loads(piped.stdout) == json.loads(as_json.stdout)


def test_the_table_of_backends(running: Any) -> None:
    done = gwctl("proxy", "config", "be", "--local", "--proxy-admin-port", str(running.admin), "--all")
    assert (done.returncode, done.stdout.splitlines()[0].split()) == (
        0, ["TYPE", "NAME", "NAMESPACE", "ENDPOINT", "HEALTH", "REQUESTS", "LATENCY", "ADDRESS"],
    )  # fmt: skip
    dump = str(Path(__file__).parents[1] / "headgate" / "cli" / "data" / "dump.json")
    assert "Evict (2.9s)" in gwctl("proxy", "config", "backends", "--file", dump).stdout
    listed = json.loads(gwctl("proxy", "config", "backends", "--file", dump, "-o", "json").stdout)
    assert listed[1] == {"type": "Backend", "name": "models", "namespace": "default", "endpoint": "openai",
                         "health": "1.00", "requests": 4, "latencyMs": 250.0, "address": ""}  # fmt: skip


@pytest.mark.cold
def test_log_levels_are_shown_and_changed_in_all_processes(running: Any) -> None:
    port = ("--local", "-p", str(running.admin))
    assert gwctl("proxy", "log", *port).stdout == "current log level is info\n"
    assert gwctl("proxy", "log", *port, "--level", "warn").stdout == "current log level is warn\n"
    changed = gwctl("proxy", "log", *port, "--set", "headgate.llm=trace,request=off", "--set", "headgate.mcp=error")
    clauses = changed.stdout.removeprefix("current log level is ").strip().split(",")
    assert set(clauses) == {"warn", "headgate.llm=trace", "request=off", "headgate.mcp=error"}
    assert running.fetch(f"http://127.0.0.1:{running.admin}/logging")[1] == changed.stdout
    again = gwctl("proxy", "log", *port, "--reset", "--set", "headgate.mcp=debug")
    assert again.stdout == "current log level is headgate.mcp=debug,info\n"
    assert gwctl("proxy", "log", *port, "--reset").stdout == "current log level is info\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("proxy", "log", "--local", "--level", "loud"),
         'unknown level "loud"; must be one of error, warn, info, debug, trace, off'),
        (("proxy", "log", "--local", "--set", "a:debug"), '"a:debug" is not <module>=<level>'),
        (("proxy", "log", "--local", "--level", "info", "--set", "a=info"), "--level and --set exclude each other"),
        (("proxy", "log", "gateway/edge", "--local"), "--local excludes a resource"),
        (("proxy", "log", "gateway/edge", "-n", "shop"),
         "kubeconfig: no such file: /nowhere/kubeconfig"),
        (("proxy", "log", "secret/x"), '"secret/x" does not refer to a supported pod resource'),
        (("proxy", "config", "all", "--file", "/nowhere.json"), "cannot read /nowhere.json: No such file or directory"),
        (("proxy", "config", "all", "gateway/a", "--file", "x"), "--file excludes a resource and --local"),
        (("proxy", "config", "all", "--file", "/dev/null"), "/dev/null is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (("proxy", "config", "all"), "kubeconfig: no such file: /nowhere/kubeconfig"),
        (("controller", "log", "--set", "unknown=info"),
         'unknown component "unknown"; must be one of gw/syncer, gw/translator, gateway-controller, deployer, default'),
        (("controller", "log"), "kubeconfig: no such file: /nowhere/kubeconfig"),
        (("proxy", "trace", "--local", "--port", "1"), "--port requires a request URL after --"),
        (("proxy", "trace", "--local", "--", "http://a/"), "a request URL requires --port"),
        (("proxy", "trace", "--file", "x", "--local"), "--file excludes --local, --expression and a request URL"),
        (("proxy", "trace", "pod/a", "--local"), "--local excludes a resource"),
        (("proxy", "trace", "--local", "--port", "1", "--", "-v"),
         "request args after -- must include at least one http:// or https:// URL"),
        (("proxy", "profile", "cpu", "--local", "--seconds", "301"),
         "Invalid value for '--seconds': 301 is not in the range 1<=x<=300."),
        (("proxy", "profile", "heap"), "kubeconfig: no such file: /nowhere/kubeconfig"),
        (("migrate", "--apply", "x", "--write"),
         "clusters are not supported by this version of gwctl; there are no resources to migrate"),
        (("migrate",), "Missing option '--apply'."),
        (("prox",), "No such command 'prox'."),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_line(arguments: tuple[str, ...], why: str) -> None:
    assert error(*arguments) == why


def test_a_gateway_that_is_not_there_is_told() -> None:
    assert "no answer from the admin server at 127.0.0.1:1: Connection refused" in error("proxy", "log", "--local", "-p", "1")
    assert "config.adminAddr" in error("proxy", "profile", "cpu", "--local", "-p", "1")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "there is no event in it"),
        (b"\xff\xfe\n[]\nno trace\n", "there is no event in it"),
        (b'{"eventStart":null,"eventEnd":1,"severity":"info","message":{"type":"requestStarted"}}\n{"a":1}\n', "object 2 is no event"),
        (b'{"message":' + b"[" * 100_000 + b"\n", "object 1 is no event"),
    ],
)
def test_what_is_no_saved_trace_is_told(content: bytes, why: str, tmp_path: Path) -> None:
    saved = tmp_path / "trace"
    saved.write_bytes(content)
    done = gwctl("proxy", "trace", "--raw", "--file", str(saved))
    assert (done.returncode, done.stderr) == (1, f"Error: {saved} is not a saved trace: {why}\n")


def test_a_dump_nested_too_deeply_is_one_line() -> None:
    done = gwctl("proxy", "config", "all", "--file", "-", input="[" * 100_000)
    assert (done.returncode, done.stderr) == (1, "Error: standard input is not a config dump: it is nested too deeply\n")


def test_output_that_cannot_be_written_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "headgate.cli.gwctl", "proxy", "config", "all", "--file", "-"]
        done = subprocess.run(command, input=b"{}", stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"Error: cannot write the output: No space left on device\n")


def test_an_admin_server_on_ipv6_alone_is_found() -> None:
    answers = [b"something else", b"current log level is info\n"]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answers.pop())

        def log_message(self, *_arguments: Any) -> None:
            pass

    class Six(ThreadingHTTPServer):
        address_family = socket.AF_INET6

    try:
        server = Six(("::1", 0), Handler)
    except OSError:
        pytest.skip("no IPv6")
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert gwctl("proxy", "log", "--local", "-p", str(server.server_address[1])).stdout == "current log level is info\n"
        assert error("proxy", "log", "--local", "-p", str(server.server_address[1])).endswith("is not an admin server")
        server.shutdown()


def test_version_help_and_completion(tmp_path: Path) -> None:
    found = json.loads(gwctl("version").stdout)
    assert list(found) == ["version", "commit", "buildDate", "runtimeOS", "runtimeArch"]
    for arguments in ((), ("proxy", "trace"), ("proxy", "profile", "cpu"), ("controller", "log")):
        done = gwctl(*arguments, "--help")
        assert done.returncode == 0
        assert "Examples:" in done.stdout
    assert gwctl().stdout == gwctl("--help").stdout
    assert "[default: 30;" in gwctl("proxy", "profile", "cpu", "--help").stdout
    for shell in ("bash", "zsh", "fish"):
        assert "_GWCTL_COMPLETE" in gwctl("completion", shell).stdout
    words = {"COMP_WORDS": "gwctl proxy ", "COMP_CWORD": "2", "_GWCTL_COMPLETE": "bash_complete"}
    tool = tmp_path / "gwctl"
    tool.write_text(f"#!{sys.executable}\nfrom headgate.cli.gwctl import main\nraise SystemExit(main())\n")
    tool.chmod(0o755)
    done = subprocess.run([tool], capture_output=True, text=True, check=False, env={**os.environ, **words})
    assert {line.split(",")[1] for line in done.stdout.split()} == {"config", "log", "profile", "trace", "upgrade"}
    for words in ("gwctl proxy trace --file ", "gwctl proxy config all -f ", "gwctl proxy profile heap --output "):
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_GWCTL_COMPLETE": "bash_complete"}
        done = subprocess.run([tool], capture_output=True, text=True, check=False, env={**os.environ, **asked})
        assert done.stdout.startswith("file,"), words


def test_old_names_still_work(running: Any) -> None:
    done = gwctl("config", "all", "--local", "-p", str(running.admin))
    assert json.loads(done.stdout)
    assert done.stderr == "gwctl config is deprecated: use gwctl proxy config\n"
    assert "  config" not in gwctl("--help").stdout


def test_the_tool_imports_no_server_code() -> None:
    code = ("import sys; from headgate.cli.gwctl import main; main(['version']); "
            "print(sorted(m for m in sys.modules if m.startswith(('headgate.', 'textual', 'uvloop', 'yaml'))))")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == str(
        ["headgate.cli", "headgate.cli.gwctl", "headgate.cli.version", "headgate.telemetry", "headgate.telemetry.build_info"]
    )


# -- traces ------------------------------------------------------------------------------------------------------------------
def types(text: str) -> list[str]:
    return [json.loads(line)["message"]["type"] for line in text.splitlines()]


def test_a_request_is_sent_and_traced(running: Any, tmp_path: Path) -> None:
    done = gwctl("proxy", "trace", "--local", "--raw", "-p", str(running.admin), "--port", str(running.port),
                 "--", "http://shop.example/cart?a=1", "-X", "POST", "-d", "body", "-H", "x-user: me")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert types(done.stdout)[0] == "requestStarted"
    assert types(done.stdout)[-1] == "requestFinished"
    first = next(json.loads(line) for line in done.stdout.splitlines() if '"initial request"' in line)
    request = first["message"]["requestState"]["request"]
    assert request["method"] == "POST"
    assert request["headers"]["x-user"] == "me"
    assert "shop.example" in request["host"]
    saved = tmp_path / "trace.jsonl"
    saved.write_text(done.stdout)
    assert gwctl("proxy", "trace", "--raw", "--file", str(saved)).stdout == done.stdout
    assert gwctl("proxy", "trace", "--raw", "--file", "-", input=done.stdout).stdout == done.stdout


def test_the_next_request_is_watched_for(running: Any) -> None:
    command = [sys.executable, "-m", "headgate.cli.gwctl", "proxy", "trace", "--local", "--raw", "-p", str(running.admin),
               "--expression", 'request.path == "/wanted"']  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        deadline = time.monotonic() + 30
        while watching.poll() is None and time.monotonic() < deadline:
            running.fetch(f"{running.url}/other")
            running.fetch(f"{running.url}/wanted")
            time.sleep(0.1)
        assert watching.poll() == 0
        assert watching.stdout is not None
        text = watching.stdout.read()
    assert '"/wanted"' in text
    assert '"/other"' not in text


def test_a_trace_that_cannot_be_had(running: Any) -> None:
    port = str(running.admin)
    assert "invalid expression" in error("proxy", "trace", "--local", "--raw", "-p", port, "--expression", "1 +")
    why = error("proxy", "trace", "--local", "--raw", "-p", port, "--port", "1", "--", "http://a/")
    assert why.startswith("the request was not sent: curl: (7)")
    assert error("proxy", "trace", "--local", "-p", port) == "the terminal UI needs a terminal; use --raw for JSON Lines"


# -- profiles ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["cpu", "heap"])
def test_profiles_are_fetched_into_files(running: Any, tmp_path: Path, kind: str) -> None:
    more = ("--seconds", "1") if kind == "cpu" else ()
    done = gwctl("proxy", "profile", kind, "--local", "-p", str(running.admin), *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [path] = tmp_path.glob("headgate-*")
    assert done.stdout == f"Wrote {kind} profile to {path.name}\n"
    assert path.name.startswith(f"headgate-{kind}-20")
    assert path.stat().st_size > 0
    bad = gwctl("proxy", "profile", kind, "--local", "-p", str(running.admin), *more, "-o", "/nowhere/x", cwd=tmp_path)
    assert bad.stderr == "Error: cannot write /nowhere/x: No such file or directory\n"


class Refusing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        heap = self.path.startswith("/debug/pprof/heap")
        body = b"it breaks off" if heap else b"not here"
        self.send_response(200 if heap else 404)
        self.send_header("content-length", str(len(body) + 100 * heap))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def test_a_profile_that_cannot_be_had_leaves_no_file(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        port = str(server.server_address[1])
        cpu = gwctl("proxy", "profile", "cpu", "--local", "-p", port, "--seconds", "1", cwd=tmp_path)
        assert (cpu.returncode, cpu.stderr) == (1, "Error: cpu profile returned 404 Not Found: not here\n")
        heap = gwctl("proxy", "profile", "heap", "--local", "-p", port, cwd=tmp_path)
        assert heap.returncode == 1
        assert heap.stderr.startswith("Error: ")
        assert list(tmp_path.iterdir()) == []
    finally:
        server.shutdown()
        server.server_close()
