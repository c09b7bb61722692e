"""`headgate convert` on the command line."""

from __future__ import annotations

import io
import stat
from pathlib import Path

import pytest

from headgate.cli import convert, main

FILE = """\
gateways: {default: {port: 8080}}
routes:
- name: cart
  backends: [{host: "cart.test:80", policies: {backendAuth: {key: sk-1}}}]
"""
# Half of it has no form.
HALF = FILE + "ui: {gateways: default}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "config.yaml"
    found.write_text(FILE)
    return found


def test_a_file_becomes_manifests_and_these_a_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = file.parent / "manifests"
    assert main.main(["convert", str(file), "-n", "shop", "-g", "web", "--class", "edge", "-o", str(folder)]) == 0
    names = sorted(one.name for one in folder.iterdir())
    assert names == [
        "gateway-shop-web.yaml", "gatewaybackend-shop-cart.yaml", "httproute-shop-cart.yaml", "secret-shop-cart.yaml",
    ]  # fmt: skip
    assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {0o600}
    assert capsys.readouterr() == ("", "")
    assert convert.run([str(folder), "-g", "web", "-n", "shop"]) == 0
    out = capsys.readouterr().out
    assert "host: cart.test:80" in out
    assert "value: sk-1" in out
    back = file.parent / "back.yaml"
    assert convert.run([*(str(one) for one in folder.iterdir()), "-o", str(back)]) == 0
    assert back.read_text() == out


def test_what_is_printed_can_be_read_from_standard_input(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert convert.run([str(file)]) == 0
    manifests = capsys.readouterr().out
    assert manifests.count("\n---\n") == 3
    monkeypatch.setattr("sys.stdin", io.StringIO(manifests))
    assert convert.run(["-"]) == 0
    assert "host: cart.test:80" in capsys.readouterr().out


def test_what_has_no_form_is_told_with_its_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(HALF)
    assert convert.run([str(file)]) == convert.LOST
    told = capsys.readouterr()
    assert told.out == ""
    assert f"not converted: ui: in a cluster, the admin page is only on the admin port ({file}:5)" in told.err
    assert "--partial" in told.err
    assert convert.run([str(file), "--partial"]) == 0
    told = capsys.readouterr()
    assert "kind: HTTPRoute" in told.out
    assert "not converted: ui" in told.err


def test_what_is_not_in_force_is_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert.run([str(file)]) == 0
    secret, _, rest = capsys.readouterr().out.partition("---\n")
    assert "kind: Secret" in secret
    manifest = file.parent / "manifest.yaml"
    manifest.write_text(rest)
    assert convert.run([str(manifest)]) == convert.LOST
    told = capsys.readouterr()
    assert (told.out, "not in force: GatewayBackend default/cart: " in told.err) == ("", True)
    assert convert.run([str(manifest), "--partial"]) == 0
    assert "port: 8080" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        ([], 2, "Missing argument"),
        (["/nowhere.yaml"], 1, "cannot read /nowhere.yaml: No such file"),
        (["--to", "resources", "-"], 1, "one configuration file"),
    ],
)
def test_wrong_command_lines(words: list[str], status: int, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert.run(words) == status
    assert why in capsys.readouterr().err


def test_a_file_with_faults_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("gateways: 1\n")
    assert convert.run([str(file)]) == 1
    assert "gateways: expected a map" in capsys.readouterr().err
    file.write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")
    assert convert.run([str(file)]) == 1
    assert "there is no Gateway among the objects" in capsys.readouterr().err


def test_an_unwritable_place_is_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert.run([str(file), "-o", str(file)]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_help_says_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert convert.run(["--help"]) == 0
    assert "kubectl apply -f -" in capsys.readouterr().out
