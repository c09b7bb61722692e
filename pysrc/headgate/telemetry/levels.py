"""Log level directives, such as `info` or `headgate.upstream=debug,warn`."""

from __future__ import annotations

import logging

TRACE = 5
OFF = logging.CRITICAL + 10
LEVELS = {
    "off": OFF,
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": TRACE,
}
DEFAULT = "info"

USAGE = """\
usage:
  GET or POST /logging                      show the directive
  POST /logging?level=<level>               default level: off, error, warn, info, debug, trace
  POST /logging?level=<module>=<level>      level of one module and what is below it
  POST /logging?level=<clause>,<clause>     several at once
  POST /logging?reset                       back to the level at start, then add `level` if given
"""


class BadDirective(ValueError):
    """The text is not a valid directive. The argument is the text."""


class Directives:
    """A default level, and levels of modules with their submodules. A later clause for the same module wins."""

    def __init__(self, text: str = DEFAULT) -> None:
        self.default = DEFAULT
        self.modules: dict[str, str] = {}
        self.add(text)

    def add(self, text: str) -> None:
        """Add comma-separated clauses. Raises BadDirective and changes nothing if a clause is malformed."""
        default = self.default
        modules = dict(self.modules)
        for raw in text.split(","):
            clause = raw.strip()
            module, equals, level = clause.rpartition("=")
            if level.lower() not in LEVELS or (equals and not _is_module(module)):
                raise BadDirective(text)
            if equals:
                modules[module.strip()] = level.lower()
            else:
                default = level.lower()
        self.default, self.modules = default, modules

    def __str__(self) -> str:
        ordered = sorted(self.modules.items(), key=lambda item: (-item[0].count("."), item[0]))
        return ",".join([f"{module}={level}" for module, level in ordered] + [self.default])

    def apply(self) -> None:
        """Set the levels of all loggers of the process. Loggers without a directive inherit their level again."""
        root = logging.getLogger()
        root.setLevel(LEVELS[self.default])
        for name, logger in logging.root.manager.loggerDict.items():
            if isinstance(logger, logging.Logger) and name not in self.modules:
                logger.setLevel(logging.NOTSET)
        for module, level in self.modules.items():
            logging.getLogger(module).setLevel(LEVELS[level])


def _is_module(text: str) -> bool:
    parts = text.strip().replace("::", ".").split(".")
    return all(part.replace("-", "_").isidentifier() for part in parts)
