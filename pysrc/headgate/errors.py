"""The error tree. What an error means to a client (status, body, headers) is in one table elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class FailureSource(Enum):
    """Whose doing a failure is."""

    DOWNSTREAM = "downstream"
    UPSTREAM = "upstream"
    INTERNAL = "internal"


class RetrySafety(Enum):
    """Whether trying again can help: never, only on a fresh connection after a reused one, or yes."""

    NEVER = "never"
    IF_REUSED = "if reused"
    YES = "yes"


class GatewayError(Exception):
    """The root of everything Headgate raises on purpose."""

    source: ClassVar[FailureSource] = FailureSource.INTERNAL
    retry: ClassVar[RetrySafety] = RetrySafety.NEVER


class Problem(Enum):
    """What kind of fault a configuration has."""

    SYNTAX = "syntax"
    ENVIRONMENT = "environment"
    UNKNOWN_FIELD = "unknown field"
    TYPE = "type"
    MISSING = "missing"
    VALUE = "value"
    CONFLICT = "conflict"
    REFERENCE = "reference"
    FILE = "file"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class ConfigError:
    """One fault: `path` is where in the document (`routes[2].policies.cors`, empty for the whole of it).

    `line` and `column` count from 1; 0 when there is no place. Messages never hold a secret.
    """

    problem: Problem
    path: str
    message: str
    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f" ({self.file}:{self.line})" if self.line else f" ({self.file})"
        if self.problem is Problem.UNSUPPORTED:
            return f"not supported yet: {self.path}{self.message}{place}"
        return f"{self.path}: {self.message}{place}" if self.path else f"{self.message}{place}"


class ConfigErrors(GatewayError):
    """All faults of one configuration, in the order of the document."""

    source = FailureSource.INTERNAL

    def __init__(self, errors: Iterable[ConfigError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))

    def __reduce__(self) -> tuple[type[ConfigErrors], tuple[tuple[ConfigError, ...]]]:
        return ConfigErrors, (self.errors,)
