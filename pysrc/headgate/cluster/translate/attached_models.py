"""Where GatewayModels are served: at listeners whose `allowedRoutes.kinds` names the kind, and at rules of HTTPRoutes.

The models of one place are one backend of the file. At a listener a route leads to it that has the paths of LLM APIs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headgate.cluster.snapshot import (
    GATEWAY,
    GATEWAY_MODEL,
    HTTP_ROUTE,
    GroupKind,
    ObjectIndex,
    ObjectKey,
    Snapshot,
    key_of,
    seniority,
)
from headgate.cluster.translate.conditions import Condition, Unmet, fails, holds, judged
from headgate.cluster.translate.fragments import Fragment, Json
from headgate.cluster.translate.grants import permitted
from headgate.cluster.translate.listeners import ListenerState
from headgate.cluster.translate.models import ModelReader, ModelSet, asked_as, is_public, is_virtual, model_set
from headgate.cluster.translate.parents import attachments, gateway_named, named, named_by

_ALL: Final = "*"
# Of the backends' names.
_MARK: Final = "models"
_PREFIXES: Final = ("/v1", "/v1beta", "/v2/rerank")
# Some clients leave the version out.
_UNVERSIONED: Final = (
    "/chat/completions", "/completions", "/responses", "/messages", "/embeddings", "/rerank", "/models",
)  # fmt: skip
_PATHS: Final[list[Json]] = [
    *({"path": {"pathPrefix": one}} for one in _PREFIXES), *({"path": {"exact": one}} for one in _UNVERSIONED),
]  # fmt: skip
_MODELS: Final = ObjectIndex(GATEWAY_MODEL, named_by)
_ACCEPTED: Final = "Successfully accepted Model"


class ModelParent(NamedTuple):
    """What a parentRef of a model came to."""

    reference: Json
    conditions: list[Condition]


class AttachedModels(NamedTuple):
    """`parents`: by model the entries of its status that are about this Gateway. `used` and `backends`: Services and
    GatewayBackends that models call."""

    fragments: list[Fragment]
    parents: dict[ObjectKey, list[ModelParent]]
    used: set[ObjectKey]
    backends: set[ObjectKey]


def is_models(reference: Json) -> bool:
    """Tell whether a backendRef leads to the models that are attached to its rule."""
    return GroupKind(reference.get("group", ""), reference.get("kind", "Service")) == GATEWAY_MODEL


def models_of_rule(route: Json, rule: Json) -> Json | Unmet:
    """Return the backend of a rule with models, or why it can have none."""
    references = list(rule.get("backendRefs") or ())
    if len(references) != 1 or references[0]["name"] != _ALL:
        return Unmet("UnsupportedValue", f"a rule with models has one backend, a GatewayModel named {_ALL}")
    if any((one.get("path") or {}).get("type") not in (None, "PathPrefix") for one in rule.get("matches") or ()):
        return Unmet("UnsupportedValue", "the paths of a rule with models are of type PathPrefix")
    return {"backend": _name_of_rule(key_of(route), rule)}


def _name_of_rule(route: ObjectKey, rule: Json) -> str:
    return f"{_MARK}/route/{route}/{rule.get('name') or ''}"


@dataclass(slots=True)
class _Place:
    """A listener or a rule. `models`: those that are in force, the oldest first; `names`: of public ones."""

    models: list[Json] = field(default_factory=list)
    names: dict[str, ObjectKey] = field(default_factory=dict)

    def add(self, model: Json) -> Unmet | None:
        """Take a model, or tell which older one has its name."""
        if is_public(model):
            holder = self.names.setdefault(asked_as(model), key_of(model))
            if holder != key_of(model):
                return Unmet("Conflicted", f"{asked_as(model)} is the older GatewayModel {holder}")
        if model not in self.models:
            self.models.append(model)
        return None


def attach_models(
    snapshot: Snapshot, gateway: ObjectKey, known: list[ListenerState], routes: Mapping[ObjectKey, Json]
) -> AttachedModels:
    """Attach the models of a Gateway, the oldest first: of two of one name at one place it is served.

    `routes`: HTTPRoutes that it serves. Counts models among what is attached to listeners.
    """
    found = _AttachingModels(snapshot, gateway, known, routes)
    places: list[tuple[GroupKind, ObjectKey]] = [(GATEWAY, gateway), *(one.holder for one in known)]
    places += [(HTTP_ROUTE, key) for key in routes]
    models = {key_of(one): one for place in dict.fromkeys(places) for one in snapshot.indexed(_MODELS, place)}
    for model in sorted(models.values(), key=seniority):
        found.add(model)
    return found.made()


class _AttachingModels:
    def __init__(
        self, snapshot: Snapshot, gateway: ObjectKey, known: list[ListenerState], routes: Mapping[ObjectKey, Json]
    ) -> None:
        self._snapshot = snapshot
        self._reader = ModelReader(snapshot)
        self._gateway = gateway
        self._known = known
        self._listeners: dict[str, _Place] = {}
        # By route, those of its rules that lead to models.
        self.rules: dict[ObjectKey, dict[str, _Place]] = {}
        self._routes = routes
        for key, route in routes.items():
            for rule in route["spec"].get("rules") or ():
                if any(map(is_models, rule.get("backendRefs") or ())) and isinstance(models_of_rule(route, rule), dict):
                    self.rules.setdefault(key, {})[_name_of_rule(key, rule)] = _Place()
        self._entries: list[tuple[Json, Json, Unmet | None]] = []

    def add(self, model: Json) -> None:
        for reference in model["spec"]["parentRefs"]:
            kind, key = named(model, reference)
            if kind == HTTP_ROUTE:
                if key in self._routes:
                    self._entries.append((model, reference, self._at_rule(model, reference, key)))
            elif gateway_named(self._snapshot, model, reference) == self._gateway:
                self._entries.append((model, reference, self._at_listeners(model, reference)))

    def _at_rule(self, model: Json, reference: Json, route: ObjectKey) -> Unmet | None:
        about, section = f"HTTPRoute {route}", reference.get("sectionName")
        if not permitted(self._snapshot, GATEWAY_MODEL, key_of(model).namespace, HTTP_ROUTE, route):
            message = f"{about}: no ReferenceGrant lets GatewayModels of {key_of(model).namespace} refer to it"
            return Unmet("RefNotPermitted", message)
        rules = self._routes[route]["spec"].get("rules") or ()
        chosen = [one for one in rules if section is None or one.get("name") == section]
        if section is None and len(rules) != 1:
            return Unmet("NoMatchingParent", f"{about} has {len(rules)} rules: sectionName must say which one is meant")
        if not chosen:
            return Unmet("NoMatchingParent", f"sectionName {section!r} not found")
        place = self.rules.get(route, {}).get(_name_of_rule(route, chosen[0]))
        if place is None:
            message = f"{about}: the rule has not exactly one backend, a GatewayModel named {_ALL}"
            return Unmet("NoMatchingParent", message)
        return place.add(model)

    def _at_listeners(self, model: Json, reference: Json) -> Unmet | None:
        attached = attachments(self._snapshot, model, reference, self._known)
        if isinstance(attached, Unmet):
            return attached
        refusals = []
        for one in attached:
            place = self._listeners.setdefault(one.listener.title, _Place())
            # A listener that two parentRefs name has the model once.
            known = any(model is other for other in place.models)
            refused = place.add(model)
            one.listener.attached += refused is None and not known
            refusals += [] if refused is None else [refused]
        return refusals[0] if len(refusals) == len(attached) else None

    def made(self) -> AttachedModels:
        fragments: list[Fragment] = []
        sets: list[ModelSet] = []
        shared: dict[tuple[ObjectKey, ...], str] = {}
        for listener in self._known:
            place = self._listeners.get(listener.title)
            if place is None or not place.models or not listener.served:
                continue
            # Listeners with the same models have one backend.
            same = tuple(key_of(one) for one in place.models)
            name = shared.get(same)
            if name is None:
                name = shared[same] = f"{_MARK}/{self._gateway}/{listener.title}"
                fragments.append(self._backend(name, place, sets))
            fragments.append(self._route(listener.title, name, place.models[0]))
        for places in self.rules.values():
            fragments += [self._backend(name, place, sets) for name, place in places.items()]
        parents: dict[ObjectKey, list[ModelParent]] = {}
        for model, reference, refused in self._entries:
            entry = ModelParent(reference, self._conditions(model, refused, sets))
            parents.setdefault(key_of(model), []).append(entry)
        used = {key for one in sets for key in one.used}
        return AttachedModels(fragments, parents, used, {key for one in sets for key in one.backends})

    def _backend(self, name: str, place: _Place, sets: list[ModelSet]) -> Fragment:
        found = model_set(self._reader, place.models)
        sets.append(found)
        return Fragment(key=f"backend/{name}", place="backends", value={"name": name, "llm": found.form})

    def _route(self, title: str, name: str, oldest: Json) -> Fragment:
        value: Json = {"name": f"{_MARK}/{title}", "namespace": self._gateway.namespace, "matches": _PATHS}
        value["backends"] = [{"backend": name}]
        return Fragment(
            key=f"route/{_MARK}/{self._gateway}.{title}",
            place="routes",
            value=value,
            parent=f"listener/{self._gateway}.{title}",
            order=(*seniority(oldest), 0),
        )

    def _conditions(self, model: Json, refused: Unmet | None, sets: Iterable[ModelSet]) -> list[Condition]:
        unresolved = list(dict.fromkeys(unmet for one in sets for unmet in one.unresolved.get(key_of(model), ())))
        accepted = holds("Accepted", "Accepted", _ACCEPTED) if refused is None else fails("Accepted", refused)
        if refused is None and not is_virtual(model):
            accepted = judged("Accepted", list(self._reader.read(model).invalid), _ACCEPTED)
        return [accepted, judged("ResolvedRefs", unresolved, "All references resolved")]
