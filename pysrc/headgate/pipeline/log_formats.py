"""How requests are logged: the fields that the configuration adds to those of the engine."""

from __future__ import annotations

from collections.abc import Callable

from headgate.ir.frontend import AccessLog
from headgate_engine.expr.program import Program
from headgate_engine.log.access import AccessLogFormat
from headgate_engine.log.fields import LogFields

Pairs = tuple[tuple[str, str], ...]


def with_standard(standard: Pairs, added: Pairs, remove: tuple[str, ...]) -> Pairs:
    """Return the (key, expression) pairs of `added` behind those of `standard` whose keys are in none of the others."""
    taken = {*remove, *(key for key, _ in added)}
    return (*(pair for pair in standard if pair[0] not in taken), *added)


def line_format(
    log: AccessLog, program: Callable[[str, str], Program], form: str, standard: Pairs, more: Pairs = ()
) -> AccessLogFormat:
    """Return the form (`text` or `json`) of an access-log line; `more`: fields beside those of the log."""
    added = with_standard(standard, (*log.add, *more), log.remove)
    fields = None
    if added or log.filter is not None:
        fields = LogFields(
            None if log.filter is None else program(log.filter, "log"),
            [(key, program(text, "log")) for key, text in added],
        )
    return AccessLogFormat(format=form, remove=log.remove, fields=fields)
