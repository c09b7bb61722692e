"""`config` of the file: settings of the process are `rawConfig` of GatewayParameters, and back.

What is secret there comes from the environment, as a Secret.
"""

from __future__ import annotations

import re
from typing import Any, Final

from headgate.cluster.convert.conversion import Conversion
from headgate.cluster.convert.said import Hidden, SaidMap
from headgate.cluster.deploy.configuration import configuration
from headgate.cluster.deploy.outcome import DeployRefused
from headgate.cluster.deploy.parameters import merged_parameters
from headgate.cluster.deploy.settings import DeploySettings
from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.fragments import Json, assembled_value
from headgate.cluster.translate.secrets import entry

# What names a file of the machine.
FILES: Final = frozenset((
    "BackendTls.cert", "BackendTls.key", "BackendTls.root", "CatalogSource.file", "FileReference.file", "RedisTls.cert",
    "RedisTls.key", "RedisTls.root",
))  # fmt: skip
_UNFIT: Final = re.compile("[^A-Z0-9]+")


def parameters(of: Conversion, process: SaidMap) -> str:
    """Make the GatewayParameters for `config`; return their name."""
    found: dict[str, str] = {}
    raw = _without_secrets(of, process, "config", found)
    spec: Json = {"rawConfig": {"config": raw}}
    if found:
        name = of.objects.secret(of.namespace, f"{of.about}-config", found)
        spec["env"] = [
            {"name": one, "valueFrom": {"secretKeyRef": {"name": name, "key": one}}} for one in sorted(found)
        ]
    made = of.objects.add("GatewayParameters", of.namespace, of.about, {"spec": spec})
    return str(made["metadata"]["name"])


def _without_secrets(of: Conversion, value: Any, path: str, found: dict[str, str]) -> Any:
    """Return a value as `rawConfig` has it: `found` takes its secrets by the names of variables."""
    if isinstance(value, Hidden):
        name = _UNFIT.sub("_", path.upper()).strip("_")
        found[name] = str(value)
        return f"${{{name}}}"
    if isinstance(value, SaidMap):
        for name in value:
            if f"{value.shape}.{name}" in FILES and not str(value[name]).startswith("-----BEGIN "):
                of.losses.add(value, name)
        value = {key: one for key, one in value.items() if not of.losses.covers(value.at(key)[0])}
    if isinstance(value, dict):
        return {key: _without_secrets(of, one, f"{path}_{key}", found) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_secrets(of, one, f"{path}_{index}", found) for index, one in enumerate(value)]
    return assembled_value(value)


def own_file(snapshot: Snapshot, gateway: Json) -> tuple[Json, dict[str, str]]:
    """Return what the file of a Gateway's processes says, and the variables of their environment that are known.

    Raises ValueError.
    """
    try:
        found = merged_parameters(snapshot, gateway, DeploySettings(xds_address="http://127.0.0.1"))
    except DeployRefused as error:
        raise ValueError(str(error)) from None
    variables = {}
    for one in found.env:
        reference = (one.get("valueFrom") or {}).get("secretKeyRef")
        if reference is not None:
            variables[one["name"]] = entry(snapshot, gateway["metadata"]["namespace"], reference, "")
        elif "value" in one:
            variables[one["name"]] = one["value"]
    # Nothing but a section without an entry is no difference to a file without it.
    return {name: one for name, one in configuration(found).items() if one}, variables
