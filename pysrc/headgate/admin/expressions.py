"""`POST /api/cel`: evaluate an expression with given values."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final

from headgate.expr.compile import compile_expression
from headgate.expr.custom import CustomFunctions
from headgate.expr.faults import ExpressionError
from headgate.expr.variables import ANY, VARIABLES
from headgate.trace.state import plain
from headgate_engine.expr.functions import FUNCTIONS, from_json
from headgate_engine.expr.values import EvaluationError

MAX_SHOWN: Final = 1 << 20
# Field types that JSON cannot express, and the CEL functions that create them from text.
_MAKERS: Final = {"timestamp": "timestamp", "duration": "duration"}


def try_expression(text: bytes, functions: CustomFunctions) -> tuple[int, dict[str, Any]]:
    """Return the status and the response document for a body `{"expression": ..., "data": {...}}`.

    The status is 400 if the expression does not compile or the data do not fit. If the evaluation fails, the status is
    200 and the document has `error`.
    """
    try:
        document = json.loads(text)
        expression, data = document["expression"], document.get("data") or {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return 400, _answer(error="expected an object with `expression` and, if needed, `data`")
    if not isinstance(expression, str) or not isinstance(data, dict):
        return 400, _answer(error="`expression` must be a string and `data` an object")
    try:
        # First compile as the configuration does, to check names and types; then with the variables as bindings.
        compile_expression(expression, ANY, functions)
        program = compile_expression(expression, ANY, functions, open_names=True)
        bindings = {name: _value(name, value) for name, value in data.items()}
    except (ExpressionError, BadData) as error:
        return 400, _answer(error=str(error))
    try:
        found = program.evaluate_with({**_nothing(), **bindings})
    except EvaluationError as error:
        return 200, _answer(error=str(error))
    return 200, _answer(plain(found, MAX_SHOWN))


class BadData(ValueError):
    """A value does not have the type of its variable."""


def _answer(result: Any = None, error: str | None = None) -> dict[str, Any]:
    return {"result": result, "error": error}


def _nothing() -> dict[str, Any]:
    """Return empty values for all variables, as in a request that sets none."""
    return {name: None if variable.fields is None else {} for name, variable in VARIABLES.items()}


def _value(name: str, value: Any) -> Any:
    """Return a variable's value in the form of expressions: lower-case header names, times and bytes made from text."""
    variable = VARIABLES.get(name)
    if variable is None:
        raise BadData(f"data: unknown variable {name!r}")
    if variable.fields is None:
        return from_json(value)
    if not isinstance(value, dict):
        raise BadData(f"data.{name}: expected an object")
    return {key: _field(f"{name}.{key}", variable.fields.get(key, "dyn"), one) for key, one in value.items()}


def _field(path: str, kind: str, value: Any) -> Any:
    if kind == "headers" and isinstance(value, dict):
        return {key.lower(): from_json(one) for key, one in value.items()}
    if not isinstance(value, str):
        return from_json(value)
    try:
        if kind == "bytes":
            return base64.b64decode(value, validate=True)
        if kind in _MAKERS:
            make, _, _ = FUNCTIONS[(_MAKERS[kind], False)]
            return make(value)
    except (binascii.Error, EvaluationError) as error:
        raise BadData(f"data.{path}: {error}") from None
    return from_json(value)


