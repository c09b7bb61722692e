"""The one-file program (`make binary`), in a root that has nothing else and is read-only but for /tmp, as nobody."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.deploy.binary_rig import NOBODY, RootedGateway, begun, built, entered, make_root, reason, run
from tests.end_to_end.processes import alive, children_of, kill
from tests.end_to_end.running import PATIENCE

from headgate import __version__

pytestmark = pytest.mark.skipif(bool(reason()), reason=reason() or "-")

HELLO = """
gateways: {default: {port: {port}}}
routes:
- policies: {directResponse: {status: 200, body: "%s"}}
"""
MOST_BYTES = 60_000_000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_root(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RootedGateway]:
    """One for the tests that leave it as it is."""
    running = begun(tmp_path_factory.mktemp("gateway"), HELLO % "served", workers=2)
    yield running
    assert running.stop() == 0, running.log()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., RootedGateway]]:
    started: list[RootedGateway] = []

    def begin(text: str) -> RootedGateway:
        started.append(begun(tmp_path, text))
        return started[-1]

    yield begin
    for one in started:
        one.stop()


def test_its_size() -> None:
    program = built()
    assert program is not None
    assert program.stat().st_size <= MOST_BYTES


def test_it_serves(gateway: RootedGateway) -> None:
    assert gateway.fetch(gateway.url) == (200, "served")
    assert len(gateway.worker_pids()) == 2
    status, page = gateway.fetch(f"http://127.0.0.1:{gateway.stats}/metrics")
    assert status == 200
    assert "gw_downstream_connections_total" in page


def test_everything_it_has_mapped_is_its_own(gateway: RootedGateway) -> None:
    """No library of the machine: the root has none, and what is mapped lies in the image."""
    maps = Path(f"/proc/{gateway.process.pid}/maps").read_text()
    files = {line.split()[-1] for line in maps.splitlines() if ".so" in line}
    assert len(files) > 50
    assert [path for path in files if "/headgate-65534/image-" not in path] == []


@pytest.mark.parametrize(
    "path", ["/ui", "/ui/assets/app.js", "/ui/assets/views/trace.js", "/config_dump", "/api/runtime"]
)
def test_the_admin_server(path: str, gateway: RootedGateway) -> None:
    assert gateway.fetch(f"http://127.0.0.1:{gateway.admin}{path}")[0] == 200


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=250) as answer:
        return bytes(answer.read())


def test_a_cpu_profile_has_frames_of_the_gateway(gateway: RootedGateway) -> None:
    """py-spy is executed by the interpreter of the image: there is no shell."""
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            gateway.fetch(gateway.url)

    clients = [threading.Thread(target=ask) for _ in range(3)]
    for client in clients:
        client.start()
    try:
        profile = fetched(f"http://127.0.0.1:{gateway.admin}/debug/pprof/profile?seconds=3")
    finally:
        over.set()
        for client in clients:
            client.join()
    assert b"headgate/cli/main.py" in profile


def test_a_heap_profile(gateway: RootedGateway) -> None:
    base = f"http://127.0.0.1:{gateway.admin}/debug/pprof/heap"
    assert gateway.fetch(f"{base}?rate=4096", "POST")[0] == 200
    for _ in range(50):
        gateway.fetch(gateway.url)
    assert b"inuse_objects" in gzip.decompress(fetched(base))
    assert gateway.fetch(f"{base}?rate=0", "POST")[0] == 200


def test_an_expression_is_evaluated_by_a_process_of_its_own(gateway: RootedGateway) -> None:
    body = json.dumps({"expression": "1 + 2"}).encode()
    status, text = gateway.fetch(
        f"http://127.0.0.1:{gateway.admin}/api/cel", "POST", data=body, headers={"content-type": "application/json"}
    )
    assert (status, json.loads(text)) == (200, {"result": 3, "error": None})


def test_a_reload(start: Callable[..., RootedGateway]) -> None:
    gateway = start(HELLO % "first")
    assert gateway.fetch(gateway.url) == (200, "first")
    gateway.reload(HELLO % "second")
    assert gateway.fetch(gateway.url) == (200, "second")


def test_dead_workers_and_a_dead_template_are_replaced(start: Callable[..., RootedGateway]) -> None:
    """A new template is executed: the interpreter of the image starts without the head of the program."""
    gateway = start(HELLO % "served")
    kill(gateway.template_pid())
    [worker] = gateway.worker_pids()
    kill(worker)
    gateway.wait(lambda: [pid for pid in gateway.worker_pids() if pid != worker and alive(pid)])
    gateway.wait(lambda: answered(gateway) == (200, "served"))


def answered(gateway: RootedGateway) -> tuple[int, str] | None:
    try:
        return gateway.fetch(gateway.url)
    except OSError:
        return None


class Slow(BaseHTTPRequestHandler):
    """Answers when it is told to."""

    came, go = threading.Event(), threading.Event()

    def do_GET(self) -> None:
        self.came.set()
        self.go.wait(PATIENCE)
        self.send_response(200)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"slow")

    def log_message(self, *_words: object) -> None:
        pass


def test_requests_in_flight_end_before_it_does(start: Callable[..., RootedGateway]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as backend:
        threading.Thread(target=backend.serve_forever, daemon=True).start()
        gateway = start(
            "gateways: {default: {port: {port}}}\nroutes:\n"
            f"- backends: [{{host: '127.0.0.1:{backend.server_port}'}}]\n"
        )
        answers: list[tuple[int, str]] = []
        client = threading.Thread(target=lambda: answers.append(gateway.fetch(gateway.url)))
        client.start()
        assert Slow.came.wait(PATIENCE)
        gateway.process.send_signal(signal.SIGTERM)
        gateway.wait_log("draining")
        assert gateway.process.poll() is None
        Slow.go.set()
        client.join(PATIENCE)
        assert answers == [(200, "slow")]
        assert gateway.process.wait(PATIENCE) == 0
        backend.shutdown()


def supervisor(gateway: RootedGateway) -> int:
    """The process that answers at the admin port; 0 while none does."""
    try:
        _, text = gateway.fetch(f"http://127.0.0.1:{gateway.admin}/memory")
    except OSError:
        return 0
    return int(json.loads(text)["processes"][0]["pid"])


def test_a_new_process_takes_over(start: Callable[..., RootedGateway]) -> None:
    """Of the file that is there now: the head of the program runs again, and unpacks what that has."""
    gateway = start(HELLO % "served")
    old = gateway.process.pid
    gateway.process.send_signal(signal.SIGUSR2)
    assert gateway.process.wait(2 * PATIENCE) == 0, gateway.log()
    gateway.wait(lambda: supervisor(gateway) not in (0, old))
    new = supervisor(gateway)
    try:
        assert gateway.fetch(gateway.url) == (200, "served")
    finally:
        os.kill(new, signal.SIGTERM)
    gateway.wait(lambda: not alive(new))


def test_names_and_sub_commands(root: Path) -> None:
    assert run(root, "/headgate", "-V").stdout.strip() == __version__
    assert json.loads(run(root, "/headgate", "--version").stdout)["version"] == __version__
    by_name, by_command = run(root, "/gwctl", "--help"), run(root, "/headgate", "gwctl", "--help")
    assert by_name.returncode == by_command.returncode == 0
    assert by_name.stdout.startswith("Usage: gwctl")
    assert by_name.stdout == by_command.stdout


def test_gwctl_asks_a_gateway(gateway: RootedGateway) -> None:
    done = run(gateway.root, "/gwctl", "proxy", "log", "--proxy-admin-port", str(gateway.admin))
    assert "info" in done.stdout, done


def test_what_it_does_not_have_is_refused_at_load(root: Path) -> None:
    text = "gateways: {default: {port: 1}}\nroutes: [{backends: [{host: 'h:1', policies: {backendAuth: {gcp: {}}}}]}]\n"
    done = run(root, "/headgate", "--validate-only", "-c", text)
    assert done.returncode == 1
    assert "google.auth" in done.stderr
    assert "is not in the one-file program" in done.stderr
    assert "pip install 'headgate[cloud]'" in done.stderr


CARRIED = {
    "postgres": "config: {database: {url: 'postgres://u:p@127.0.0.1:1/d'}}\n",
    "redis": "config: {sharedState: {redis: {url: 'redis://127.0.0.1:1'}}}\n",
    "envoy": "routes: [{policies: {extAuthz: {host: '127.0.0.1:1'}}}]\n",
}


@pytest.mark.parametrize("extra", CARRIED)
def test_the_extras_that_it_has(extra: str, root: Path) -> None:
    done = run(root, "/headgate", "--validate-only", "-c", f"gateways: {{default: {{port: 1}}}}\n{CARRIED[extra]}")
    assert "is not in the one-file program" not in done.stderr
    assert "not installed" not in done.stderr
    assert done.returncode == 0, done.stderr


def test_without_a_place_to_unpack_it_says_so(root: Path) -> None:
    done = run(root, "/headgate", "-V", tmp="none")
    assert done.returncode == 1
    assert re.search(r"needs a folder for \d+ MB .*HEADGATE_UNPACK_DIR, or mount a tmpfs at /tmp", done.stderr)
    assert "/tmp: Read-only file system" in done.stderr


PLACES = (("size=500m,mode=1777,noexec", "/tmp: nothing can be executed there"), ("size=5m,mode=1777", "no room for"))


@pytest.mark.parametrize(("options", "told"), PLACES)
def test_places_that_do_not_do(options: str, told: str, root: Path) -> None:
    done = run(root, "/headgate", "-V", tmp=options)
    assert done.returncode == 1
    assert told in done.stderr


# -- the folder of images ----------------------------------------------------------------------------------------------
@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path


def version(place: Path) -> str:
    program = built()
    environment = {"HEADGATE_UNPACK_DIR": str(place)}
    return subprocess.run(
        [str(program), "-V"], env=environment, capture_output=True, text=True, check=True, timeout=250
    ).stdout


def images(place: Path) -> list[Path]:
    return sorted((place / f"headgate-{os.geteuid()}").iterdir())


def test_a_second_start_uses_what_the_first_unpacked(place: Path) -> None:
    assert version(place).strip() == __version__
    [image] = images(place)
    before = image.stat()
    assert version(place).strip() == __version__
    assert images(place) == [image]
    assert image.stat() == before


def test_starts_at_once_share_an_image(place: Path) -> None:
    told: list[str] = []
    threads = [threading.Thread(target=lambda: told.append(version(place).strip())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [__version__] * 4
    assert len([path for path in images(place) if path.name.startswith("image-")]) == 1


def test_images_that_nobody_uses_are_removed(place: Path) -> None:
    base = place / f"headgate-{os.geteuid()}"
    base.mkdir(mode=0o700)
    for name in ("image-old", "image-used", "part-1-left", "other"):
        (base / name / "lib").mkdir(parents=True)
        (base / name / "lib/file").write_text("x")
    holder = subprocess.Popen(["flock", "--shared", str(base / "image-used"), "sleep", "1000"], stdout=subprocess.PIPE)
    try:
        wait_locked(base / "image-used")
        version(place)
    finally:
        for pid in (*children_of(holder.pid), holder.pid):
            os.kill(pid, signal.SIGKILL)
        holder.communicate()
    left = {path.name for path in images(place)}
    assert len(left) == 3
    assert {"image-used", "other"} < left


def wait_locked(folder: Path) -> None:
    number = folder.stat().st_ino
    while f":{number} " not in Path("/proc/locks").read_text():
        threading.Event().wait(0.01)


def test_a_folder_of_somebody_else_is_not_used(place: Path) -> None:
    base = place / f"headgate-{os.geteuid()}"
    base.mkdir(mode=0o700)
    os.chown(base, NOBODY, NOBODY)
    with pytest.raises(subprocess.CalledProcessError) as caught:
        version(place)
    assert "belongs to somebody else" in caught.value.stderr
    assert list(base.iterdir()) == []


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    program = built()
    assert program is not None
    data = bytearray(program.read_bytes())
    data[len(data) // 2] ^= 0xFF
    broken = tmp_path / "broken"
    broken.write_bytes(data)
    broken.chmod(0o755)
    environment = {"HEADGATE_UNPACK_DIR": str(tmp_path)}
    done = subprocess.run(
        [str(broken), "-V"], env=environment, capture_output=True, text=True, check=False, timeout=250
    )
    assert done.returncode == 1
    assert "the file of the program is damaged" in done.stderr
    assert images(tmp_path) == []
    broken.write_bytes(data[:-100])
    done = subprocess.run([str(broken), "-V"], capture_output=True, text=True, check=False, timeout=250)
    assert "is not complete" in done.stderr


def test_the_command_that_enters_the_root_reaches_nothing_else(root: Path) -> None:
    """What the tests stand on: a shell of the machine is not there."""
    done = subprocess.run(
        entered(root, "/bin/sh", "-c", "true"), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 127
