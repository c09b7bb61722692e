"""The configuration file that a gateway of the cluster starts with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headgate.cluster.deploy.parameters import MergedParameters
from headgate.cluster.translate.fragments import assembled_value
from headgate.document.write import write

Json = dict[str, Any]
CATALOGS: Final = "/etc/headgate/model-catalog"
FILE: Final = "config.yaml"
DEFAULT_LEVEL: Final = "info"


def catalog_key(source: Mapping[str, str]) -> str:
    """Return the key in the ConfigMap of a source of model prices."""
    return source.get("key") or "catalog.json"


def configuration(parameters: MergedParameters) -> Json:
    """Return the file's tree: `rawConfig`, with what is said in typed fields in the place of the same keys."""
    typed: Json = {}
    if parameters.log_level or parameters.log_format:
        named = {"level": parameters.log_level, "format": parameters.log_format}
        typed["logging"] = {name: value for name, value in named.items() if value}
    if parameters.catalog:
        typed["modelCatalog"] = [
            {"file": f"{CATALOGS}/{one['name']}/{catalog_key(one)}"} for one in parameters.catalog
        ]
    found: Json = over(parameters.raw, {"config": assembled_value(typed)})
    return found


def configuration_text(parameters: MergedParameters) -> str:
    """Return the gateway's static configuration in YAML."""
    return write(configuration(parameters))


def log_filter(parameters: MergedParameters) -> str | None:
    """Return the variable of log levels; None where `rawConfig` says them, which it would hide."""
    if parameters.log_level:
        return parameters.log_level
    process = parameters.raw.get("config")
    logging = process.get("logging") if isinstance(process, dict) else None
    if isinstance(logging, dict) and logging.get("level"):
        return None
    return DEFAULT_LEVEL


def over(under: Any, value: Any) -> Any:
    """Return two values as one: of objects every key, of all else the upper one."""
    if not isinstance(under, dict) or not isinstance(value, dict):
        return value
    return {**under, **{key: over(under.get(key), one) for key, one in value.items()}}
