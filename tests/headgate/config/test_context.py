"""Files that the configuration names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.config.load import FileSource, LoadErrors, load


def key_file(path: object) -> str:
    return f"llm: {{models: [{{name: m, provider: openai, params: {{apiKey: {{file: '{path}'}}}}}}]}}"


@pytest.mark.parametrize(
    ("content", "fault"),
    [(b"\xff", "the file is not UTF-8"), (b" \n", "a secret cannot be empty"), (b"a\nb", "control")],
)
def test_secret_files_are_checked_without_being_quoted(
    content: bytes, fault: str, faults: Callable[..., list[str]], tmp_path: Path
) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    (found,) = faults(key_file(path))
    assert fault in found


def test_a_file_is_looked_for_beside_the_configuration_and_then_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, here = tmp_path / "etc", tmp_path / "here"
    for folder in (beside, here):
        folder.mkdir()
    monkeypatch.chdir(here)
    config = beside / "c.yaml"
    config.write_text(key_file("keys/one"))

    def found() -> tuple[str, tuple[str, ...]]:
        try:
            loaded = load(FileSource(str(config)), environ={})
        except LoadErrors as error:
            return str(error), error.watched_files
        [router] = [route.backends[0].backend for route in loaded.gateway.binds[0].listeners[0].routes]
        return str(router.models[0].policies.auth.main.key.secret.reveal()), loaded.watched_files

    places = [str(folder / "keys/one") for folder in (beside, here)]
    told, watched = found()
    assert "cannot read 'keys/one': No such file or directory" in told
    assert watched == (str(config), *places), "it may come at either place"
    for folder, text in ((here, "here"), (beside, "beside")):
        (folder / "keys").mkdir()
        (folder / "keys/one").write_text(text)
        assert found()[0] == text
    assert found()[1] == (str(config), places[0])


def test_a_folder_is_no_file(faults: Callable[..., list[str]], tmp_path: Path) -> None:
    assert "Is a directory" in faults(key_file(tmp_path))[0]


def test_a_key_in_place_of_its_file_is_not_quoted(faults: Callable[..., list[str]]) -> None:
    key = r"-----BEGIN PRIVATE KEY-----\nMIIsecret\n-----END PRIVATE KEY-----\n"
    found = faults(
        f'gateways: {{default: {{port: 1, listeners: [{{protocol: HTTPS, tls: {{cert: "{key}", key: "{key}"}}}}]}}}}\n'
        f"routes: [{{backends: [{{host: 'x:1', policies: {{backendTLS: {{root: \"{key}\", cert: \"{key}\", key: \"{key}\"}}}}}}]}}]"
    )
    assert [one for one in found if "no readable" in one], found
    assert "several lines" in faults(key_file("a\\nb").replace("'", '"'))[0]
    assert not [one for one in found if "MII" in one or "BEGIN" in one]
