"""`llm` of the file, the section or that of a named backend, as GatewayModels at a rule of an HTTPRoute.

Their one backend there is a GatewayModel named `*`, so that requests have the paths of the rule, as in the file. A
provider with a name is said again by each model that refers to it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from headgate.cluster.convert.calls import calls
from headgate.cluster.convert.conversion import Conversion, pairs, renamed, spelled_words
from headgate.cluster.convert.credentials import auth, tls
from headgate.cluster.convert.guards import prompt_guard
from headgate.cluster.convert.rules import ONE_ACTION, grouped
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.convert.transforms import header_edits
from headgate.cluster.resources.model import LEFT_OUT, OWN_HOSTS, vendor
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.models import SETTINGS
from headgate.config.llm_models import specificity
from headgate_engine.llm.pattern import ModelPattern

_BLOCKS: Final = {"azure": "azure", "vertex": "vertexai", "bedrock": "bedrock"}
_GUARD: Final = ("guardrailIdentifier", "guardrailVersion")
_SIDES: Final = {"requestHeaders": "request", "responseHeaders": "response"}
_EDITS: Final = {"transformation": "transformations", "finalTransformation": "finalTransformations"}
_CALLS: Final = ("health", "backendTunnel")
_SAID: Final = (
    "id", "name", "visibility", "params", "provider", "backendTLS", "tls", "auth", "authorization", "guardrails",
    *_SIDES, *_EDITS, *_CALLS,
)  # fmt: skip
_PARAMS: Final = ("model", "apiKey", "baseUrl")
_ANY: Final = "*"


def models(of: Conversion, section: SaidMap, parent: Json) -> list[Json]:
    """Make the GatewayModels of a section at a rule, a parentRef; return them."""
    of.losses.rest(section, "providers", "models", "virtualModels", "gateways", "port", "tls", "policies")
    providers = {one["name"]: one for one in section.maps("providers")}
    found: list[Json] = []
    names: dict[int, str] = {}
    for one in section.maps("models"):
        of.objects.origin = (one.path, one.line)
        reader = _Model(of.named(one.get("id") or ("any" if one["name"] == _ANY else one["name"])), one, providers)
        spec = reader.spec()
        if spec is not None:
            content = {"spec": {"parentRefs": [parent], **spec}}
            made = of.objects.add("GatewayModel", of.namespace, reader.of.about, content)
            names[id(one)] = made["metadata"]["name"]
            found.append(made)
    for one in section.maps("virtualModels"):
        of.objects.origin = (one.path, one.line)
        virtual = _virtual(of, one, section, names)
        spec = {"parentRefs": [parent], "match": {"model": one["name"]}, "virtualModel": virtual}
        found.append(of.objects.add("GatewayModel", of.namespace, one["name"], {"spec": spec}))
    return found


class _Model:
    """Reads a model. `levels` are what it says itself, then the defaults of the provider that it refers to."""

    def __init__(self, of: Conversion, value: SaidMap, providers: dict[str, SaidMap]) -> None:
        self.of = of
        self._value = value
        self._choice: Any = value["provider"]
        self._levels = [value]
        self._params = [value.inner("params")]
        if isinstance(self._choice, SaidMap) and "reference" in self._choice:
            entry = providers[self._choice["reference"]]
            if isinstance(entry["provider"], SaidMap):
                why = "in logs and metrics the provider of a GatewayModel is called custom"
                of.losses.add(self._choice, "reference", why)
            self._choice = entry["provider"]
            self._levels.append(entry.inner("defaults"))
            self._params.append(entry.inner("params"))

    def _said(self, name: str) -> Any:
        """Return what is said of a field at the first level that has it."""
        return next((one[name] for one in self._levels if name in one), None)

    def _param(self, name: str) -> Any:
        return next((one[name] for one in self._params if name in one), None)

    def spec(self) -> Json | None:
        """Return what is said of the model beside its parents; None, and a loss, for what an API server refuses."""
        losses = self.of.losses
        for level in self._levels:
            losses.rest(level, *_SAID)
        custom = isinstance(self._choice, SaidMap)
        kind = "custom" if custom else str(self._choice)
        if kind in LEFT_OUT:
            losses.add(self._value, "provider", "its credential is that of a person, not of a cluster")
            return None
        found: Json = {"match": {"model": self._value["name"]}, "provider": vendor(kind), **self._block(kind)}
        if self._value.get("visibility", "public") != "public":
            found["visibility"] = "Internal"
        model = self._param("model") or (self._choice.get("model") if custom else None)
        found |= {"model": model} if model else {}
        if (url := self._param("baseUrl")) is not None:
            if re.match(OWN_HOSTS, url.lower()):
                holder = next(one for one in self._params if "baseUrl" in one)
                losses.add(holder, "baseUrl", "a GatewayModel must not be at a loopback or link-local address")
                return None
            found["baseURL"] = url
        elif kind == "ollama":
            losses.add(self._value, "provider", "a GatewayModel with the provider Ollama needs a baseURL")
            return None
        policies = self._policies()
        return found | ({"policies": policies} if policies else {})

    def _block(self, kind: str) -> Json:
        """Return the settings that a kind of provider has."""
        names = {theirs: ours for ours, theirs in SETTINGS.get(_BLOCKS.get(kind, ""), {}).items()}
        known = (*_PARAMS, *names, *(_GUARD if kind == "bedrock" else ()))
        for one in self._params:
            self.of.losses.rest(one, *known)
        if kind == "custom":
            said = renamed(self._choice["custom"], {"model": "model", "formats": "formats"}, self.of.losses)
            return {"custom": {"formats": [spelled_words(dict(one), "type") for one in said["formats"]]}}
        if kind not in _BLOCKS:
            return {}
        found: Json = {name: self._param(ours) for ours, name in names.items() if self._param(ours) is not None}
        if kind == "bedrock" and (guard := [self._param(name) for name in _GUARD])[0] is not None:
            found["guardrail"] = {"identifier": guard[0], "version": guard[1]}
        return {_BLOCKS[kind]: spelled_words(found, "resourceType")}

    def _policies(self) -> Json:
        of = self.of
        found: Json = {}
        if (key := self._param("apiKey")) is not None:
            found["auth"] = {"secretRef": of.secret_ref(key, "Authorization")}
        elif (said := self._said("auth")) is not None:
            found["auth"] = auth(of, said)
        for name in ("tls", "backendTLS"):
            if (said := self._said(name)) is not None:
                found["tls"] = tls(of, said)
        for name in _CALLS:
            if (said := self._said(name)) is not None:
                alone = SaidMap("", *self._value.at(name))
                alone[name] = said
                found |= calls(of, alone)
        headers = {side: header_edits(said) for name, side in _SIDES.items() if (said := self._said(name)) is not None}
        found |= {"headers": headers} if headers else {}
        if (said := self._said("guardrails")) is not None and (guards := prompt_guard(of, said, calls)):
            found["promptGuard"] = guards
        for name, theirs in _EDITS.items():
            if said := self._said(name):
                found[theirs] = pairs(said, "field", "expression")
        if (said := self._said("authorization")) is not None:
            sections = grouped(said["rules"])
            if len(sections) > 1:
                of.losses.add(self._value, "authorization", ONE_ACTION)
            found |= {"authorization": sections[0]} if sections else {}
        return found


def _virtual(of: Conversion, value: SaidMap, section: SaidMap, names: dict[int, str]) -> Json:
    """Return how a virtual model chooses. `names`: of the objects of models, by their identity."""
    [(kind, routing)] = value["routing"].items()
    # The most specific pattern first, as clients are served.
    ranked = sorted(section.maps("models"), key=lambda one: -specificity(one["name"]))
    targets = []
    for one in routing["targets"]:
        model = next((each for each in ranked if ModelPattern(each["name"]).matches(one["model"])), None)
        if model is None or id(model) not in names:
            of.losses.add(one, "model", "the model cannot be converted")
            continue
        found = {"modelRef": names[id(model)]}
        found |= {name: one[name] for name in ("weight", "priority", "when") if name in one}
        targets.append(found | ({"model": one["model"]} if one["model"] != model["name"] else {}))
    return {kind: {"targets": targets}}
