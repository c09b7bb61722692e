"""`headgate import`: write a configuration that does what another program's configuration says."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from headgate.config.foreign.litellm import litellm
from headgate.config.foreign.mcp_servers import mcp_servers
from headgate.config.foreign.notes import ImportNotes, Tree
from headgate.document.write import write
from headgate.errors import ConfigErrors

KINDS: Final[dict[str, tuple[Callable[[Tree, ImportNotes, int], Tree], int, str]]] = {
    "litellm": (litellm, 4000, "config.yaml of the LiteLLM proxy: models, fallbacks, master key, prices, MCP servers"),
    "mcp-servers": (mcp_servers, 3000, "mcpServers of an MCP client (JSON), as one endpoint with all of the servers"),
}
# The status where --strict is given and something could not be carried over.
INCOMPLETE: Final = 3
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of `headgate import`."""
    found = argparse.ArgumentParser(
        prog="headgate import",
        description="Translate the configuration of another program. "
        "What cannot be translated is listed on standard error.",
    )
    kinds = "; ".join(f"{name}: {text}" for name, (_, _, text) in KINDS.items())
    found.add_argument("kind", choices=tuple(KINDS), help=kinds)
    found.add_argument("path", metavar="PATH", help="the configuration, YAML or JSON; - is standard input")
    found.add_argument("-o", "--output", metavar="PATH", help="where the result goes (default: standard output)")
    found.add_argument("--port", type=int, help="port of the endpoint (default: 4000 for models, 3000 for MCP servers)")
    found.add_argument("--strict", action="store_true", help=f"end with status {INCOMPLETE} if something is left out")
    return found


def run(words: Sequence[str]) -> int:
    """Translate a configuration and return the exit status: 1 where nothing could be written."""
    options = parser().parse_args(words)
    translate, port, _ = KINDS[options.kind]
    notes = ImportNotes()
    try:
        text = write(translate(_read(options.path), notes, options.port or port))
        _check(text)
        if options.output is None:
            sys.stdout.write(text)
        else:
            # It may hold keys.
            path = Path(options.output)
            path.touch(0o600)
            path.write_text(text, encoding="utf-8")
    except (OSError, ValueError, yaml.YAMLError) as error:
        print(f"headgate import: {options.path}: {error}", file=sys.stderr)
        return 1
    for line in notes.lines:
        print(f"headgate import: {line}", file=sys.stderr)
    if names := sorted(set(_VARIABLE.findall(text))):
        print(f"headgate import: variables to set: {', '.join(names)}", file=sys.stderr)
    return INCOMPLETE if options.strict and notes.lines else 0


def _read(path: str) -> Tree:
    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    found: Any = json.loads(_plain(text)) if text.lstrip().startswith(("{", "//", "/*")) else yaml.safe_load(text)
    if not isinstance(found, dict):
        raise ValueError("expected a map")
    return found


def _plain(text: str) -> str:
    """Return JSON without comments and commas before a bracket, which files of editors have."""
    pattern = r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/'
    text = re.sub(pattern, lambda match: match[1] or "", text, flags=re.DOTALL)
    return re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', lambda match: match[1] or "", text)


def _check(text: str) -> None:
    """Raise ValueError if the gateway would refuse the result. Variables are taken to be set: a URL is a text, too."""
    from headgate.config.load import TextSource, load

    try:
        load(TextSource(text), environ=dict.fromkeys(_VARIABLE.findall(text), "http://localhost"))
    except ConfigErrors as error:
        raise ValueError(f"the result cannot be used: {error}") from None
