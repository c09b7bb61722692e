"""`headgate controller` without the libraries of its extra."""

from __future__ import annotations

import sys

import pytest

from headgate.cli import controller
from headgate.cluster.errors import ClusterError
from headgate.config.extras import ONE_FILE


@pytest.mark.parametrize("module", ["aiohttp", "envoy.service.discovery.v3.discovery_pb2", "grpc"])
def test_the_extra_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ClusterError) as caught:
        controller._run({"kubeconfig": None}, {})
    assert str(caught.value) == f"needs the library {module}, which is not installed: pip install 'headgate[controller]'"


def test_the_one_file_program_says_what_to_install_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    monkeypatch.setenv(ONE_FILE, "/usr/bin/headgate")
    with pytest.raises(ClusterError, match=r"not in the one-file program: install the package instead: pip install 'headgate\[con"):
        controller._run({"kubeconfig": None}, {})
