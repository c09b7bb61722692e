"""Puts the controller together with what sends configurations to gateways and with what deploys them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, cast

from headgate.cluster.calls import ApiCalls
from headgate.cluster.controller.parts import MakeParts, Parts, Warned
from headgate.cluster.controller.settings import ControllerSettings, SettingReader
from headgate.cluster.deliver.service import DeliveryService
from headgate.cluster.deliver.settings import AUDIENCE, PORT, DeliverySettings, Mode
from headgate.cluster.deliver.states import GatewayStates
from headgate.cluster.deploy.deployer import Deployer
from headgate.cluster.deploy.local import LocalDeployer
from headgate.cluster.deploy.outcome import Deployed
from headgate.cluster.deploy.reconciler import GatewayReconciler
from headgate.cluster.deploy.settings import deploy_settings
from headgate.cluster.snapshot import ObjectKey, Snapshot

MODES: Final = ("tls", "either", "plaintext")
SERVICE: Final = "headgate"
_LOCAL_HOST: Final = "127.0.0.1"


class LocalGateways(NamedTuple):
    """Gateways as processes of this machine. `addresses`: the range that each gets one of; `folder`: where their files
    stay when the controller ends, None where they end with it."""

    addresses: str
    folder: Path | None = None


def delivery_settings(environ: Mapping[str, str], namespace: str, *, local: bool) -> DeliverySettings:
    """Return the settings of the delivery. `local`: gateways are on this machine. Raises ClusterError."""
    reader = SettingReader(environ)
    service = reader.text("XDS_SERVICE_NAME", SERVICE)
    names = () if local else tuple(f"{service}{end}" for end in (
        "", f".{namespace}", f".{namespace}.svc", f".{namespace}.svc.cluster.local"
    ))  # fmt: skip
    extra = tuple(one.strip() for one in reader.text("XDS_NAMES", "").split(",") if one.strip())
    return DeliverySettings(
        host=_LOCAL_HOST if local else reader.text("XDS_HOST", DeliverySettings().host),
        port=reader.port("XDS_PORT", PORT),
        mode=cast(Mode, reader.choice("XDS_MODE", MODES, "tls")),
        authenticate=reader.choice("XDS_AUTH", ("true", "false"), "true") == "true",
        audience=reader.text("XDS_AUDIENCE", AUDIENCE),
        plain_secrets=reader.flag("XDS_PLAIN_SECRETS"),
        namespace=namespace,
        names=("localhost", _LOCAL_HOST, *names, *extra),
    )


class DeployerOfLeader:
    """A deployer that is made when this replica leads: by then it is known which certificates gateways need."""

    def __init__(self, make: Callable[[], GatewayReconciler]) -> None:
        self._make = make
        self._made: GatewayReconciler | None = None
        self._wanted: Snapshot | None = None
        self.warned: Warned = lambda _key, _reason, _message: None

    def want(self, snapshot: Snapshot) -> None:
        self._wanted = snapshot
        if self._made is not None:
            self._made.want(snapshot)

    async def run(self) -> None:
        """Work until it is cancelled. Raises ClusterError for addresses that cannot be used, and OSError."""
        made = self._made = self._made or self._make()
        made.warned = self.warned
        if self._wanted is not None:
            made.want(self._wanted)
        made.lead(True)
        try:
            await made.run()
        finally:
            made.lead(False)

    def results(self) -> dict[ObjectKey, Deployed]:
        return {} if self._made is None else self._made.results()


def parts_of(
    environ: Mapping[str, str], settings: ControllerSettings, local: LocalGateways | None = None
) -> MakeParts:
    """Return what makes the parts that the environment says. Raises ClusterError."""
    delivery = delivery_settings(environ, settings.namespace, local=local is not None)
    # What is wrong is told now.
    deploy_settings(environ, settings.namespace, "", settings.class_parameters)

    def make(calls: ApiCalls, changed: Callable[[], None]) -> Parts:
        states = GatewayStates(changed)
        service = DeliveryService(states, calls, delivery)

        def deployer() -> GatewayReconciler:
            authority = (service.authority() or b"").decode()
            found = environ
            if local is not None:
                scheme = "https" if authority else "http"
                found = {"HEADGATE_XDS_ADDRESS": f"{scheme}://{_LOCAL_HOST}:{service.port}", **environ}
            made = deploy_settings(found, settings.namespace, authority, settings.class_parameters)
            if local is not None:
                return LocalDeployer(calls, made, changed, *local)
            return Deployer(calls, made, changed)

        return Parts(states, service, DeployerOfLeader(deployer))

    return make
