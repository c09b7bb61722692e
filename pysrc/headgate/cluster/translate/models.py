"""GatewayModels as models of the file, and sets of them as one backend.

A model that cannot be said keeps its name: without it a wider pattern, with other rules, might take its requests. They
are sent to a host that does not exist, and fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import GATEWAY_MODEL, ObjectKey, Snapshot, key_of
from headgate.cluster.translate.backend_policies import BackendPolicyReader
from headgate.cluster.translate.checked import faults_of_models
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.edits import header_edits, rules
from headgate.cluster.translate.fragments import Json

_PROVIDERS: Final = {"VertexAI": "vertex"}
# What the file calls the settings of a provider.
SETTINGS: Final = {
    "azure": {
        "resourceName": "azureResourceName", "resourceType": "azureResourceType", "apiVersion": "azureApiVersion",
        "projectName": "azureProjectName",
    },
    "vertexai": {"projectId": "vertexProject", "region": "vertexRegion"},
    "bedrock": {"region": "awsRegion"},
}  # fmt: skip
_CALLS: Final = {"auth": "backendAuth", "tls": "backendTLS", "tunnel": "backendTunnel", "health": "health"}
_OURS: Final = {"backendAuth": "auth"}
_HEADERS: Final = {"request": "requestHeaders", "response": "responseHeaders"}
_FIELDS: Final = {"transformations": "transformation", "finalTransformations": "finalTransformation"}
# RFC 6761: there is no host of this name.
_NOWHERE: Final[Json] = {
    "provider": {"custom": {"formats": [{"type": "completions"}]}}, "params": {"baseUrl": "http://unresolved.invalid"},
}  # fmt: skip


class TranslatedModel(NamedTuple):
    """`form`: the model of the file, None of a virtual one. `invalid`: why it is not what it says. `used` and
    `backends`: Services and GatewayBackends that its policies call."""

    form: Json | None
    invalid: tuple[Unmet, ...] = ()
    used: frozenset[ObjectKey] = frozenset()
    backends: frozenset[ObjectKey] = frozenset()


class ModelSet(NamedTuple):
    """Models that clients of one place may ask for. `form`: the `llm` of a backend. `unresolved`: by virtual model,
    targets that are none."""

    form: Json
    used: frozenset[ObjectKey]
    backends: frozenset[ObjectKey]
    unresolved: dict[ObjectKey, list[Unmet]]


def asked_as(model: Json) -> str:
    """Return the name, or the pattern of names, that clients ask for a model with."""
    return str((model["spec"].get("match") or {}).get("model") or key_of(model).name)


def is_public(model: Json) -> bool:
    """Tell whether clients may ask for a model; others are what virtual ones stand for."""
    return bool(model["spec"].get("visibility", "Public") == "Public")


def is_virtual(model: Json) -> bool:
    """Tell whether a model stands for others."""
    return "virtualModel" in model["spec"]


def translated_model(snapshot: Snapshot, model: Json) -> TranslatedModel:
    """Return what a GatewayModel is by itself."""
    if is_virtual(model):
        return TranslatedModel(None)
    key = key_of(model)
    reader = BackendPolicyReader(snapshot, key.namespace)
    name = {"id": str(key), "name": asked_as(model)}
    wrong: tuple[str, ...] = ()
    try:
        form = name | _provider(model["spec"]) | _policies(reader, model["spec"].get("policies") or {})
        wrong = faults_of_models({"models": [form]})
    except ValueError as error:
        wrong = (f"policies.{error}",)
    if wrong:
        return TranslatedModel(name | _NOWHERE, (Unmet("UnsupportedValue", "; ".join(wrong)),))
    used, backends = frozenset(reader.services.used), frozenset(reader.services.backends)
    return TranslatedModel(form, (), used, backends)


class ModelReader:
    """Translates each model of a snapshot once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._known: dict[ObjectKey, TranslatedModel] = {}

    def read(self, model: Json) -> TranslatedModel:
        key = key_of(model)
        if key not in self._known:
            self._known[key] = self.snapshot.remembered(("model", key), translated_model, model)
        return self._known[key]


def model_set(reader: ModelReader, models: Iterable[Json]) -> ModelSet:
    """Return the models of one place. Names of public ones differ."""
    found = _Gathered(reader)
    for one in models:
        found.add(one)
    section: Json = {"models": list(found.models.values())}
    if found.virtual:
        section["virtualModels"] = found.virtual
    return ModelSet(section, frozenset(found.used), frozenset(found.backends), found.unresolved)


