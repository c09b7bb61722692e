"""The configuration file as something that is written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.config.config_file import Changed, ConfigFile
from headgate.errors import ConfigErrors

TEXT = "# kept\ngateways: {default: {port: 3000}}\nroutes: [{name: a, backends: [{host: 'a:1', policies: {backendAuth: {key: hidden}}}]}]\n"


@pytest.fixture
def file(tmp_path: Path) -> ConfigFile:
    path = tmp_path / "config.yaml"
    path.write_text(TEXT)
    return ConfigFile(str(path))


def test_a_change_is_written_with_a_backup(file: ConfigFile) -> None:
    Path(file.path).chmod(0o600)
    shown = file.shown()
    assert "hidden" not in shown.text
    revision = file.change(shown.text.replace("name: a", "name: b"), shown.revision)
    held = file.read()
    assert held.revision == revision
    assert held.text == TEXT.replace("name: a", "name: b").replace("hidden", '"hidden"')
    assert Path(f"{file.path}.bak").read_text() == TEXT
    # The secrets are in both.
    assert [Path(name).stat().st_mode & 0o777 for name in (file.path, f"{file.path}.bak")] == [0o600, 0o600]


def test_what_does_not_load_is_not_written(file: ConfigFile) -> None:
    with pytest.raises(ConfigErrors) as caught:
        file.change(TEXT.replace("port: 3000", "port: none"))
    assert [(one.path, one.line) for one in caught.value.errors] == [("gateways.default.port", 2)]
    assert file.read().text == TEXT
    assert not Path(f"{file.path}.bak").exists()


def test_an_edit_of_an_older_file_is_refused(file: ConfigFile) -> None:
    old = file.shown()
    Path(file.path).write_text(TEXT + "# mine\n")
    with pytest.raises(Changed):
        file.change(old.text, old.revision)
    assert file.read().text == TEXT + "# mine\n"


def test_a_file_that_changes_while_it_is_written_is_not_lost(file: ConfigFile, monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate.config import config_file

    real = config_file.replace_file

    def late(path: str, data: bytes, ready: Callable[[], None] | None = None, like: str | None = None) -> None:
        Path(file.path).write_text(TEXT + "# theirs\n")
        real(path, data, ready, like)

    monkeypatch.setattr(config_file, "replace_file", late)
    with pytest.raises(Changed):
        file.change(TEXT.replace("name: a", "name: b"))
    assert file.read().text == TEXT + "# theirs\n"


def test_readers_never_see_half_of_it(file: ConfigFile) -> None:
    seen: set[str] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.add(Path(file.path).read_text())

    reader = threading.Thread(target=look)
    reader.start()
    texts = [TEXT.replace("name: a", f"name: a{number}") for number in range(40)]
    for text in texts:
        file.change(text)
    stop.set()
    reader.join()
    assert seen <= {TEXT, *texts}


def test_files_beside_it_are_found(file: ConfigFile) -> None:
    (Path(file.path).parent / "key.txt").write_text("k")
    file.change(TEXT.replace("key: hidden", "key: {file: key.txt}"))
    with pytest.raises(ConfigErrors, match="no-key"):
        file.change(TEXT.replace("key: hidden", "key: {file: no-key.txt}"))


def test_a_document_gets_the_schema_line_of_the_file(file: ConfigFile) -> None:
    assert file.text_of({"a": 1}) == "# yaml-language-server: $schema=config.schema.json\na: 1\n"
    Path(file.path).write_text("# yaml-language-server: $schema=../x.json\n" + TEXT)
    assert file.text_of({}) == "# yaml-language-server: $schema=../x.json\n{}\n"
