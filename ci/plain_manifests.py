"""Prints deploy/manifests/headgate.yaml: what the chart is with its own values, for those who do without Helm.

Usage: plain_manifests.py HELM
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
NAMESPACE = "headgate-system"
HEAD = "# Made from the chart: make helm. Needs the resources of ../crds and of the Gateway API.\n"
MANAGED_BY = "app.kubernetes.io/managed-by"


def rendered(helm: str, *options: str) -> list[dict[str, Any]]:
    """Return the objects of the chart with options of `helm template`. Raises subprocess.CalledProcessError."""
    chart = ROOT / "deploy" / "helm" / "headgate"
    command = [helm, "template", "headgate", str(chart), "--namespace", NAMESPACE, *options]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [one for one in yaml.safe_load_all(text) if one]


def plain(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the objects without the label that says that Helm looks after them, behind their namespace."""
    for one in documents:
        one["metadata"]["labels"].pop(MANAGED_BY)
        template = one.get("spec", {}).get("template")
        if template is not None:
            template["metadata"]["labels"].pop(MANAGED_BY)
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, *documents]


def main(helm: str) -> None:
    documents = plain(rendered(helm))
    sys.stdout.write(HEAD + "---\n".join(yaml.safe_dump(one, sort_keys=False, width=120) for one in documents))


if __name__ == "__main__":
    main(sys.argv[1])
