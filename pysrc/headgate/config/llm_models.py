"""`llm.models` and `llm.providers` to the LLM router."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from headgate.config.backends import Backends
from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy import backend_auth
from headgate.config.policy_values import (
    NO_OPTIONS,
    BackendOptions,
    header_modifier,
)
from headgate.config.tls_material import backend_tls
from headgate.document import fields
from headgate.document.fields import Target
from headgate.errors import Problem
from headgate.ir.model import LlmModel, LlmProvider, LlmRouter, ProviderFormat
from headgate.ir.policy.backend_auth import BackendAuth
from headgate.ir.tls import BackendTls

ROUTER_NAME: Final = "llm:router"
DEFAULT_PREFIX: Final = "/v1"
OPENAI_FORMATS: Final = ("completions", "responses", "embeddings")
# Base URL, and the formats that pass through unchanged (with a path where it is not prefix + usual suffix).
PROVIDERS: Final[dict[str, tuple[str, tuple[ProviderFormat, ...]]]] = {
    name: (url, tuple(ProviderFormat(type=kind, path=path) for kind, path in formats.items()))
    for name, url, formats in (
        ("openai", "https://api.openai.com/v1", dict.fromkeys(OPENAI_FORMATS)),
        (
            "cohere",
            "https://api.cohere.ai",
            {
                "completions": "/compatibility/v1/chat/completions",
                "embeddings": "/compatibility/v1/embeddings",
            },
        ),
        ("ollama", "http://localhost:11434/v1", dict.fromkeys(OPENAI_FORMATS)),
        ("baseten", "https://inference.baseten.co/v1", {"completions": None}),
        ("cerebras", "https://api.cerebras.ai/v1", {"completions": None}),
        ("deepinfra", "https://api.deepinfra.com/v1/openai", {"completions": None, "embeddings": None}),
        ("deepseek", "https://api.deepseek.com/v1", {"completions": None, "responses": None}),
        ("groq", "https://api.groq.com/openai/v1", {"completions": None, "responses": None}),
        ("huggingface", "https://router.huggingface.co/v1", {"completions": None, "responses": None}),
        ("mistral", "https://api.mistral.ai/v1", {"completions": None, "embeddings": None}),
        ("openrouter", "https://openrouter.ai/api/v1", dict.fromkeys(OPENAI_FORMATS)),
        ("togetherai", "https://api.together.xyz/v1", {"completions": None, "embeddings": None}),
        ("xai", "https://api.x.ai/v1", {"completions": None, "responses": None}),
        ("fireworks", "https://api.fireworks.ai/inference/v1", dict.fromkeys(OPENAI_FORMATS)),
    )
}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a model's requests go, before TLS is known. `explicit` tells an address given in `params`."""

    target: Target
    prefix: str
    override: str | None
    explicit: bool


def specificity(pattern: str) -> int:
    """Return the number of characters of a model pattern that are not `*`."""
    return len(pattern) - pattern.count("*")


class Models:
    """Makes the router of one `llm` section."""

    def __init__(self, context: Context, backends: Backends, section: Record) -> None:
        self.context = context
        self.backends = backends
        self.section = section
        self.providers: dict[str, Record] = {}
        self.inherited = NO_OPTIONS

    def router(self, max_body_bytes: int, inherited: BackendOptions) -> LlmRouter:
        """Return the router with its models in the order in which they are tried.

        `inherited` are the backend policies of the levels above; a model's own win.
        """
        self.inherited = inherited
        self.providers.clear()
        for record in self.section.records("providers"):
            name = record["name"]
            if not name or name in self.providers:
                message = f"provider {name!r} is declared twice" if name else "a provider needs a name"
                self.context.fault(Problem.CONFLICT, record, "name", message)
            if isinstance(record.get("provider"), Record) and "reference" in record["provider"]:
                message = "a provider cannot refer to a provider"
                self.context.fault(Problem.REFERENCE, record, "provider", message)
            self.providers.setdefault(name, record)
        public: list[LlmModel] = []
        internal: list[LlmModel] = []
        ids: set[str] = set()
        for index, record in enumerate(self.section.records("models")):
            self._check_id(record, ids)
            model = self._model(record, index)
            if model is not None:
                (internal if record.get("visibility") == "internal" else public).append(model)
        public.sort(key=lambda model: (-specificity(model.pattern), model.index))
        return LlmRouter(
            key=ROUTER_NAME,
            name=ROUTER_NAME,
            models=tuple(public),
            internal_models=tuple(internal),
            max_body_bytes=max_body_bytes,
        )

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
        return self._with_provider(record, index, (choice, params, defaults, pinned, name))

    def _with_provider(
        self, record: Record, index: int, resolved: tuple[Any, Record, Record | None, str | None, str]
    ) -> LlmModel | None:
        choice, params, defaults, pinned, reference = resolved
        if choice is None:
            return None
        custom = choice.get("custom") if isinstance(choice, Record) else None
        if custom is not None:
            kind = custom.get("providerOverride") or reference or "custom"
            formats = tuple(
                ProviderFormat(type=entry["type"], path=entry.get("path"))
                for entry in custom.records("formats")
                if entry.get("type") is not None
            )
            if not custom.records("formats"):
                self.context.fault(Problem.VALUE, custom, "formats", "a custom provider needs a format")
            base = None
            pinned = pinned if pinned is not None else custom.get("model")
        else:
            kind = choice
            base, formats = PROVIDERS[choice]
        place = self._place(record, params, base)
        if place is None:
            return None
        options = self._options(record, params, defaults)
        endpoint = self.backends.endpoint(place.target, options)
        provider = LlmProvider(
            kind=kind,
            endpoint=endpoint,
            path_prefix=place.prefix,
            path_override=place.override,
            formats=formats,
        )
        handle = record.get("id")
        return LlmModel(
            key=f"llm:model:{handle}" if handle else f"llm:model:{record['name']}:{index}",
            pattern=record["name"],
            index=index,
            provider=provider,
            pinned_model=pinned,
            policies=options.policies(),
        )

    def _place(self, record: Record, params: Record, base: str | None) -> _Place | None:
        url, host = params.get("baseUrl"), params.get("hostOverride")
        prefix, override = params.get("pathPrefix"), params.get("pathOverride")
        if url is not None and host is not None:
            message = "'baseUrl' and 'hostOverride' exclude each other"
            self.context.fault(Problem.CONFLICT, params, "hostOverride", message)
        known = fields.url(base) if base is not None else None
        target = url or host or known
        if target is None:
            message = "a custom provider needs 'params.baseUrl'"
            self.context.fault(Problem.MISSING, record, "provider", message)
            return None
        default = DEFAULT_PREFIX if known is None else (known.path or DEFAULT_PREFIX)
        if url is not None and url.path not in (None, "/") and override is None:
            default = url.path
        chosen = prefix if prefix is not None else default
        return _Place(target, chosen.rstrip("/"), override, url is not None or host is not None)

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
        return BackendOptions(
            tls=found,
            auth=backend_auth.parse(self.context, record.get("auth")),
            request_headers=header_modifier(self.context, record.get("requestHeaders")),
            response_headers=header_modifier(self.context, record.get("responseHeaders"), response=True),
        )
