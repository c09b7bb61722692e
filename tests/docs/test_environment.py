"""The page of environment variables names every variable that the product reads."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/environment.md").read_text()
NAME = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+|GATEWAY|NAMESPACE|NETWORK|LOCALITY|KUBECONFIG")
# Modules that read no variable of ours: what they name are variables that they set for others, and words.
NOT_READERS = {
    "cluster/controller", "cluster/deploy", "cli/controller.py", "cli/clipboard.py", "cli/quickstart.py", "sample", "backend/mcp",
    "cluster/deliver/data_plane.py", "cluster/kubeconfig.py",
}  # fmt: skip
# Those that are only handed on or set for a child, and words of protocols.
OTHERS = {
    "HEADGATE_PARENT", "HEADGATE_UPGRADE_FD", "KUBERNETES_EXEC_INFO", "LD_LIBRARY_PATH", "ALREADY_EXISTS", "DATA_LOSS", "DEADLINE_EXCEEDED", "FAILED_PRECONDITION",
    "GUARDRAIL_INTERVENED", "INVALID_ARGUMENT", "MATCH_FOUND", "NOT_FOUND", "OUT_OF_RANGE", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
}  # fmt: skip


def named() -> set[str]:
    """Names of variables in modules that look at the environment."""
    found: set[str] = set()
    for path in (ROOT / "pysrc/headgate").rglob("*.py"):
        text = path.read_text()
        place = str(path.relative_to(ROOT / "pysrc/headgate"))
        if "environ" not in text or any(place.startswith(one) for one in NOT_READERS):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
                found.add(node.value)
    return found - OTHERS


def test_every_variable_is_on_the_page() -> None:
    listed = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", PAGE))
    assert len(named()) > 50
    assert sorted(named() - listed) == []


def test_every_variable_of_the_page_is_read() -> None:
    listed = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", PAGE))
    whole = "\n".join(path.read_text() for path in (ROOT / "pysrc/headgate").rglob("*.py"))
    # Before there is any Python.
    whole += (ROOT / "ci/binary/starter.c").read_text()
    assert sorted(name for name in listed if not re.search(rf"\b{name}\b", whole)) == []
