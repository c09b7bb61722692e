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


# Every logger of the gateway (tests/house/test_loggers.py). The level of one holds for those below it.
LOGGERS = (
    "headgate.admin", "headgate.alerts", "headgate.cluster.deliver", "headgate.credentials", "headgate.delivery",
    "headgate.deployer", "headgate.downstream", "headgate.engine", "headgate.expr", "headgate.ext_authz",
    "headgate.forward", "headgate.guard", "headgate.handler", "headgate.http2", "headgate.keys", "headgate.leases",
    "headgate.llm", "headgate.mcp", "headgate.mcp.openapi", "headgate.mcp.sse", "headgate.mcp.stdio",
    "headgate.mcp.targets", "headgate.mirror", "headgate.oauth", "headgate.oidc", "headgate.otlp",
    "headgate.policy", "headgate.processing", "headgate.reads", "headgate.redis", "headgate.remote_rate_limit",
    "headgate.requests", "headgate.resources", "headgate.secure", "headgate.server.supervisor",
    "headgate.shared_limits", "headgate.spend", "headgate.spiffe", "headgate.step", "headgate.supervisor",
    "headgate.tasks", "headgate.tls", "headgate.token_exchange", "headgate.trace", "headgate.upstream",
    "headgate.worker", "request",
)  # fmt: skip


class BadDirective(ValueError):
    """The text is not a valid directive. The argument is the text."""


class UnknownModule(BadDirective):
    """A directive is about a module that no logger has. The argument says so."""


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

    def refuse_unknown(self) -> None:
        """Raise UnknownModule if a clause is about a module that is no logger, nor above one, nor a library's."""
        known = {*LOGGERS, *(name for name in logging.root.manager.loggerDict if not name.startswith("headgate"))}
        for module in self.modules:
            if not any(one == module or one.startswith(f"{module}.") for one in known):
                import difflib  # for what is wrong alone

                close = difflib.get_close_matches(module, LOGGERS, 1)
                hint = f", did you mean {close[0]}?" if close else f"; loggers are {', '.join(LOGGERS)}"
                raise UnknownModule(f"there is no logger {module}{hint}")

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
