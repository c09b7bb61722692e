"""Where the starter of the one-file program unpacks, with a small image in the place of the gateway's."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.deploy.script_rig import script

build = script("ci/binary/build.py")
SOMEBODY = 4321
TRAILER = struct.calcsize("<8sQQQQ16s")     # bytes, as ci/binary/build.py writes it
# In the place of the interpreter: tells what it was called with.
TELLS = '#include <stdio.h>\nint main(int n, char **w) { while (n--) puts(*w++); return 0; }\n'

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="folders of other users need root"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="the starter needs a C compiler"),
    pytest.mark.skipif(not Path("/usr/include/zstd.h").exists(), reason="the starter needs libzstd-dev"),
]
Start = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter with an image whose interpreter tells its arguments."""
    folder = tmp_path_factory.mktemp("starter")
    tree = folder / "image"
    (tree / "bin").mkdir(parents=True)
    (folder / "tells.c").write_text(TELLS)
    subprocess.run(["cc", "-static", "-o", str(tree / "bin/python3"), str(folder / "tells.c")], check=True)
    (tree / "lib/deep/er").mkdir(parents=True)
    for name in ("lib/a", "lib/deep/b", "lib/deep/er/c"):
        (tree / name).write_text(name)
    found = folder / "headgate"
    found.write_bytes(build.joined(build.starter(folder), build.archive(tree, 0), 1))
    found.chmod(0o755)
    return found


