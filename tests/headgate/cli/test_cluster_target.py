"""The way to a gateway, for a user without a home."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from headgate.cli import cluster_target
from headgate.cli.gwctl import root


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_a_user_without_a_home_has_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", staticmethod(no_home))
    assert not cluster_target.home().exists()
    with click.Context(root):
        assert cluster_target.is_here(None, False)


def test_the_home_of_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cluster_target.home() == tmp_path
