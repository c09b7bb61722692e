"""Some tests of the Gateway API conformance suite, unmodified, against the controller. `make conformance-gateway` runs all."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from cluster_lab import LAB

from headgate.cluster.translate.features import SUPPORTED

# Seconds: the set-up alone starts 24 pods and four gateways, beside whatever else the machine does.
PATIENCE = 840
# One each of listeners, addresses, references, matching, and of what is proxied over TLS and gRPC; all need the base objects alone.
CHOSEN = (
    "GatewayModifyListeners",
    "GatewayStaticAddresses",
    "HTTPRouteSimpleSameNamespace",
    "HTTPRouteReferenceGrant",
    "HTTPRouteHTTPSListener",
    "GRPCExactMethodMatching",
    "TLSRouteSimpleSameNamespace",
)


@pytest.fixture
def suite() -> Path:
    """The folder of the suite's programs; skips the test without them, or without a network namespace to run them in."""
    environment = {**os.environ, "KUBETEST_BUILD": "0", "CONFORMANCE": "1"}
    found = subprocess.run([LAB / "recipe.sh"], env=environment, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("no conformance suite: make conformance-gateway builds it (KUBETEST_CACHE)")
    try:
        isolated = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--net", "ip", "link", "set", "lo", "up"],
            capture_output=True, check=False,
        )  # fmt: skip
    except FileNotFoundError as error:
        pytest.skip(f"no {error.filename}")
    if isolated.returncode:
        pytest.skip(f"no network namespaces: {isolated.stderr.decode(errors='replace').strip()}")
    return Path(found.stdout.strip())


@pytest.mark.timeout(PATIENCE + 60)
def test_chosen_conformance_tests_pass(suite: Path, tmp_path: Path) -> None:
    command = [
        LAB / "conformance-gateway.sh", tmp_path / "run", "-test.run", f"^TestConformance$/^({'|'.join(CHOSEN)})$",
        "-supported-features", ",".join(SUPPORTED),
    ]  # fmt: skip
    environment = {**os.environ, "KUBETEST_OUT": str(suite)}
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False
    )
    passed = re.findall(r"^ {4}--- PASS: TestConformance/(\w+) ", ran.stdout, re.MULTILINE)
    assert ran.returncode == 0, f"{ran.stdout[-4000:]}\n{ran.stderr[-1000:]}"
    assert sorted(passed) == sorted(CHOSEN)
