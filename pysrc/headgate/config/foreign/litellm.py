"""`config.yaml` of the LiteLLM proxy (https://docs.litellm.ai/docs/proxy/config_settings)."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Final

from headgate.config.foreign.litellm_models import ModelDeployment, deployment, value
from headgate.config.foreign.mcp_servers import mcp_targets
from headgate.config.foreign.notes import ImportNotes, Tree

PORT: Final = 4000
# Names of LiteLLM's prices for a token, and those of the file for a million.
_PRICES: Final = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cacheRead",
    "cache_creation_input_token_cost": "cacheWrite",
    "output_cost_per_reasoning_token": "reasoning",
    "input_cost_per_audio_token": "inputAudio",
    "output_cost_per_audio_token": "outputAudio",
}
_MILLION: Final = 1_000_000
# The file takes a virtual model's targets in so many steps.
_MOST_STEPS: Final = 8
_SECTIONS: Final = frozenset(
    {"model_list", "litellm_settings", "router_settings", "general_settings", "mcp_servers", "environment_variables"}
)
_ROUTER: Final = frozenset(
    {"fallbacks", "default_fallbacks", "model_group_alias", "allowed_fails", "cooldown_time", "routing_strategy"}
)
_LIBRARY: Final = frozenset(
    {"fallbacks", "default_fallbacks", "drop_params", "set_verbose", "allowed_fails", "cooldown_time"}
)
_GENERAL: Final = frozenset({"master_key", "database_url"})


def litellm(source: Tree, notes: ImportNotes, port: int = PORT) -> Tree:
    """Return a configuration with the models, fallbacks, keys, prices and MCP servers of a LiteLLM proxy.

    Raises ValueError if the source has no models and no MCP servers.
    """
    return _Importer(source, notes).tree(port)


class _Importer:
    def __init__(self, source: Tree, notes: ImportNotes) -> None:
        self._source = source
        self._notes = notes
        self._router: Tree = source.get("router_settings") or {}
        self._library: Tree = source.get("litellm_settings") or {}
        self._general: Tree = source.get("general_settings") or {}

    def tree(self, port: int) -> Tree:
        groups = self._groups()
        servers = mcp_targets(self._source.get("mcp_servers") or {}, "mcp_servers", self._notes)
        if not groups and not servers:
            raise ValueError("there are no models: model_list is expected")
        found: Tree = {"gateways": {"default": {"port": port}}}
        prices = self._prices(groups)
        if prices:
            found["config"] = {"modelCatalog": [{"inline": {"providers": prices}}]}
        if groups:
            found["llm"] = {"gateways": ["default"], **self._models(groups)}
        policies = self._policies()
        if groups and policies:
            found["llm"]["policies"] = policies
        if servers:
            # Beside models the servers have a port of their own.
            found["mcp"] = {**({"port": port + 1} if groups else {"gateways": ["default"]}), "targets": servers}
            if policies:
                found["mcp"]["policies"] = policies
        self._tell_the_rest()
        return found

    def _groups(self) -> dict[str, list[ModelDeployment]]:
        """Return the deployments of each name that clients ask for."""
        groups: dict[str, list[ModelDeployment]] = {}
        for number, entry in enumerate(self._source.get("model_list") or ()):
            one = deployment(entry, f"model_list[{number}]", self._notes)
            if one is not None:
                groups.setdefault(one.group, []).append(one)
        return groups

    def _models(self, groups: dict[str, list[ModelDeployment]]) -> Tree:
        fallbacks = self._fallbacks(groups)
        health = self._health()
        models: list[Tree] = []
        virtual: list[Tree] = []
        for group, members in groups.items():
            steps = [members, *(groups[name] for name in fallbacks.get(group, ()))]
            plain = len(members) == 1 and len(steps) == 1
            if "*" in group and not plain:
                why = f"{group} is a pattern: only its first deployment is used, without fallbacks"
                self._notes.add("model_list", why)
                members, plain = members[:1], True
            for number, one in enumerate(members):
                one.name = group if plain else f"{group}--{number + 1}"
                models.append(self._model(one, health, internal=not plain))
            if not plain:
                virtual.append({"name": group, "routing": self._routing(steps)})
        # Names of deployments are known now, those of fallbacks too.
        for entry in virtual:
            for kind in entry["routing"].values():
                for target in kind["targets"]:
                    target["model"] = target["model"].name
        aliases = self._router.get("model_group_alias") or {}
        for alias, target in aliases.items():
            named = target.get("model") if isinstance(target, dict) else target
            if named in groups:
                found = next((one["routing"] for one in virtual if one["name"] == named), None)
                virtual.append({"name": alias, "routing": found or {"weighted": {"targets": [{"model": named}]}}})
            else:
                self._notes.add(f"router_settings.model_group_alias.{alias}", f"there is no model {named!r}")
        return {"models": models, **({"virtualModels": virtual} if virtual else {})}

    def _model(self, one: ModelDeployment, health: Tree, *, internal: bool) -> Tree:
        found: Tree = {"name": one.name}
        if internal:
            found["visibility"] = "internal"
        found |= one.settings
        if internal and health:
            found["health"] = health
        if self._library.get("drop_params") is True:
            found["unsupportedParameters"] = "drop"
        return found

    def _routing(self, steps: list[list[ModelDeployment]]) -> Tree:
        if len(steps) == 1:
            shared = [
                {"model": one, **({"weight": one.weight} if one.weight is not None else {})} for one in steps[0]
            ]
            return {"weighted": {"targets": shared}}
        if any(one.weight is not None for step in steps for one in step):
            why = f"{steps[0][0].group} has fallbacks: deployments get equal shares of requests, not by weight"
            self._notes.add("model_list", why)
        targets = [{"model": one, "priority": at} for at, step in enumerate(steps[:_MOST_STEPS]) for one in step]
        return {"failover": {"targets": targets}}

    def _fallbacks(self, groups: dict[str, list[ModelDeployment]]) -> dict[str, list[str]]:
        """Return the fallback groups of each group, in order."""
        found: dict[str, list[str]] = {}
        for path, section in (("litellm_settings", self._library), ("router_settings", self._router)):
            for entry in section.get("fallbacks") or ():
                for group, names in entry.items():
                    found[group] = self._known(f"{path}.fallbacks", names, groups)
                    if group not in groups:
                        self._notes.add(f"{path}.fallbacks", f"there is no model {group!r}")
            common = self._known(f"{path}.default_fallbacks", section.get("default_fallbacks") or (), groups)
            for group in groups:
                if common and group not in found:
                    found[group] = [name for name in common if name != group]
        return found

    def _known(self, path: str, names: Any, groups: dict[str, list[ModelDeployment]]) -> list[str]:
        found = []
        for name in names:
            if isinstance(name, str) and name in groups and "*" not in name:
                found.append(name)
            else:
                self._notes.add(path, f"there is no model {name!r} to fall back to")
        return found

    def _health(self) -> Tree:
        """Return when a deployment of several is left out."""
        fails = self._router.get("allowed_fails", self._library.get("allowed_fails"))
        seconds = self._router.get("cooldown_time", self._library.get("cooldown_time"))
        if fails is None and seconds is None:
            return {}
        eviction: Tree = {"consecutiveFailures": int(fails or 0) + 1}
        if seconds is not None:
            eviction["duration"] = f"{seconds}s"
        return {"eviction": eviction}

    def _policies(self) -> Tree:
        key = self._general.get("master_key")
        if not key:
            return {}
        return {"apiKey": {"mode": "strict", "keys": [{"key": value(key), "metadata": {"name": "master"}}]}}

    def _prices(self, groups: dict[str, list[ModelDeployment]]) -> Tree:
        """Return the prices of the catalog, by provider and model."""
        providers: Tree = {}
        for one in (one for members in groups.values() for one in members):
            rates = self._rates(one)
            if rates and one.model:
                providers.setdefault(one.provider, {"models": {}})["models"][one.model] = {"rates": rates}
        return providers

    def _rates(self, one: ModelDeployment) -> Tree:
        found: Tree = {}
        for name, rate in _PRICES.items():
            if name in one.information:
                try:
                    price = Decimal(str(one.information[name])) * _MILLION
                except InvalidOperation:
                    self._notes.add(f"{one.path}.model_info.{name}", "is no number")
                else:
                    found[rate] = f"{price.normalize():f}"
        return found

    def _tell_the_rest(self) -> None:
        notes = self._notes
        notes.rest("", self._source, _SECTIONS)
        notes.rest("router_settings", self._router, _ROUTER)
        notes.rest("litellm_settings", self._library, _LIBRARY)
        notes.rest("general_settings", self._general, _GENERAL)
        strategy = self._router.get("routing_strategy", "simple-shuffle")
        if strategy != "simple-shuffle":
            notes.add("router_settings.routing_strategy", f"{strategy} is treated as simple-shuffle")
        if self._source.get("environment_variables"):
            names = ", ".join(self._source["environment_variables"])
            notes.add("environment_variables", f"set these in the environment of the gateway: {names}")
        if self._general.get("database_url"):
            notes.add("general_settings.database_url", "keys, teams and spending in that database are not imported")
        if not self._general.get("master_key"):
            notes.add("general_settings.master_key", "is not set: anyone who can reach the port can use the models")
