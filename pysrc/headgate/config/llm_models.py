"""`llm.models` and `llm.providers` to the LLM router."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from headgate.config import llm_edits, llm_providers, virtual_models
from headgate.config.backends import Backends
from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.extras import check_cloud
from headgate.config.llm_providers import Vendor
from headgate.config.policy import authorization, backend_auth, health, prompt_guard
from headgate.config.policy_values import (
    NO_OPTIONS,
    BackendOptions,
    header_modifier,
)
from headgate.config.routes import values
from headgate.config.tls_material import backend_tls
from headgate.document.lazy_dataclass import dataclass, replace
from headgate.errors import Problem
from headgate.ir.model import NO_EDITS, BodyEdits, LlmModel, LlmResources, LlmRouter
from headgate.ir.policy.authorization import Authorization
from headgate.ir.policy.backend_auth import BackendAuth
from headgate.ir.policy.prompt_guard import PromptGuard, combined
from headgate.ir.tls import BackendTls
from headgate_engine.llm.pattern import ModelPattern

ROUTER_NAME: Final = "llm:router"
AZURE_KEYS: Final = ("azureResourceName", "azureResourceType", "azureApiVersion", "azureProjectName")
VERTEX_KEYS: Final = ("vertexProject", "vertexRegion")
BEDROCK_KEYS: Final = ("awsRegion", "guardrailIdentifier", "guardrailVersion")


@dataclass(frozen=True, slots=True)
class _Resolved:
    """A model with what it inherits from the provider it refers to. `account`: its name, empty without one."""

    vendor: Vendor
    params: Record
    defaults: Record | None
    pinned: str | None
    account: str = ""

def specificity(pattern: str) -> int:
    """Return the number of characters of a model pattern that are not `*`."""
    return len(pattern) - pattern.count("*")


class Models:
    """Makes the router of an `llm` section, or of a named backend. `name`: of the backend; "" for the section."""

    def __init__(self, context: Context, backends: Backends, section: Record, name: str = "") -> None:
        self.name = name
        self.context = context
        self.backends = backends
        self.section = section
        self.providers: dict[str, Record] = {}
        self.inherited = NO_OPTIONS
        self.above: BodyEdits | None = None
        self._shared_guard: PromptGuard | None = None
        self._of_name: dict[str, int] = {}

    def router(self, inherited: BackendOptions) -> LlmRouter:
        """Return the router with its models in the order in which they are tried.

        `inherited` are the backend policies of the levels above; a model's own win.
        """
        self.inherited = inherited
        self.providers.clear()
        self._of_name.clear()
        policies = self.section.get("policies")
        shared = policies.get("guardrails") if policies is not None else None
        self._shared_guard = prompt_guard.parse(self.context, shared)
        for record in self.section.records("providers"):
            name = record["name"]
            if not name or name in self.providers:
                message = f"provider {name!r} is declared twice" if name else "a provider needs a name"
                self.context.fault(Problem.CONFLICT, record, "name", message)
            if isinstance(record.get("provider"), Record) and "reference" in record["provider"]:
                message = "a provider cannot refer to a provider"
                self.context.fault(Problem.REFERENCE, record, "provider", message)
            self.providers.setdefault(name, record)
        self.above = inherited.ai
        public: list[LlmModel] = []
        internal: list[LlmModel] = []
        ids: set[str] = set()
        for index, record in enumerate(self.section.records("models")):
            self._check_id(record, ids)
            model = self._model(record, index)
            if model is not None:
                (internal if record.get("visibility") == "internal" else public).append(model)
        self._warn_of_blind_guards((*public, *internal))
        public.sort(key=lambda model: (-specificity(model.pattern), model.index))
        self._warn_of_ways_round(public)
        everyone = sorted((*public, *internal), key=lambda model: (-specificity(model.pattern), model.index))
        virtual = virtual_models.parse(self.context, self.section.records("virtualModels"), tuple(everyone))
        return LlmRouter(
            key=f"llm/{self.name}" if self.name else ROUTER_NAME,
            name=self.name or ROUTER_NAME,
            models=tuple(public),
            internal_models=tuple(internal),
            virtual_models=virtual,
            resources=self._resources(),
            routes=() if self.above is None else self.above.routes,
        )

    def _resources(self) -> LlmResources:
        """Return what `resources` says of requests that name no model."""
        record = self.section.get("resources")
        if record is None:
            return LlmResources()
        default = record.get("defaultProvider")
        names = list(record.get("providers") or ())
        for key, given in (("defaultProvider", [default]), ("providers", names)):
            for name in given:
                if name is not None and name not in self.providers:
                    self.context.fault(Problem.REFERENCE, record, key, f"no provider is named {name!r}")
        found = [
            self._resource(record, name)
            for name in dict.fromkeys((*names, *([] if default is None else [default])))
            if name in self.providers
        ]
        return LlmResources(
            providers=tuple(model for model in found if model is not None),
            default_provider=default,
            shared_lists=record.get("lists") == "shared",
        )

    def _resource(self, record: Record, name: str) -> LlmModel | None:
        """Return a provider as a model that takes requests which name none. Nothing edits or guards their bodies."""
        choice = Record(record.node, record.path, {"reference": name})
        fields = {"name": "*", "id": f"provider:{name}", "provider": choice}
        fields["authorization"] = record.get("authorization")
        model = self._model(Record(record.node, record.path, fields), -1)
        return None if model is None else replace(model, edits=NO_EDITS, pinned_model=None)

    def _warn_of_ways_round(self, public: list[LlmModel]) -> None:
        """Warn of models whose authorization only sends a request on to a model without any."""
        for number, model in enumerate(public):
            if model.rules is None:
                continue
            sample = model.pattern.replace("*", "x")
            for other in public[number + 1 :]:
                if other.rules is None and ModelPattern(other.pattern).matches(sample):
                    goes = f"a request that it denies is sent to model {other.pattern!r} (llm.models[{other.index}])"
                    why = "which also matches the name, and has no authorization"
                    self.context.warnings.append(f"llm.models[{model.index}].authorization: {goes}, {why}")
                    break

    def _warn_of_blind_guards(self, models: Iterable[LlmModel]) -> None:
        """Tell what guards do not check, once for all models of which the same is to be said."""
        places: dict[str, list[int]] = {}
        for model in models:
            if model.edits.guard is not None:
                from headgate.backend.llm.guards.coverage import unseen  # with the first guard

                open_paths = model.rest is not None or (self.above is not None and "*" in dict(self.above.routes))
                places.setdefault(unseen(model.edits.guard, open_paths), []).append(model.index)
        for told, indexes in places.items():
            more = f" and {len(indexes) - 1} more" if len(indexes) > 1 else ""
            self.context.warnings.append(f"{self.section.path}.models[{min(indexes)}]{more}: {told}")

    def _check_id(self, record: Record, ids: set[str]) -> None:
        handle = record.get("id")
        if handle is None:
            return
        if not handle or handle in ids:
            message = f"model id {handle!r} is used twice" if handle else "a model id cannot be empty"
            self.context.fault(Problem.CONFLICT, record, "id", message)
        ids.add(handle)

    def _model(self, record: Record, index: int) -> LlmModel | None:
        choice = record.get("provider")
        params = record.get("params") or Record(record.node, f"{record.path}.params", {})
        defaults: Record | None = None
        pinned = params.get("model")
        name = ""
        if isinstance(choice, Record) and "reference" in choice:
            name = choice["reference"]
            entry = self.providers.get(name)
            if entry is None:
                self.context.fault(Problem.REFERENCE, choice, "reference", f"no provider is named {name!r}")
                return None
            for key in params:
                if key != "model" and params[key] is not None:
                    message = "a model with a provider reference sets only 'model' here"
                    self.context.fault(Problem.CONFLICT, params, key, message)
            choice, defaults = entry.get("provider"), entry.get("defaults")
            params = entry.get("params") or Record(entry.node, f"{entry.path}.params", {})
            pinned = pinned if pinned is not None else params.get("model")
            if isinstance(choice, Record) and "reference" in choice:
                return None
        vendor = self._vendor(record, choice, params, name)
        return None if vendor is None else self._built(record, index, _Resolved(vendor, params, defaults, pinned, name))

    def _vendor(self, record: Record, choice: Any, params: Record, reference: str) -> Vendor | None:
        if choice is None:
            return None
        if not isinstance(choice, Record):
            if choice == "azure":
                return llm_providers.azure(self.context, params, AZURE_KEYS)
            for key in BEDROCK_KEYS if choice != "bedrock" else ():
                if params.get(key) is not None:
                    self.context.fault(Problem.CONFLICT, params, key, "is for bedrock only")
            if choice == "vertex":
                return llm_providers.vertex(self.context, params, VERTEX_KEYS)
            for keys, kind in ((AZURE_KEYS, "azure"), (VERTEX_KEYS, "vertex")):
                for key in keys:
                    if params.get(key) is not None:
                        self.context.fault(Problem.CONFLICT, params, key, f"is for {kind} only")
            if choice == "bedrock":
                return llm_providers.bedrock(self.context, params, "awsRegion")
            return llm_providers.hosted(choice)
        return llm_providers.custom(self.context, choice["custom"], reference)

    def _built(self, record: Record, index: int, found: _Resolved) -> LlmModel | None:
        vendor = found.vendor
        place = llm_providers.place(self.context, vendor, record, found.params)
        if place is None:
            return None
        options = self._options(record, found.params, found.defaults)
        auth = llm_providers.with_default_auth(vendor, options.auth)
        if auth is not None and (options.auth is None or options.auth.main is None):
            check_cloud(self.context, record, "provider", auth.main)
        options = replace(options, auth=auth)
        provider = llm_providers.provider(vendor, place, partial(self.backends.endpoint, options=options))
        handle = record.get("id")
        edits, limits = llm_edits.of_model(self.context, record), llm_edits.DEFAULT_TIMEOUTS
        if found.defaults is not None:
            edits = llm_edits.merged(llm_edits.of_model(self.context, found.defaults), edits)
            limits = llm_edits.timeouts(found.defaults)
        # `policies.ai` of the levels above is weaker than what the model says of itself.
        edits = llm_edits.over(self.above, edits) or edits
        # Those of the section run before the model's own.
        guard = combined(self._shared_guard, edits.guard)
        if guard is not edits.guard:
            edits = replace(edits, guard=guard)
        return LlmModel(
            key=self._key(record["name"], handle),
            pattern=record["name"],
            index=index,
            provider=provider,
            pinned_model=found.pinned if found.pinned is not None else vendor.model,
            policies=options.policies(),
            edits=edits,
            timeouts=llm_edits.timeouts(record, limits),
            matches=tuple(values(one.records("headers")) for one in record.records("matches")),
            rules=None if record.get("authorization") is None else self._rules(record["authorization"]),
            rest=record.get("passthrough"),
            tokenize=found.params.get("tokenize", False),
            account=found.account,
        )

    def _key(self, name: str, handle: str | None) -> str:
        """Return the key of a model. Without an id it counts models of the same name, so that it stays what it is when
        another model is inserted above."""
        scope = f"{self.name}/" if self.name else ""
        if handle:
            return f"llm:model:{scope}{handle}"
        number = self._of_name.get(name, 0)
        self._of_name[name] = number + 1
        return f"llm:model:{scope}{name}:{number}"

    def _rules(self, record: Record) -> Authorization:
        return authorization.parse(self.context, record, llm_edits.PHASE)

    def _options(self, record: Record, params: Record, defaults: Record | None) -> BackendOptions:
        options = self.inherited
        if defaults is not None:
            options = options.under(self._level(defaults))
        key = self.context.secret(params, "apiKey")
        if key is not None:
            if record.get("auth") is not None or (defaults is not None and defaults.get("auth") is not None):
                message = "'params.apiKey' and 'auth' exclude each other"
                self.context.fault(Problem.CONFLICT, params, "apiKey", message)
            options = replace(options, auth=BackendAuth(main=backend_auth.bearer(key)))
        return options.under(self._level(record))

    def _level(self, record: Record) -> BackendOptions:
        tls = record.get("tls") or record.get("backendTLS")
        found: BackendTls | None = backend_tls(self.context, tls) if tls is not None else None
        sick = record.get("health")
        return BackendOptions(
            tls=found,
            tunnel=record.get("backendTunnel"),
            auth=backend_auth.parse(self.context, record.get("auth")),
            request_headers=header_modifier(self.context, record.get("requestHeaders")),
            response_headers=header_modifier(self.context, record.get("responseHeaders"), response=True),
            health=None if sick is None else health.parse(self.context, sick),
        )
