"""CPU time and memory of a tree of processes, on a /proc of the test's own and on the real one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.capacity.errors import BenchError
from headgate.capacity.usage import TargetMeter, listening_pid

TICKS = os.sysconf("SC_CLK_TCK")


def process(proc: Path, pid: int, parent: int, cpu: tuple[int, int, int, int], pss_kb: int | None, rss_pages: int = 0) -> None:
    fields = ["S", str(parent), *["0"] * 9, *map(str, cpu), *["0"] * 6, str(rss_pages), *["0"] * 10]
    (proc / str(pid) / "fd").mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(f"{pid} (a b) c) {' '.join(fields)}\n")
    if pss_kb is not None:
        (proc / str(pid) / "smaps_rollup").write_text(f"0-1 ---p [rollup]\nRss: 99999 kB\nPss: {pss_kb} kB\n")


def test_a_process_counts_with_all_below_it(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, (100, 20, 3, 4), 500)
    process(tmp_path, 11, 10, (50, 0, 0, 0), 300)
    process(tmp_path, 12, 11, (7, 0, 0, 0), None, rss_pages=2)
    process(tmp_path, 13, 1, (9999, 0, 0, 0), 9999)
    meter = TargetMeter(10, tmp_path)
    assert meter.tree() == [10, 11, 12]
    usage = meter.usage()
    assert usage.cpu_s == pytest.approx(184 / TICKS)
    assert usage.peak_kb == 800 + 2 * os.sysconf("SC_PAGE_SIZE") // 1024
    assert usage.processes == 3


def test_a_process_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no process 77"):
        TargetMeter(77, tmp_path)


def test_who_listens_at_a_port_is_the_one_that_others_come_from(tmp_path: Path) -> None:
    process(tmp_path, 20, 1, (0, 0, 0, 0), 1)
    process(tmp_path, 21, 20, (0, 0, 0, 0), 1)
    for pid in (20, 21):
        os.symlink("socket:[4711]", tmp_path / str(pid) / "fd" / "3")
    (tmp_path / "net").mkdir()
    row = "   0: 0100007F:1F90 00000000:0000 {} 00000000:00000000 00:00000000 00000000     0        0 4711 1"
    (tmp_path / "net" / "tcp").write_text("  sl  local_address ...\n" + row.format("0A") + "\n")
    assert listening_pid(8080, tmp_path) == 20
    assert listening_pid(8081, tmp_path) is None
    (tmp_path / "net" / "tcp").write_text("  sl  local_address ...\n" + row.format("01") + "\n")
    assert listening_pid(8080, tmp_path) is None


def test_the_real_proc() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert listening_pid(listener.getsockname()[1]) == os.getpid()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        meter = TargetMeter(os.getpid())
        assert child.pid in meter.tree()
        assert meter.usage().cpu_s > 0
        assert meter.usage().peak_kb > 1000
        child.communicate(b"\n")
