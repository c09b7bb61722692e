"""The engine's modules use only layers below their own, by cimport and by import."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.house.each_rig import each

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "engine" / "headgate_engine"

# Top to bottom. A row holds packages, or modules that stand lower than the rest of their package: data and interfaces
# that lower layers read. Neighbours in a row do not use one another; within a package everything may.
RANK = (
    ("a2a", "aws", "envoy", "llm", "load", "mcp"),
    ("link",),
    ("log", "steps"),
    ("expr",),
    ("llm.attempt", "llm.bounds", "llm.estimate", "llm.form_parts", "llm.log_payload", "llm.pattern", "llm.prices", "llm.content_capture"),
    ("plan",),
    ("guard", "http1", "http2", "limit", "profile", "route"),
    ("context", "document", "llm.eventstream", "peek", "shared", "sse", "tls", "websocket"),
    ("wire",),
    ("clock", "errors", "lazy_pattern", "library_pages"),
)
LEVEL = {name: level for level, names in enumerate(RANK) for name in names}
# (who, whom): why it stands.
EXCEPTIONS: dict[tuple[str, str], str] = {}

USE = re.compile(r"^\s*(?:from|cimport|import)\s+(headgate_engine[\w.]*)(?:\s+c?import\s+\(?([\w, ]*))?", re.MULTILINE)
FILES = sorted(path for suffix in ("*.pyx", "*.pxd", "*.py") for path in ENGINE.rglob(suffix))


def unit(module: str) -> str:
    """The entry of RANK that a module (`link.pool`) belongs to."""
    return module if module in LEVEL else module.split(".")[0]


def used(text: str) -> list[str]:
    """The engine's modules that a source uses, without the name of the engine."""
    found = []
    for module, names in USE.findall(text):
        path = module.split(".")[1:]
        if len(path) > 1 or (path and not (ENGINE / path[0]).is_dir()):
            found.append(".".join(path))
        else:
            # from headgate_engine import errors; from headgate_engine.link import reasons
            found += [".".join([*path, name.strip()]) for name in names.split(",") if name.strip()]
    return found


def refused(own: str, text: str) -> list[str]:
    """The uses of a module that go up or sideways."""
    found = []
    for other in used(text):
        level, allowed = LEVEL[unit(other)], LEVEL[unit(own)]
        one_package = own.split(".")[0] == other.split(".")[0] and level == allowed
        if not (level > allowed or one_package or (own, other) in EXCEPTIONS):
            found.append(f"{own} uses {other}")
    return found


@each(FILES, lambda path: str(path.relative_to(ENGINE)))
def test_the_engine_knows_no_driver(path: Path) -> None:
    assert "headgate_drivers" not in path.read_text()


@each(FILES, lambda path: str(path.relative_to(ENGINE)))
def test_a_module_uses_only_lower_layers(path: Path) -> None:
    own = ".".join(path.relative_to(ENGINE).with_suffix("").parts)
    if path.stem == "__init__":
        return
    assert unit(own) in LEVEL, f"{own} has no rank"
    assert refused(own, path.read_text()) == []


def test_every_row_is_there() -> None:
    for name in LEVEL:
        place = ENGINE.joinpath(*name.split("."))
        assert place.is_dir() or any(place.with_suffix(suffix).exists() for suffix in (".pxd", ".py")), name


@pytest.mark.parametrize(("own", "line"), [
    ("expr.views", "from headgate_engine.link.timers cimport Timer"),
    ("wire.buffer", "    from headgate_engine.errors import X\nfrom headgate_engine.context.headers import Y"),
    ("llm.attempt", "from headgate_engine.llm.router cimport ModelRouter"),
    ("log.access", "from headgate_engine.steps import session"),
    ("link.exchange", "from headgate_engine.llm.router cimport ModelRouter"),
    ("clock", "from headgate_engine import errors"),
], ids=lambda value: value if "." in value and " " not in value else "")
def test_what_goes_up_or_sideways_is_refused(own: str, line: str) -> None:
    assert len(refused(own, line)) == 1


def test_the_list_of_exceptions_is_current() -> None:
    for own, other in EXCEPTIONS:
        text = "".join(ENGINE.joinpath(*own.split(".")).with_suffix(end).read_text() for end in (".pxd", ".pyx"))
        assert other in used(text), f"{own} uses {other} no more"


def test_the_readme_shows_the_rank() -> None:
    shown = " → ".join(", ".join(names) for names in RANK)
    assert shown in (ROOT / "engine" / "README.md").read_text(), f"engine/README.md: `{shown}`"
