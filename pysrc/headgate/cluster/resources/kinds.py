"""The CRDs: `python -m headgate.cluster.resources.kinds deploy/crds` writes one file for each kind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from headgate.cluster.resources import backend, model, parameters, policy, status
from headgate.cluster.resources.formats import GROUP
from headgate.cluster.resources.schema import Json, described
from headgate.document.write import write

VERSION: Final = "v1alpha1"
CATEGORY: Final = "headgate"
# https://gateway-api.sigs.k8s.io/geps/gep-713/: how tools find policies.
_POLICY_LABEL: Final = {"gateway.networking.k8s.io/policy": "Direct"}

_AGE: Final = ("Age", "date", ".metadata.creationTimestamp")


class Column(NamedTuple):
    """A column of `kubectl get`."""

    name: str
    type: str
    path: str


class ResourceKind(NamedTuple):
    """A kind of resource, whose list kind is `<name>List`."""

    name: str
    plural: str
    short: str
    purpose: str
    spec: Json
    status: Json
    columns: tuple[Column, ...]
    labels: dict[str, str] = {}


def _condition(name: str, of: str) -> Column:
    return Column(name, "string", f"{of}.conditions[?(@.type=='{name}')].status")


KINDS: Final = (
    ResourceKind(
        "GatewayBackend", "gatewaybackends", "hgbe", "What requests are sent to: models, MCP servers, agents, hosts.",
        backend.SPEC, status.BACKEND, (_condition("Accepted", ".status"),),
    ),
    ResourceKind(
        "GatewayPolicy", "gatewaypolicies", "hgpol", "What is said about gateways, routes and backends.",
        policy.SPEC, status.POLICY,
        (_condition("Accepted", ".status.ancestors[*]"), _condition("Attached", ".status.ancestors[*]")), _POLICY_LABEL,
    ),
    ResourceKind(
        "GatewayModel", "gatewaymodels", "hgmodel", "A model that clients ask for by name.",
        model.SPEC, status.MODEL, (Column("Model Match", "string", ".spec.match.model"),),
    ),
    ResourceKind(
        "GatewayParameters", "gatewayparameters", "hgpar", "How a gateway is run.",
        parameters.SPEC, status.PARAMETERS, (),
    ),
)  # fmt: skip


def _text(words: str) -> Json:
    return {"description": words, "type": "string"}


def definition(kind: ResourceKind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind."""
    from headgate.cluster.resources.explained import explained  # nothing that runs has its texts

    whole = {
        "description": kind.purpose,
        "type": "object",
        "properties": {
            "apiVersion": _text(f"{GROUP}/{VERSION}"),
            "kind": _text(kind.name),
            "metadata": {"type": "object"},
            "spec": described(explained(kind.spec, (kind.name, "spec")), "What is wanted."),
            "status": described(
                explained(kind.status, (kind.name, "status")), "What the controller makes of it."
            ),
        },
        "required": ["spec"],
    }
    columns = (*kind.columns, Column(*_AGE))
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{GROUP}",
            "labels": {"app.kubernetes.io/name": "headgate", **kind.labels},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short],
                "categories": [CATEGORY],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": one.name, "type": one.type, "jsonPath": one.path} for one in columns
                    ],
                    "schema": {"openAPIV3Schema": whole},
                }
            ],
        },
    }


def printed() -> dict[str, str]:
    """Return the names of the committed files with their texts."""
    head = "# Made from tables: python -m headgate.cluster.resources.kinds deploy/crds\n"
    return {f"{kind.plural}.yaml": head + write(definition(kind), short=True) for kind in KINDS}


def main(arguments: list[str]) -> int:
    """Write the files into the folder given, else all of them to standard output."""
    for name, content in printed().items():
        if arguments:
            Path(arguments[0], name).write_text(content, encoding="utf-8")
        else:
            sys.stdout.write(f"---\n{content}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
