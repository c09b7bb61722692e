from __future__ import annotations

import pytest

from headgate.ir.policy.cloud_auth import AwsAuth, AzureAuth, GcpAuth
from headgate.policy.cloud.steps import placed


def test_what_a_host_decides() -> None:
    host = "abc.execute-api.eu-west-1.amazonaws.com"
    assert placed(AwsAuth(), host, {}) == AwsAuth(region="eu-west-1", service="execute-api")
    assert placed(AwsAuth(region="x", service="y"), host, {}) == AwsAuth(region="x", service="y")
    assert placed(AwsAuth(service="s"), "127.0.0.1", {"AWS_DEFAULT_REGION": "r"}) == AwsAuth(region="r", service="s")
    assert placed(GcpAuth(kind="idToken"), "a.run.app", {}) == GcpAuth(kind="idToken", audience="https://a.run.app")
    assert placed(GcpAuth(kind="idToken", audience="b"), "a.run.app", {}).audience == "b"  # type: ignore[union-attr]
    assert placed(GcpAuth(), "a", {}) == GcpAuth()
    assert placed(AzureAuth(), "a", {}) == AzureAuth()


@pytest.mark.parametrize(("auth", "missing"), [(AwsAuth(service="s"), "a region"), (AwsAuth(region="r"), "a service name")])
def test_what_nobody_tells_is_a_fault(auth: AwsAuth, missing: str) -> None:
    with pytest.raises(ValueError, match=f"needs {missing}: it cannot be derived from the host 'h.test'"):
        placed(auth, "h.test", {})
