"""The components of the controller in its log, each with its own level, which can change while it runs."""

from __future__ import annotations

import logging
import sys
from typing import Final

from headgate.telemetry.levels import LEVELS as LEVELS
from headgate.telemetry.logs import DescriptorHandler, JsonFormatter, TextFormatter

# The rest, such as connections and tasks.
DEFAULT: Final = "default"
COMPONENTS: Final = ("gw/syncer", "gw/translator", "gateway-controller", "deployer", DEFAULT)


class BadLevel(ValueError):
    """The text contains an unknown component or level."""


class ComponentLevels:
    """Levels by component."""

    def __init__(self, level: str = "info") -> None:
        self._first = level
        self._levels = dict.fromkeys(COMPONENTS, level)
        self._apply()

    def change(self, text: str) -> None:
        """Set what a text such as `gw/translator=debug,deployer=warn` or `debug` (all components) says.

        Raises BadLevel and changes nothing if a part of it is malformed.
        """
        levels = self._levels.copy()
        for clause in text.split(","):
            name, equals, level = clause.strip().rpartition("=")
            if level not in LEVELS or (equals and name not in COMPONENTS):
                raise BadLevel(clause.strip())
            levels.update(dict.fromkeys([name] if equals else COMPONENTS, level))
        self._levels = levels
        self._apply()

    def reset(self) -> None:
        """Go back to the levels at the start."""
        self._levels = dict.fromkeys(COMPONENTS, self._first)
        self._apply()

    def __str__(self) -> str:
        return "".join(f"{name}: {level}\n" for name, level in self._levels.items())

    def _apply(self) -> None:
        for name, level in self._levels.items():
            logging.getLogger("" if name == DEFAULT else name).setLevel(LEVELS[level])


def _component(record: logging.LogRecord) -> bool:
    record.component = record.name if record.name in COMPONENTS else DEFAULT
    return True


def log_to_stderr(form: str) -> None:
    """Write the log to standard error, as `json` or `text`, each line with its component."""
    handler = DescriptorHandler(sys.stderr.fileno())
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    handler.addFilter(_component)
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
