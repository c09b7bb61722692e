"""The math extension: https://pkg.go.dev/github.com/google/cel-go/ext#Math."""

import math

from headgate_engine.expr.values cimport Uint, compare, type_of

from headgate_engine.expr.values import INT_MIN, UINT_MAX, EvaluationError, no_overload

MANY = 64
MAX_BIT_BYTES = 32


def _double(value):
    if type(value) is float:
        return value
    raise no_overload("a double is wanted")


def _choose(wanted, values):
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        values = values[0]
    if not values:
        raise no_overload("an empty list")
    best = None
    for value in values:
        if type(value) not in (int, float, Uint):
            raise no_overload("a number is wanted")
        if best is None or compare(value, best) == wanted:
            best = value
    return best


def _greatest(*values):
    return _choose(1, values)


def _least(*values):
    return _choose(-1, values)


def _rounded(function):
    def apply(value):
        value = _double(value)
        return value if value != value or math.isinf(value) else math.copysign(float(function(value)), value)
    return apply


def _half_away(value):
    return math.floor(abs(value) + 0.5) * (-1 if value < 0 else 1) if abs(value) < 2**52 else value


def _abs(value):
    if type(value) is float:
        return abs(value)
    if type(value) is Uint:
        return value
    if type(value) is int:
        if value == INT_MIN:
            raise EvaluationError("integer overflow")
        return abs(value)
    raise no_overload("math.abs")


def _sign(value):
    if type(value) is Uint:
        return Uint(1 if (<Uint>value).value else 0)
    if type(value) is float:
        return value if value != value else 0.0 if value == 0 else math.copysign(1.0, value)
    if type(value) is int:
        return (value > 0) - (value < 0)
    raise no_overload("math.sign")


def _sqrt(value):
    if type(value) is Uint:
        value = (<Uint>value).value
    if type(value) not in (int, float):
        raise no_overload("math.sqrt")
    return math.nan if value < 0 or value != value else math.sqrt(value)


def _bits(function):
    def apply(first, second):
        if type(first) is type(second) is int:
            return function(first, second)
        if type(first) is Uint and type(second) is Uint:
            return Uint(function((<Uint>first).value, (<Uint>second).value))
        if type(first) is bytes and type(second) is bytes and len(first) == len(second) <= MAX_BIT_BYTES:
            return bytes(function(one, other) for one, other in zip(first, second))
        if type(first) is bytes and type(second) is bytes:
            raise EvaluationError(f"math.bit operations take bytes of one length, {MAX_BIT_BYTES} at most, "
                                  f"not {len(first)} and {len(second)}")
        raise no_overload(f"bit operation of {type_of(first).name}, {type_of(second).name}")
    return apply


def _bit_not(value):
    if type(value) is int:
        return ~value
    if type(value) is Uint:
        return Uint((<Uint>value).value ^ UINT_MAX)
    raise no_overload("math.bitNot")


def _shift_by(count):
    if type(count) is not int:
        raise no_overload("a shift is an int")
    if count < 0:
        raise EvaluationError("math.bitShift: negative offset")
    return min(count, 64)


def _signed(bits):
    bits &= UINT_MAX
    return bits - (1 << 64) if bits >> 63 else bits


def _shift_left(value, count):
    count = _shift_by(count)
    if type(value) is int:
        return _signed(value << count)
    if type(value) is Uint:
        return Uint(((<Uint>value).value << count) & UINT_MAX)
    raise no_overload("math.bitShiftLeft")


def _shift_right(value, count):
    count = _shift_by(count)
    if type(value) is int:
        return _signed((value & UINT_MAX) >> count)        # a logical shift: zeros come in from the left
    if type(value) is Uint:
        return Uint((<Uint>value).value >> count)
    raise no_overload("math.bitShiftRight")


def _is(test):
    return lambda value: bool(test(_double(value)))


FUNCTIONS = {
    ("math.greatest", False): (_greatest, 1, MANY),
    ("math.least", False): (_least, 1, MANY),
    ("math.ceil", False): (_rounded(math.ceil), 1, 1),
    ("math.floor", False): (_rounded(math.floor), 1, 1),
    ("math.round", False): (_rounded(_half_away), 1, 1),
    ("math.trunc", False): (_rounded(math.trunc), 1, 1),
    ("math.abs", False): (_abs, 1, 1),
    ("math.sign", False): (_sign, 1, 1),
    ("math.sqrt", False): (_sqrt, 1, 1),
    ("math.isInf", False): (_is(math.isinf), 1, 1),
    ("math.isNaN", False): (_is(math.isnan), 1, 1),
    ("math.isFinite", False): (_is(math.isfinite), 1, 1),
    ("math.bitAnd", False): (_bits(lambda one, other: one & other), 2, 2),
    ("math.bitOr", False): (_bits(lambda one, other: one | other), 2, 2),
    ("math.bitXor", False): (_bits(lambda one, other: one ^ other), 2, 2),
    ("math.bitNot", False): (_bit_not, 1, 1),
    ("math.bitShiftLeft", False): (_shift_left, 2, 2),
    ("math.bitShiftRight", False): (_shift_right, 2, 2),
}
