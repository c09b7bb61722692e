"""Files that the configuration names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


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
