"""What a GatewayClass claims is what the conformance suite has reported."""

from __future__ import annotations

from pathlib import Path

import yaml

from headgate.cluster.translate.features import SUPPORTED

REPORT = Path(__file__).parents[4] / "docs" / "gateway-api-conformance.yaml"
# The features of each profile that it always tests, and does not list.
CORE = {
    "GATEWAY-HTTP": ("Gateway", "ReferenceGrant", "HTTPRoute"),
    "GATEWAY-GRPC": ("Gateway", "ReferenceGrant", "GRPCRoute"),
    "GATEWAY-TLS": ("Gateway", "ReferenceGrant", "TLSRoute"),
}
# A feature that is in no profile of version 1.5.1, and the test that shows it.
OF_NO_PROFILE = {"GRPCRouteNamedRouteRule": "GRPCRouteNamedRule"}


def test_the_features_are_those_of_the_report() -> None:
    report = yaml.safe_load(REPORT.read_text())
    profiles = report["profiles"]
    # The suite writes them in any order.
    assert sorted(one["name"] for one in profiles) == sorted(CORE)
    found = {name for one in profiles for name in (*CORE[one["name"]], *one["extended"]["supportedFeatures"])}
    assert list(SUPPORTED) == sorted(found | set(OF_NO_PROFILE))
    assert set(OF_NO_PROFILE.values()) <= set(report["succeededProvisionalTests"])


def test_no_test_of_the_report_failed() -> None:
    parts = [one[part] for one in yaml.safe_load(REPORT.read_text())["profiles"] for part in ("core", "extended")]
    assert [part["result"] for part in parts] == ["success"] * 6
    assert not any(part["statistics"]["Failed"] or part["statistics"]["Skipped"] for part in parts)
    assert all(part["statistics"]["Passed"] for part in parts)
