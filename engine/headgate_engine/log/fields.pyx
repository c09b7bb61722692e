"""Access-log fields by expression. A field that fails or is null is left out. A filter that fails skips the line."""

from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program
from headgate_engine.expr.values cimport Uint

from headgate_engine.expr.functions import Flattened, json_text, text_of
from headgate_engine.expr.values import EvaluationError

import base64


class JsonText(str):
    """A string that is JSON already and is written to JSON lines without quotes."""


def shown(value):
    """Return the log form of an expression's value, None if it has none."""
    kind = type(value)
    if kind is str or kind is bool or kind is int or kind is float or value is None:
        return value
    if kind is Uint:
        return (<Uint>value).value
    if kind is bytes:
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    try:
        return text_of(value)
    except EvaluationError:
        pass
    try:
        return JsonText(json_text(value))
    except EvaluationError:
        return None


cdef class LogFields:
    """Fields of access-log lines by expression. filter: which requests are logged (None: all).

    added: pairs of key and expression, in order.
    """

    def __init__(self, Program filter=None, added=()):
        self.filter = filter
        self.added = tuple((<str?>key, <Program?>program) for key, program in added)

    cdef bint wanted(self, RequestContext ctx) except -1:
        return self.filter is None or self.filter.test(ctx) == 1

    cdef list values(self, RequestContext ctx):
        found = []
        for key, program in self.added:
            try:
                value = (<Program>program).evaluate(ctx)
            except EvaluationError:
                continue
            pairs = value.fields(key) if type(value) is Flattened else ((key, value),)
            for name, member in pairs:
                text = shown(member)
                if text is not None:
                    found.append((name, text))
        return found
