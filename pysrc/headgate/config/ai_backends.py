"""`ai` backends: one provider, or groups of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from headgate.config import llm_edits, llm_providers
from headgate.config.check import Record
from headgate.config.extras import check_cloud
from headgate.config.llm_providers import Vendor
from headgate.config.policy_values import BackendOptions, backend_options
from headgate.document.lazy_dataclass import replace
from headgate.errors import Problem
from headgate.ir.model import NO_EDITS, AiBackend, LlmModel

if TYPE_CHECKING:
    from headgate.config.backends import Backends

# The provider kinds of routes with the name of the one they mean in `llm.models`.
HOSTED: Final = {"openAI": "openai", "anthropic": "anthropic", "gemini": "gemini", "copilot": "copilot"}
MODERATION_MODEL: Final = "omni-moderation-latest"
AZURE_KEYS: Final = ("resourceName", "resourceType", "apiVersion", "projectName")
VERTEX_KEYS: Final = ("projectId", "region")


def parse(
    backends: Backends,
    record: Record,
    name: str,
    options: BackendOptions,
    of_section: Callable[[str], BackendOptions] | None = None,
) -> AiBackend | None:
    """Return the backend. `options`: the policies of the levels above, together with its own. `of_section`: the same
    with those that target one provider. Returns None after reporting an error."""
    sections = record.records("groups")
    groups = [list(section.records("providers")) for section in sections] or [[record]]
    names: set[str] = set()
    for member in (one for group in groups for one in group):
        own = member.get("name")
        if not own or own in names:
            message = f"provider {own!r} is defined twice" if own else "a provider needs a name"
            backends.context.fault(Problem.CONFLICT, member, "name", message)
        names.add(own or "")
    found = tuple(tuple(_members(backends, group, name, options, of_section)) for group in groups)
    if any(len(made) < len(group) for made, group in zip(found, groups, strict=True)):
        return None
    above = options.ai or NO_EDITS
    routes = above.routes if sections else found[0][0].edits.routes
    for member in (one for group in groups for one in group if sections):
        policies = member.get("policies") or {}
        if policies.get("sessionAffinity") is not None:
            message = "sessionAffinity is for the whole backend: a provider of a group cannot have its own"
            backends.context.fault(Problem.CONFLICT, member, "policies", message)
        policy = policies.get("ai")
        if policy is not None and policy.get("routes"):
            message = "is for the whole backend: a provider of a group cannot have its own"
            backends.context.fault(Problem.CONFLICT, policy, "routes", message)
    guarded = [model for group in found for model in group if model.edits.guard is not None]
    if guarded:
        from headgate.backend.llm.guards.coverage import unseen  # with the first guard

        told = {unseen(model.edits.guard, "*" in dict(routes)): None for model in guarded if model.edits.guard}
        backends.context.warnings.extend(f"ai backend {name!r}: {one}" for one in told)
    return AiBackend(key=f"ai/{name}", name=name, groups=found, routes=routes)


def _members(
    backends: Backends,
    records: list[Record],
    name: str,
    options: BackendOptions,
    of_section: Callable[[str], BackendOptions] | None,
) -> Iterator[LlmModel]:
    for index, record in enumerate(records):
        vendor = _vendor(backends, record)
        place = None if vendor is None else llm_providers.place(backends.context, vendor, record, record)
        if vendor is None or place is None:
            continue
        above = options if of_section is None else of_section(record["name"])
        own = above.under(backend_options(backends.context, record.get("policies")))
        if own.proxy_protocol is not options.proxy_protocol:
            own.refuse_proxy_protocol(backends.context)
        if own.inference is not None:
            message = "inferenceRouting is for host and service backends"
            backends.context.fault(Problem.CONFLICT, record, "policies", message)
        auth = llm_providers.with_default_auth(vendor, own.auth)
        if auth is not None and (own.auth is None or own.auth.main is None):
            check_cloud(backends.context, record, "provider", auth.main)
        own = replace(own, auth=auth)
        edits = own.ai or NO_EDITS
        provider = llm_providers.provider(vendor, place, partial(backends.endpoint, options=own, discovered=True))
        provider = replace(provider, moderation=_moderation(record.get("provider")))
        yield LlmModel(
            key=f"ai/{name}/{record['name']}",
            pattern="*",
            index=index,
            provider=provider,
            pinned_model=vendor.model,
            policies=own.policies(),
            edits=edits,
            timeouts=llm_edits.timeouts(record),
            tokenize=record.get("tokenize", False),
        )


def _moderation(choice: Record) -> str | None:
    """Return the `moderation` member of requests to OpenAI, as JSON."""
    found = None if choice.get("openAI") is None else choice["openAI"].get("moderation")
    if found is None:
        return None
    told: dict[str, Any] = {"model": found.get("model", MODERATION_MODEL)}
    policy = found.get("policy")
    if policy is not None:
        modes = {side: {"mode": policy[side]["mode"]} for side in ("input", "output") if policy.get(side) is not None}
        told["policy"] = modes
    return json.dumps(told, separators=(",", ":"))


def _vendor(backends: Backends, record: Record) -> Vendor | None:
    choice = record.get("provider")
    if choice is None:
        return None
    if choice.get("custom") is not None:
        return llm_providers.custom(backends.context, choice["custom"], "")
    if choice.get("azure") is not None:
        found = llm_providers.azure(backends.context, choice["azure"], AZURE_KEYS)
        return None if found is None else replace(found, model=choice["azure"].get("model"))
    if choice.get("bedrock") is not None:
        made = llm_providers.bedrock(backends.context, choice["bedrock"], "region")
        return replace(made, model=choice["bedrock"].get("model"))
    if choice.get("vertex") is not None:
        place = llm_providers.vertex(backends.context, choice["vertex"], VERTEX_KEYS)
        return None if place is None else replace(place, model=choice["vertex"].get("model"))
    for key, name in HOSTED.items():
        if choice.get(key) is not None:
            return replace(llm_providers.hosted(name), model=choice[key].get("model"))
    return None