def start(program: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a start in this environment does, which has nothing else."""
    return subprocess.run(
        [str(program), *words], env=environment, capture_output=True, text=True, check=False, timeout=100
    )


def made(folder: Path, mode: int, owner: int = 0) -> Path:
    """A new folder."""
    folder.mkdir(parents=True)
    os.chown(folder, owner, owner)
    folder.chmod(mode)
    return folder


def used(done: subprocess.CompletedProcess[str]) -> Path:
    """The folder of all images that a start has used."""
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[0]).parents[2]


def test_the_interpreter_gets_the_arguments(program: Path, tmp_path: Path) -> None:
    done = start(program, "a b", "-V", HEADGATE_UNPACK_DIR=str(tmp_path))
    assert used(done) == tmp_path / "headgate-0"
    assert done.stdout.splitlines()[1:] == ["-I", str(Path(done.stdout.splitlines()[0]).with_name("headgate")), "a b", "-V"]


@pytest.mark.parametrize(
    ("mode", "owner"), [(0o755, SOMEBODY), (0o1777, SOMEBODY), (0o777, 0), (0o1775, SOMEBODY)], ids=oct
)
def test_a_folder_in_which_others_may_rename_is_not_used(mode: int, owner: int, program: Path, tmp_path: Path) -> None:
    """They would put an image of theirs in the place of the one that was looked at."""
    place = made(tmp_path / "place", mode, owner)
    below = made(place / "below", 0o700)
    for one in (place, below):
        done = start(program, HEADGATE_UNPACK_DIR=str(one))
        assert done.returncode == 1
        assert f"{one}: somebody else could replace what is in it" in done.stderr
        assert not (one / "headgate-0").exists()


@pytest.mark.parametrize("mode", [0o1777, 0o755, 0o775], ids=oct)
def test_a_folder_in_which_they_may_not_is_used(mode: int, program: Path, tmp_path: Path) -> None:
    place = made(tmp_path / "place", mode)
    assert used(start(program, HEADGATE_UNPACK_DIR=str(place))) == place / "headgate-0"


def can_mount() -> bool:
    probe = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    return probe.returncode == 0


def test_a_volume_that_is_open_to_all_is_used(program: Path, tmp_path: Path) -> None:
    """As Kubernetes mounts an emptyDir: only its containers have it."""
    if shutil.which("unshare") is None or not can_mount():
        pytest.skip("mounts of its own are not allowed here")
    place = made(tmp_path / "place", 0o700)
    mounts = 'mount -t tmpfs -o mode=0777 tmpfs "$1" && HEADGATE_UNPACK_DIR=$1 exec "$2"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounts, "sh", str(place), str(program)],
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert used(done) == place / "headgate-0"


def test_a_link_is_followed_once(program: Path, tmp_path: Path) -> None:
    place = made(tmp_path / "place", 0o700)
    link = made(tmp_path / "open", 0o777, SOMEBODY) / "link"
    link.symlink_to(place)
    done = start(program, HEADGATE_UNPACK_DIR=str(link))
    assert used(done) == place / "headgate-0"
    assert str(link) not in done.stdout


def test_nothing_is_made_in_the_home_of_somebody_else(program: Path, tmp_path: Path) -> None:
    """`sudo` may leave HOME as it is."""
    home = made(tmp_path / "home", 0o755, SOMEBODY)
    other = made(tmp_path / "other", 0o700)
    assert used(start(program, HOME=str(home), TMPDIR=str(other))) == other / "headgate-0"
    assert list(home.iterdir()) == []


def test_a_home_of_ones_own_gets_a_cache(program: Path, tmp_path: Path) -> None:
    assert used(start(program, HOME=str(tmp_path))) == tmp_path / ".cache/headgate-0"


def test_a_home_with_too_long_a_path_is_passed_over(program: Path, tmp_path: Path) -> None:
    assert used(start(program, HOME="/" + "x" * 4090, TMPDIR=str(tmp_path))) == tmp_path / "headgate-0"


def test_without_proc_it_is_the_file_that_was_executed(program: Path, tmp_path: Path) -> None:
    """Its first word is a name; a file of this name in the folder of the call is another one."""
    root = made(tmp_path / "root", 0o755)
    shutil.copy(program, root / "headgate")
    made(root / "tmp", 0o1777)
    hostile = made(root / "hostile", 0o755) / "headgate"
    hostile.write_bytes(b"something else" * 100)

    def enter() -> None:
        os.chroot(root)
        os.chdir("/hostile")

    done = subprocess.run(
        ["headgate"], executable="/headgate", env={}, preexec_fn=enter, capture_output=True, text=True, check=False
    )
    assert used(done) == Path("/tmp/headgate-0")


# -- what cleans folders of old files ----------------------------------------------------------------------------------
def image_of(place: Path) -> Path:
    [found] = [path for path in (place / "headgate-0").iterdir() if path.name.startswith("image-")]
    return found


@pytest.mark.parametrize("gone", ["lib/a", "lib/deep/er/c", "lib/deep/er", "bin/python3"])
def test_an_image_without_one_of_its_files_is_unpacked_anew(gone: str, program: Path, tmp_path: Path) -> None:
    used(start(program, HEADGATE_UNPACK_DIR=str(tmp_path)))
    missing = image_of(tmp_path) / gone
    shutil.rmtree(missing) if missing.is_dir() else missing.unlink()
    before = image_of(tmp_path).stat().st_ino
    assert used(start(program, HEADGATE_UNPACK_DIR=str(tmp_path))) == tmp_path / "headgate-0"
    assert missing.exists()
    assert image_of(tmp_path).stat().st_ino != before
    assert list((tmp_path / "headgate-0").iterdir()) == [image_of(tmp_path)], "what was left of the old one is removed"


def test_one_with_more_files_is_used(program: Path, tmp_path: Path) -> None:
    used(start(program, HEADGATE_UNPACK_DIR=str(tmp_path)))
    (image_of(tmp_path) / "lib/more").touch()
    used(start(program, HEADGATE_UNPACK_DIR=str(tmp_path)))
    assert (image_of(tmp_path) / "lib/more").exists()


def test_an_image_stays_as_it_is_where_no_other_can_be_unpacked(program: Path, tmp_path: Path) -> None:
    """A gateway may run in it that does not need what is gone."""
    used(start(program, HEADGATE_UNPACK_DIR=str(tmp_path)))
    image = image_of(tmp_path)
    (image / "lib/a").unlink()
    before = sorted(image.rglob("*"))
    damaged = tmp_path / "damaged"
    data = bytearray(program.read_bytes())
    offset, packed = struct.unpack_from("<QQ", data, len(data) - TRAILER + 8)
    data[offset + packed // 2] ^= 255
    damaged.write_bytes(data)
    damaged.chmod(0o755)
    done = start(damaged, HEADGATE_UNPACK_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "the file of the program is damaged" in done.stderr
    assert sorted(image.rglob("*")) == before
    assert list((tmp_path / "headgate-0").iterdir()) == [image]


def waits_for(pid: int, folder: Path) -> bool:
    """Whether a process waits for the lock of a folder (proc_locks(5))."""
    wanted = re.compile(rf"-> FLOCK .* {pid} [0-9a-f:]+:{folder.stat().st_ino} ")
    return wanted.search(Path("/proc/locks").read_text()) is not None


def test_of_two_starts_one_leaves_the_image_of_the_other(program: Path, tmp_path: Path) -> None:
    """Both have seen that files are gone; the one that is slower would take from the other what it runs in."""
    used(start(program, HEADGATE_UNPACK_DIR=str(tmp_path)))
    base, image = tmp_path / "headgate-0", image_of(tmp_path)
    shutil.copytree(image, tmp_path / "whole")
    (image / "lib/a").unlink()
    lock = os.open(base, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with subprocess.Popen([str(program)], env={"HEADGATE_UNPACK_DIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True) as slow:
        while not waits_for(slow.pid, base):
            assert slow.poll() is None, "it does not wait for its turn"
            time.sleep(0.01)
        image.rename(base / "part-quick")
        (tmp_path / "whole").rename(image)
        quick = image.stat().st_ino
        os.close(lock)
        assert slow.communicate(timeout=100)[0].startswith(str(image))
    assert slow.returncode == 0
    assert image.stat().st_ino == quick
    assert list(base.iterdir()) == [image]


def cleaned(place: Path) -> None:
    """What systemd does each day, for everything that is old: here, all there is."""
    rules = place.with_name("rules.conf")
    rules.write_text(f"d {place} - - - 0\n")
    subprocess.run(["systemd-tmpfiles", "--clean", str(rules)], check=True, timeout=100, capture_output=True)


@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="systemd-tmpfiles is not installed")
def test_systemd_cleans_no_image_that_is_in_use(program: Path, tmp_path: Path) -> None:
    place = made(tmp_path / "place", 0o700)
    used(start(program, HEADGATE_UNPACK_DIR=str(place)))
    image = image_of(place)
    files = sorted(image.rglob("*"))
    # As a gateway has it.
    with subprocess.Popen(["flock", "--shared", str(image), "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write(b"locked\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == b"locked\n"
        cleaned(place)
        assert sorted(image.rglob("*")) == files
        holder.stdin.close()
    cleaned(place)
    assert not (image / "lib/a").exists()
    assert used(start(program, HEADGATE_UNPACK_DIR=str(place))) == place / "headgate-0"
    assert sorted(image_of(place).rglob("*")) == files
