"""Imports go down the layers only."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house.each_rig import each

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pysrc" / "headgate"

# Top to bottom; packages on one line are neighbours and may not import one another.
RANK = (
    ("cli",),
    ("capacity",),
    ("cluster",),
    ("server",),
    ("admin",),
    ("config",),
    ("pipeline",),
    ("backend",),
    ("policy",),
    ("net",),
    ("trace", "telemetry"),
    ("expr",),
    ("crypto",),
    ("dialect",),
    ("ir",),
    ("document",),
    ("errors",),
)
LEVEL = {name: level for level, names in enumerate(RANK) for name in names}
# Programs of their own, which use nothing of the gateway.
APART = {"sample"}

FILES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.lineno, node.module))
        elif isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
    return found


@each(FILES, lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_lower_layers(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return
    assert own in LEVEL or own in APART, f"{own} has no rank"
    for line, module in imported(path):
        parts = module.split(".")
        if parts[0] != "headgate" or len(parts) < 2 or parts[1] == own:
            continue
        other = parts[1]
        assert own not in APART, f"{path}:{line}: a sample imports {module}"
        assert LEVEL[other] > LEVEL[own], f"{path.relative_to(ROOT)}:{line}: {own} imports {module}"


def test_the_engine_imports_nothing_of_the_python_half() -> None:
    for path in (ROOT / "engine").rglob("*.py*"):
        if path.suffix not in (".py", ".pyx", ".pxd", ".pyi"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            words = line.split()
            if len(words) > 1 and words[0] in ("from", "import", "cimport"):
                assert words[1].split(".")[0] != "headgate", f"{path}:{number}: {line}"
