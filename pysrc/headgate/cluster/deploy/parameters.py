"""GatewayParameters of a Gateway and its class: typed fields merged, overlays in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from headgate.cluster.deploy.outcome import DeployRefused
from headgate.cluster.deploy.settings import DeploySettings, ProxyImage
from headgate.cluster.resources.parameters import OVERLAYS
from headgate.cluster.snapshot import GATEWAY_CLASS, OWN, GroupKind, Snapshot, key_of

Json = dict[str, Any]
PARAMETERS: Final = GroupKind(OWN, "GatewayParameters")
DEPLOYMENT: Final = "Deployment"
DAEMON_SET: Final = "DaemonSet"
LEAST_SECONDS: Final = 10
MOST_SECONDS: Final = 60
# Which overlays a kind of workload cannot have.
_UNFIT: Final = {DEPLOYMENT: ("daemonSet",), DAEMON_SET: ("deployment", "horizontalPodAutoscaler")}
_SESSION_KEY: Final = "SESSION_KEY"


class ParameterLayer(NamedTuple):
    """GatewayParameters, and what names them. `origin`: for messages."""

    origin: str
    spec: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedParameters:
    """Typed fields of both layers, and the overlays by their name, the class's before the Gateway's. `shortest` and
    `longest`: seconds of a shutdown."""

    image: ProxyImage
    workload: str
    env: tuple[Json, ...]
    resources: Json
    shortest: int
    longest: int
    log_level: str | None
    log_format: str | None
    raw: Json
    spiffe: Json | None
    catalog: tuple[Json, ...]
    overlays: Mapping[str, tuple[Json, ...]]

    @property
    def own_session_key(self) -> bool:
        """Whether the environment says the session key, so that the controller has none to make."""
        return any(one["name"] == _SESSION_KEY for one in self.env)


def merged_parameters(snapshot: Snapshot, gateway: Json, settings: DeploySettings) -> MergedParameters:
    """Raises DeployRefused where a reference leads nowhere, or what it leads to cannot be used."""
    of_class = _class_layer(snapshot, gateway, settings)
    of_gateway = _gateway_layer(snapshot, gateway)
    layers = [one for one in (of_class, of_gateway) if one is not None]
    specs = [one.spec for one in layers]
    workload = _fields(specs, "workload").get("kind") or DEPLOYMENT
    logging = _fields(specs, "logging")
    shutdown = _last(specs, "shutdown") or {}
    shortest, longest = int(shutdown.get("min", LEAST_SECONDS)), int(shutdown.get("max", MOST_SECONDS))
    if shortest > longest:
        raise DeployRefused(f"{layers[-1].origin}: shutdown: min {shortest} is greater than max {longest}")
    _refuse_mesh(specs, settings)
    _check_overlays(layers, workload)
    spiffe = _last(specs, "spiffe")
    return MergedParameters(
        image=_image(specs, settings.image),
        workload=workload,
        env=_environment(specs),
        resources=_resources(specs),
        shortest=shortest,
        longest=longest,
        log_level=logging.get("level"),
        log_format=logging.get("format"),
        raw=_last(specs, "rawConfig") or {},
        spiffe=None if spiffe is None or spiffe.get("enabled") is False else spiffe,
        catalog=_catalog(of_gateway),
        overlays={name: tuple(spec[name] for spec in specs if spec.get(name)) for name in OVERLAYS},
    )


def parameter_documents(snapshot: Snapshot, gateway: Json, settings: DeploySettings) -> tuple[Json | None, ...]:
    """Return the objects that the merged parameters come from: of the class and of the Gateway, None for none."""
    found = []
    for reference, namespace in (_class_reference(snapshot, gateway, settings), _gateway_reference(gateway)):
        found.append(None if reference is None else snapshot.find(PARAMETERS, namespace, str(reference.get("name"))))
    return tuple(found)


def _class_reference(snapshot: Snapshot, gateway: Json, settings: DeploySettings) -> tuple[Json | None, str]:
    name = gateway["spec"]["gatewayClassName"]
    found = snapshot.find(GATEWAY_CLASS, "", name)
    reference = None if found is None else found["spec"].get("parametersRef")
    if reference is None and (configured := settings.class_parameters.get(name)) is not None:
        reference = {**PARAMETERS._asdict(), **configured}
    return reference, "" if reference is None else reference.get("namespace") or ""


def _gateway_reference(gateway: Json) -> tuple[Json | None, str]:
    reference = (gateway["spec"].get("infrastructure") or {}).get("parametersRef")
    return reference, key_of(gateway).namespace


def _class_layer(snapshot: Snapshot, gateway: Json, settings: DeploySettings) -> ParameterLayer | None:
    reference, namespace = _class_reference(snapshot, gateway, settings)
    origin = f"GatewayClass {gateway['spec']['gatewayClassName']}: parametersRef"
    if reference is not None and not namespace:
        raise DeployRefused(f"{origin}: a namespace is needed")
    return _layer(snapshot, reference, namespace, origin)


def _gateway_layer(snapshot: Snapshot, gateway: Json) -> ParameterLayer | None:
    reference, namespace = _gateway_reference(gateway)
    return _layer(snapshot, reference, namespace, "infrastructure.parametersRef")


def _layer(snapshot: Snapshot, reference: Json | None, namespace: str, origin: str) -> ParameterLayer | None:
    if reference is None:
        return None
    kind = GroupKind(reference.get("group", ""), reference.get("kind", ""))
    if kind != PARAMETERS:
        shown = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
        raise DeployRefused(f"{origin}: {shown} is no {PARAMETERS.kind}.{PARAMETERS.group}")
    found = snapshot.find(PARAMETERS, namespace, reference["name"])
    where = f"{PARAMETERS.kind} {namespace}/{reference['name']}"
    if found is None:
        raise DeployRefused(f"{origin}: {where} not found")
    return ParameterLayer(f"{origin}: {where}", found.get("spec") or {})


def _last(specs: Sequence[Json], name: str) -> Any:
    return next((spec[name] for spec in reversed(specs) if spec.get(name) is not None), None)


def _fields(specs: Sequence[Json], name: str) -> Json:
    """Return an object that is merged field by field."""
    found: Json = {}
    for spec in specs:
        found.update(spec.get(name) or {})
    return found


def _image(specs: Sequence[Json], known: ProxyImage) -> ProxyImage:
    fields = _fields(specs, "image")
    names = {"pullPolicy": "pull_policy"}
    return known._replace(**{names.get(key, key): value for key, value in fields.items()})


def _environment(specs: Sequence[Json]) -> tuple[Json, ...]:
    """Return variables by name: a later layer replaces one in its place, and adds others behind."""
    found: dict[str, Json] = {}
    for spec in specs:
        found.update((one["name"], one) for one in spec.get("env") or ())
    return tuple(found.values())


def _resources(specs: Sequence[Json]) -> Json:
    """Return requests and limits by key, and the claims of the last layer that has some."""
    given = [spec.get("resources") or {} for spec in specs]
    found: Json = {name: _fields(given, name) for name in ("requests", "limits")}
    claims = _last(given, "claims")
    return {name: one for name, one in {**found, "claims": claims}.items() if one}


def _catalog(of_gateway: ParameterLayer | None) -> tuple[Json, ...]:
    """Return the sources of prices: their names are those of the Gateway's namespace, so its own alone count."""
    if of_gateway is None:
        return ()
    return tuple(one["configMap"] for one in (of_gateway.spec.get("modelCatalog") or {}).get("sources") or ())


def _refuse_mesh(specs: Sequence[Json], settings: DeploySettings) -> None:
    given = [spec["istio"] for spec in specs if spec.get("istio") is not None]
    enabled = _fields(specs, "istio").get("enabled", bool(given) or settings.istio)
    if enabled:
        raise DeployRefused(
            "istio: certificates of a mesh's own authority are not supported; use spiffe, or set istio.enabled: false"
        )


def _check_overlays(layers: Sequence[ParameterLayer], workload: str) -> None:
    for layer in layers:
        for name in _UNFIT[workload]:
            if layer.spec.get(name):
                raise DeployRefused(f"{layer.origin}: overlay {name} does not fit the workload, which is a {workload}")
