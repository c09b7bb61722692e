"""Settings of the controller that concern what it deploys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headgate import __version__
from headgate.cluster.snapshot import ObjectKey
from headgate.cluster.translate.gateway import CONTROLLER

AUDIENCE: Final = "headgate.dev/controller"
# Of a service that nobody asked a port of: it keeps its address.
DUMMY_PORT: Final = 443


class ProxyImage(NamedTuple):
    """The image of gateways where GatewayParameters do not say another; "" leaves a part out."""

    registry: str = ""
    repository: str = "headgate"
    tag: str = __version__
    digest: str = ""
    pull_policy: str = "IfNotPresent"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploySettings:
    """`controller`: name of the controller and of the manager of applied fields. `xds_address`: the URL that gateways
    find the controller at. `authority`: PEM of the CAs that sign its certificate; "" without TLS. `audience`: of the
    gateways' tokens. `class_parameters`: GatewayParameters of classes that name none themselves. `istio`: whether
    gateways are part of a mesh unless their parameters say otherwise.
    """

    xds_address: str
    controller: str = CONTROLLER
    authority: str = field(default="", repr=False)
    audience: str = AUDIENCE
    image: ProxyImage = field(default_factory=ProxyImage)
    class_parameters: Mapping[str, ObjectKey] = field(default_factory=dict)
    istio: bool = False
    dummy_port: int = DUMMY_PORT
    version: str = __version__
