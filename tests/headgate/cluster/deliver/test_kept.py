"""The file with a data plane's last state."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.cluster.deliver import kept
from headgate.cluster.deliver.kept import KeptState, StateFile
from headgate.config.delivered import DeliveredPart

PARTS = {
    "route/a": DeliveredPart("routes", "listener/x", ((0, 1), (2, ((1, "é"),))), '{"name":"a\\n"}'),
    "bind/1": DeliveredPart("binds", "", (), '{"port":1}'),
}
VERSIONS = {"route/a": "v1", "bind/1": "v2"}
GOOD = {"route/a": DeliveredPart("routes", "listener/x", (), "{}")}


def saved(folder: Path) -> tuple[StateFile, Path]:
    file = StateFile(str(folder), "shop~web")
    file.save(VERSIONS, PARTS, GOOD)
    return file, folder / "delivered-state"


def test_a_state_comes_back(tmp_path: Path) -> None:
    file, path = saved(tmp_path)
    assert file.load() == KeptState(VERSIONS, PARTS, GOOD)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["delivered-state"]
    file.save({}, {}, {})
    assert file.load() == KeptState({}, {}, {})


def test_without_a_file_there_is_no_state(tmp_path: Path) -> None:
    assert StateFile(str(tmp_path), "shop~web").load() is None
    assert StateFile(str(tmp_path / "gone"), "shop~web").load() is None


def test_what_another_process_left_half_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "delivered-state.new").write_text("half")
    file, _ = saved(tmp_path)
    assert file.load() is not None


@pytest.mark.parametrize("at", range(0, 400, 13))
def test_a_file_that_is_spoiled_is_not_used(tmp_path: Path, at: int) -> None:
    file, path = saved(tmp_path)
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 1
    path.write_bytes(content)
    found = file.load()
    # A digit of a number in the head may change without a loss of meaning only if it is not looked at.
    assert found is None


@pytest.mark.parametrize("length", [0, 1, 50, 200, -1])
def test_a_file_that_is_cut_is_not_used(tmp_path: Path, length: int) -> None:
    file, path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:length])
    assert file.load() is None


def test_a_file_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    file, path = saved(tmp_path)
    path.chmod(0o640)
    assert file.load() is None


def test_a_link_or_a_pipe_is_not_used(tmp_path: Path) -> None:
    file, path = saved(tmp_path)
    path.rename(tmp_path / "real")
    path.symlink_to(tmp_path / "real")
    assert file.load() is None
    path.unlink()
    os.mkfifo(path, 0o600)
    assert file.load() is None


def test_the_state_of_another_gateway_is_not_used(tmp_path: Path) -> None:
    saved(tmp_path)
    assert StateFile(str(tmp_path), "shop~other").load() is None


def test_a_state_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, path = saved(tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr(kept, "MAX_BYTES", 10)
    with pytest.raises(OSError, match="more than 10 bytes"):
        file.save(VERSIONS, PARTS, GOOD)
    assert path.read_bytes() == before
