"""Settings of what is deployed, from the controller's environment."""

from __future__ import annotations

import pytest

from headgate.cluster.deploy.settings import ProxyImage, deploy_settings
from headgate.cluster.errors import ClusterError


def test_nothing_has_to_be_said() -> None:
    found = deploy_settings({}, "system", "a certificate", {})
    assert (found.xds_address, found.audience, found.image) == ("https://headgate.system.svc:9978", "headgate.dev/controller", ProxyImage())
    assert deploy_settings({}, "system", "", {}).xds_address == "http://headgate.system.svc:9978"


def test_all_can_be_said() -> None:
    image = {f"HEADGATE_PROXY_IMAGE_{name.upper()}": name for name in ProxyImage._fields}
    environ = {"HEADGATE_XDS_SERVICE_NAME": "own", "HEADGATE_XDS_SERVICE_PORT": "1", "HEADGATE_ISTIO_ENABLED": "true", **image}
    found = deploy_settings(environ, "system", "", {"headgate": {"name": "a"}})
    assert found.xds_address == "http://own.system.svc:1"
    assert found.image == ProxyImage(*ProxyImage._fields)
    assert (found.istio, found.class_parameters) == (True, {"headgate": {"name": "a"}})
    assert deploy_settings({"HEADGATE_XDS_ADDRESS": "https://away.test"}, "system", "", {}).xds_address == "https://away.test"


@pytest.mark.parametrize(("name", "value"), [("XDS_SERVICE_PORT", "0"), ("XDS_SERVICE_PORT", "x"), ("ISTIO_ENABLED", "yes")])
def test_what_is_wrong_is_refused(name: str, value: str) -> None:
    with pytest.raises(ClusterError, match=f"HEADGATE_{name}: "):
        deploy_settings({f"HEADGATE_{name}": value}, "system", "", {})
