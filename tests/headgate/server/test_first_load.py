"""What changes while a gateway starts is not lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.config.load import FileSource, Loaded
from headgate.config.source_reader import SourceReader
from headgate.errors import ConfigErrors
from headgate.server.first_load import ATTEMPTS, first_load
from headgate.server.watch import fingerprint

ONE = "binds: [{port: 4000, listeners: []}]"
OTHER = "binds: [{port: 4001, listeners: []}]"


class Changing(SourceReader):
    """Reads a file that somebody writes to right after it was read, `times` times."""

    def __init__(self, path: Path, times: int) -> None:
        super().__init__(FileSource(str(path)))
        self.path, self.left, self.reads = path, times, 0

    def load(self, environ: object = None) -> Loaded:
        loaded = super().load()
        self.reads += 1
        if self.left:
            self.left -= 1
            self.path.write_text(OTHER + "\n" * self.left)
        return loaded


def ports(loaded: Loaded) -> list[str]:
    return [bind.address for bind in loaded.gateway.binds]


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    reader = Changing(path, 1)
    first = first_load(reader)
    assert "4001" in ports(first.loaded)[0]
    assert reader.reads == 2
    assert first.files == fingerprint([str(path)])


def test_a_change_after_the_reading_is_one(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    first = first_load(SourceReader(FileSource(str(path))))
    assert first.files == fingerprint(first.loaded.watched_files)
    path.write_text(OTHER + "\n")
    assert first.files != fingerprint(first.loaded.watched_files)


def test_a_file_that_changes_all_the_time_counts_as_changed(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(ONE)
    reader = Changing(path, 100)
    first = first_load(reader)
    assert reader.reads == ATTEMPTS
    assert first.files != fingerprint(first.loaded.watched_files)


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors):
        first_load(SourceReader(FileSource(str(tmp_path / "none.yaml"))))
