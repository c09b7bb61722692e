"""Settings of the controller that concern what it deploys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headgate import __version__
from headgate.cluster.errors import ClusterError
from headgate.cluster.translate.gateway import CONTROLLER

Json = dict[str, Any]
PREFIX: Final = "HEADGATE_"
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
    gateways' tokens. `class_parameters`: by class, the `parametersRef`
    of those that have none themselves. `istio`: whether
    gateways are part of a mesh unless their parameters say otherwise.
    """

    xds_address: str
    controller: str = CONTROLLER
    authority: str = field(default="", repr=False)
    audience: str = AUDIENCE
    image: ProxyImage = field(default_factory=ProxyImage)
    class_parameters: Mapping[str, Json] = field(default_factory=dict)
    istio: bool = False
    dummy_port: int = DUMMY_PORT
    version: str = __version__


def deploy_settings(
    environ: Mapping[str, str], namespace: str, authority: str, class_parameters: Mapping[str, Json]
) -> DeploySettings:
    """Return the settings that the controller's environment says. `namespace`: of the controller, where its Service is.
    `authority`: PEM of what signs its certificate, "" where it speaks without TLS. Raises ClusterError."""

    def text(name: str, default: str) -> str:
        return environ.get(PREFIX + name) or default

    port, istio = text("XDS_SERVICE_PORT", "9978"), text("ISTIO_ENABLED", "false")
    if not (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65_536):
        raise ClusterError(f"{PREFIX}XDS_SERVICE_PORT: a port is expected, found {port!r}")
    if istio not in ("true", "false"):
        raise ClusterError(f"{PREFIX}ISTIO_ENABLED: one of true, false is expected, found {istio!r}")
    host = f"{text('XDS_SERVICE_NAME', 'headgate')}.{namespace}.svc"
    image = ProxyImage()
    return DeploySettings(
        xds_address=text("XDS_ADDRESS", f"{'https' if authority else 'http'}://{host}:{port}"),
        authority=authority,
        audience=text("XDS_AUDIENCE", AUDIENCE),
        class_parameters=class_parameters,
        istio=istio == "true",
        image=ProxyImage(
            registry=text("PROXY_IMAGE_REGISTRY", image.registry),
            repository=text("PROXY_IMAGE_REPOSITORY", image.repository),
            tag=text("PROXY_IMAGE_TAG", image.tag),
            digest=text("PROXY_IMAGE_DIGEST", image.digest),
            pull_policy=text("PROXY_IMAGE_PULL_POLICY", image.pull_policy),
        ),
    )