class _Gathered:
    """Models while they are gathered; `models` by their ids."""

    def __init__(self, reader: ModelReader) -> None:
        self._reader = reader
        self.models: dict[str, Json] = {}
        self.virtual: list[Json] = []
        self.used: set[ObjectKey] = set()
        self.backends: set[ObjectKey] = set()
        self.unresolved: dict[ObjectKey, list[Unmet]] = {}

    def add(self, model: Json) -> None:
        if is_virtual(model):
            self._add_virtual(model)
        elif is_public(model):
            form = self._made(model)
            self.models[form["id"]] = form

    def _made(self, model: Json) -> Json:
        made = self._reader.read(model)
        assert made.form is not None
        self.used |= made.used
        self.backends |= made.backends
        return made.form

    def _add_virtual(self, model: Json) -> None:
        kind, value = next(iter(model["spec"]["virtualModel"].items()))
        targets = [entry for one in value["targets"] for entry in self._target(model, kind, one)]
        if not targets:
            targets = [{"model": self._broken(key_of(model)), **({"priority": 0} if kind == "failover" else {})}]
        made = {"name": asked_as(model), "routing": {kind: {"targets": targets}}}
        if wrong := faults_of_models({"models": list(self.models.values()), "virtualModels": [made]}):
            self.unresolved.setdefault(key_of(model), []).append(Unmet("UnsupportedValue", "; ".join(wrong)))
            made["routing"] = {"weighted": {"targets": [{"model": self._broken(key_of(model))}]}}
        self.virtual.append(made)

    def _target(self, virtual: Json, kind: str, target: Json) -> Iterator[Json]:
        """Yield a target. One that is none keeps its share of requests and its condition, which fail; where others are
        to take over, there is none."""
        found = self._name(virtual, target)
        if isinstance(found, Unmet):
            self.unresolved.setdefault(key_of(virtual), []).append(found)
            if kind == "failover":
                return
            found = self._broken(key_of(virtual))
        yield {"model": found} | {name: target[name] for name in ("weight", "priority", "when") if name in target}

    def _name(self, virtual: Json, target: Json) -> str | Unmet:
        """Return the name of a model for one target, which no client can ask for and no other model has."""
        key = ObjectKey(key_of(virtual).namespace, target["modelRef"])
        model = self._reader.snapshot.find(GATEWAY_MODEL, *key)
        if model is None:
            return Unmet("BackendNotFound", f"GatewayModel {key} not found")
        if is_virtual(model):
            return Unmet("UnsupportedValue", f"GatewayModel {key} is virtual: it cannot be what another one stands for")
        form = self._made(model)
        wanted = (form.get("params") or {}).get("model") or target.get("model") or asked_as(model)
        if "*" in wanted:
            return Unmet("UnsupportedValue", f"GatewayModel {key} is a pattern: model must say which one is meant")
        name = f"{key}:{wanted}"
        params = (form.get("params") or {}) | {"model": wanted}
        self.models.setdefault(
            f"{key}:{wanted}", form | {"id": name, "name": name, "visibility": "internal", "params": params}
        )
        return name

    def _broken(self, virtual: ObjectKey) -> str:
        name = f"{virtual}:unresolved"
        params = _NOWHERE["params"] | {"model": "unresolved"}
        self.models[name] = {"id": name, "name": name, "visibility": "internal", **_NOWHERE, "params": params}
        return name


def _provider(spec: Json) -> Json:
    params: Json = {}
    for block, names in SETTINGS.items():
        params |= {ours: spec[block][name] for name, ours in names.items() if name in spec.get(block, {})}
    if guard := spec.get("bedrock", {}).get("guardrail"):
        params |= {"guardrailIdentifier": guard["identifier"], "guardrailVersion": guard["version"]}
    params |= {ours: spec[name] for name, ours in {"model": "model", "baseURL": "baseUrl"}.items() if name in spec}
    vendor = spec["provider"]
    provider: Any = {"custom": dict(spec["custom"])} if vendor == "Custom" else _PROVIDERS.get(vendor, vendor.lower())
    return {"provider": provider} | ({"params": params} if params else {})


def _policies(reader: BackendPolicyReader, value: Json) -> Json:
    made = reader.read({name: value[name] for name in _CALLS if name in value})
    found = {_OURS.get(name, name): one for name, one in made.items()}
    if "authorization" in value:
        found["authorization"] = {"rules": rules(value["authorization"])}
    if "promptGuard" in value:
        found["guardrails"] = reader.read({"ai": {"promptGuard": value["promptGuard"]}})["ai"]["promptGuard"]
    for side, ours in _HEADERS.items():
        if side in value.get("headers", {}):
            found[ours] = header_edits(value["headers"][side])
    for name, ours in _FIELDS.items():
        if name in value:
            found[ours] = {one["field"]: one["expression"] for one in value[name]}
    return found
