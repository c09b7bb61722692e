"""The roles of the Helm chart: `python -m headgate.cluster.deploy.chart deploy/helm/headgate` writes their template."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from headgate.cluster.deploy.permissions import CLUSTER, DEPLOYER, INFERENCE, LOCAL, Permission, rules
from headgate.document.write import write

Json = dict[str, Any]
MADE: Final = "{{- /* Made from a table: python -m headgate.cluster.deploy.chart deploy/helm/headgate */ -}}\n"
TEMPLATE: Final = "templates/permissions.yaml"
_NAME: Final = '{{ include "headgate.fullname" . }}'
_NAME_INSIDE: Final = '{{ include "headgate.fullname" $ }}'
_HERE: Final = "{{ .Release.Namespace }}"
_ROLE: Final = """\
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}
metadata:
  name: {name}{suffix}
{namespace}  labels: {{{{- include "headgate.labels" $ | nindent 4 }}}}
"""
_BINDING: Final = """\
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {role}
  name: {name}{suffix}
subjects:
  - kind: ServiceAccount
    name: {{{{ include "headgate.account" $ }}}}
    namespace: {{{{ $.Release.Namespace }}}}
"""


def permissions_template() -> str:
    """Return the template of all roles and of what binds them to the controller's service account."""
    inference = "{{- if .Values.inferenceExtension.enabled }}\n" + _rules(INFERENCE) + "{{- end }}\n"
    parts = [
        _role("ClusterRole", "") + "rules:\n" + _rules(CLUSTER) + inference,
        _binding("ClusterRoleBinding", "ClusterRole", ""),
        _role("ClusterRole", "-deployer") + "rules:\n" + _rules(DEPLOYER),
        "{{- if .Values.rbac.gatewayNamespaces }}\n{{- range .Values.rbac.gatewayNamespaces }}\n",
        _binding("RoleBinding", "ClusterRole", "-deployer", "{{ . }}", _NAME_INSIDE),
        "{{- end }}\n{{- else }}\n",
        _binding("ClusterRoleBinding", "ClusterRole", "-deployer"),
        "{{- end }}\n",
        _role("Role", "", _HERE) + "rules:\n" + _rules(LOCAL),
        _binding("RoleBinding", "Role", "", _HERE),
    ]
    return MADE + "".join(parts)


def _role(kind: str, suffix: str, namespace: str = "", name: str = _NAME) -> str:
    where = f"  namespace: {namespace}\n" if namespace else ""
    return _ROLE.format(kind=kind, name=name, suffix=suffix, namespace=where)


def _binding(kind: str, role: str, suffix: str, namespace: str = "", name: str = _NAME) -> str:
    return _role(kind, suffix, namespace, name) + _BINDING.format(role=role, name=name, suffix=suffix)


def _rules(table: tuple[Permission, ...]) -> str:
    return "".join(f"  {line}\n" for line in write(rules(table), short=True).splitlines())


def main(arguments: list[str]) -> int:
    """Write the template into the folder given, else to standard output."""
    if arguments:
        Path(arguments[0], TEMPLATE).write_text(permissions_template(), encoding="utf-8")
    else:
        sys.stdout.write(permissions_template())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
