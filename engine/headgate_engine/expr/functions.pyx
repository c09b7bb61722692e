"""The standard library of expressions: conversions, sizes, matching, and the gateway's functions that need no codec.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md. FUNCTIONS maps (name, is a method) to (callable,
minimum and maximum number of arguments without the receiver).
"""

import json as _json
import math
import random as _random

from headgate_engine.expr.values cimport (
    Duration, OptionalValue, Redacted, Timestamp, TypeValue, Uint, checked_int, checked_uint, contains, type_of)

from headgate_engine.expr.times import duration_text, parse_duration, parse_timestamp, timestamp_text
from headgate_engine.expr.values import (
    INT_MAX, INT_MIN, MAX_LENGTH, NONE, NS, UINT_MAX, EvaluationError, NoSuchKey, no_overload)

MAX_PATTERNS = 512    # size of the cache for patterns that are not known at compile time
# Most members of all lists and maps together in one JSON text that an expression makes.
MAX_MEMBERS = 1 << 20
cdef dict _patterns = {}


def _plain(value):
    return (<Uint>value).value if type(value) is Uint else value


def _number(value):
    if type(value) is Uint or type(value) is int or type(value) is float:
        return _plain(value)
    raise no_overload("a number is wanted")


# -- conversions ---------------------------------------------------------------------------------------------------------
def _to_int(value):
    if type(value) is int:
        return value
    if type(value) is Uint:
        return checked_int((<Uint>value).value)
    if type(value) is float:
        # The largest doubles below 2**63 are exact; 2**63 itself is out of range.
        if value != value or not -9223372036854775808.0 < value < 9223372036854775808.0:
            raise EvaluationError("integer overflow")
        return int(value)
    if isinstance(value, str):
        text = str(value)
        if not text.lstrip("-").isdigit() or not text.isascii() or text.startswith("--"):
            raise EvaluationError("not an integer")
        return checked_int(int(text))
    if type(value) is Timestamp:
        return (<Timestamp>value).ns // NS
    if type(value) is Duration:
        ns = (<Duration>value).ns
        return abs(ns) // NS * (-1 if ns < 0 else 1)
    raise no_overload("int")


def _to_uint(value):
    if type(value) is Uint:
        return value
    if type(value) is int:
        return checked_uint(value)
    if type(value) is float:
        if value != value or not 0 <= value < 18446744073709551616.0:
            raise EvaluationError("unsigned integer overflow")
        return Uint(int(value))
    if isinstance(value, str):
        if not value.isdigit() or not value.isascii():
            raise EvaluationError("not an unsigned integer")
        return checked_uint(int(value))
    raise no_overload("uint")


def _to_double(value):
    if type(value) is float:
        return value
    if type(value) is int or type(value) is Uint:
        return float(_plain(value))
    if isinstance(value, str):
        text = str(value)
        if "_" in text or text.strip() != text or not text.isascii():
            raise EvaluationError("not a double")
        try:
            return float(text)
        except ValueError:
            raise EvaluationError("not a double") from None
    raise no_overload("double")


def double_text(value):
    """Return a double as Go's %g with the shortest digits: 1, 0.5, 1e+21."""
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == int(value) and abs(value) < 1e21:
        return f"{int(value)}" if value or math.copysign(1, value) > 0 else "-0"
    return repr(value)


def _to_string(value):
    if isinstance(value, str):
        return str(value)
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int or type(value) is Uint:
        return str(_plain(value))
    if type(value) is float:
        return double_text(value)
    if type(value) is bytes:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if type(value) is Timestamp:
        return timestamp_text(value)
    if type(value) is Duration:
        return duration_text(value)
    if type(value) is Redacted:
        return repr(value)
    if hasattr(value, "cel_text"):
        return value.cel_text()
    raise no_overload("string")


def _to_bytes(value):
    if type(value) is bytes:
        return value
    if isinstance(value, str):
        return value.encode("utf-8")
    raise no_overload("bytes")


def _to_bool(value):
    if type(value) is bool:
        return value
    if isinstance(value, str):
        if value in ("1", "t", "T", "true", "TRUE", "True"):
            return True
        if value in ("0", "f", "F", "false", "FALSE", "False"):
            return False
        raise EvaluationError("not a bool")
    raise no_overload("bool")


def _to_duration(value):
    if type(value) is Duration:
        return value
    if isinstance(value, str):
        return parse_duration(str(value))
    if type(value) is int:
        return Duration(value * NS)
    raise no_overload("duration")


def _to_timestamp(value):
    if type(value) is Timestamp:
        return value
    if isinstance(value, str):
        return parse_timestamp(str(value))
    if type(value) is int:
        return Timestamp(value * NS)
    raise no_overload("timestamp")


def _type(value):
    return type_of(value)


def _dyn(value):
    return value


def _size(value):
    if isinstance(value, (str, bytes, list, dict, tuple)) or hasattr(value, "cel_items"):
        return len(value)
    raise no_overload("size")


# -- texts ---------------------------------------------------------------------------------------------------------------
def _text(value):
    if isinstance(value, str):
        return value
    raise no_overload("a string is wanted")


def _contains(value, part):
    """Return whether a string or bytes has a part, a list a member, or a map or header view a key."""
    if isinstance(value, (list, tuple, dict)) or hasattr(value, "cel_contains"):
        return bool(contains(part, value))
    if type(value) is bytes and type(part) is bytes:
        return part in value
    return _text(part) in _text(value)


def _starts_with(value, part):
    return _text(value).startswith(_text(part))


def _ends_with(value, part):
    return _text(value).endswith(_text(part))


def pattern(text):
    """Return the compiled RE2 pattern, which is linear in time. Raises EvaluationError if `text` is not valid."""
    found = _patterns.get(text)
    if found is None:
        import re2  # 2.5 MB: loaded with the first pattern

        options = re2.Options()
        options.log_errors = False
        options.max_mem = 1 << 19  # as for patterns of routes (route/conditions)
        try:
            found = re2.compile(text, options)
        except re2.error as error:
            # RE2 returns its message as bytes.
            told = error.args[0] if error.args else ""
            told = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
            raise EvaluationError(f"invalid regular expression: {told}") from None
        if len(_patterns) >= MAX_PATTERNS:
            _patterns.clear()
        _patterns[text] = found
    return found


def _matches(value, text):
    return pattern(str(_text(text))).search(str(_text(value))) is not None


def _regex_replace(value, text, replacement):
    """Replace the first match only. `$1` and `${name}` in the replacement stand for groups."""
    value = str(_text(value))
    found = pattern(str(_text(text))).search(value)
    if found is None:
        return value
    return value[:found.start()] + _expand(found, str(_text(replacement))) + value[found.end():]


def _expand(found, template):
    parts, at = [], 0
    while True:
        dollar = template.find("$", at)
        if dollar < 0 or dollar == len(template) - 1:
            parts.append(template[at:])
            return "".join(parts)
        parts.append(template[at:dollar])
        at = dollar + 1
        if template[at] == "$":
            parts.append("$")
            at += 1
            continue
        if template[at] == "{" and "}" in template[at:]:
            stop = template.index("}", at)
            name, at = template[at + 1:stop], stop + 1
        else:
            stop = at
            while stop < len(template) and (template[stop].isalnum() or template[stop] == "_"):
                stop += 1
            if stop == at:
                parts.append("$")
                continue
            name, at = template[at:stop], stop
        try:
            parts.append(found.group(int(name) if name.isdigit() else name) or "")
        except IndexError:
            continue          # a group that does not exist counts as empty


# -- the gateway's own ---------------------------------------------------------------------------------------------------
def text_of(value):
    """Return string() of a value. Raises EvaluationError if the type has no string form."""
    return _to_string(value)


def from_json(value):
    """Return JSON data as expression values: whole numbers are int, beyond int64 uint, beyond uint64 double."""
    if isinstance(value, dict):
        return {key: from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if type(value) is int and not INT_MIN <= value <= INT_MAX:
        return Uint(value) if 0 < value <= UINT_MAX else float(value)
    return value


def _json_of(value):
    if not isinstance(value, (str, bytes)):
        raise no_overload("json")
    try:
        # Decode first: given bytes, loads() would accept UTF-16 as well.
        text = value.decode("utf-8") if type(value) is bytes else str(value)
        return from_json(_json.loads(text, parse_constant=_no_number, parse_float=_finite))
    except (ValueError, RecursionError):
        raise EvaluationError("invalid JSON") from None


def _json_field(value, name):
    found = _json_of(value)
    if not isinstance(found, dict):
        raise EvaluationError("jsonField: the JSON text is no object")
    if _text(name) not in found:
        raise NoSuchKey(f"no such key: {name}")
    return found[name]


def _no_number(name):
    raise ValueError(f"{name} is no JSON number")


def _finite(text):
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is out of range")
    return value


def _jsonable(value):
    if type(value) is Uint:
        return (<Uint>value).value
    if type(value) is bytes:
        import base64
        return base64.b64encode(value).decode()
    if type(value) is Timestamp or type(value) is Duration:
        return _to_string(value)
    if type(value) is Redacted:
        return repr(value)
    if type(value) is TypeValue:
        return (<TypeValue>value).name
    if type(value) is OptionalValue:
        return (<OptionalValue>value).inner if (<OptionalValue>value).present else None
    if hasattr(value, "cel_json"):
        return value.cel_json()
    raise no_overload("toJson")


def json_text(value):
    """Return the compact JSON of a value. Raises EvaluationError if JSON cannot represent it."""
    try:
        value = _keyed(value, [MAX_MEMBERS, MAX_LENGTH])
        text = _json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_jsonable, allow_nan=False)
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            # Half of a surrogate pair has no UTF-8 form, but JSON can write it as an escape.
            return _json.dumps(value, separators=(",", ":"), default=_jsonable, allow_nan=False)
        return text
    except (ValueError, RecursionError):
        raise EvaluationError("the value has no JSON form") from None


def _keyed(value, left):
    """Return the value with strings as keys of its maps. left: [members and characters that there may still be].

    A text counts each time that it is there: to write a list of one long text a thousand times takes a thousand times its memory.
    """
    if isinstance(value, (str, bytes)):
        return _counted(value, left)
    if type(value) is OptionalValue or hasattr(value, "cel_json"):
        return _keyed(_jsonable(value), left)
    if isinstance(value, (dict, list, tuple)):
        left[0] -= len(value)
        if left[0] < 0:
            raise EvaluationError("value is too long")
    if isinstance(value, dict):
        return {
            _counted(key if isinstance(key, str) else _to_string(key), left): _keyed(item, left)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_keyed(item, left) for item in value]
    return value


def _counted(text, left):
    left[1] -= len(text)
    if left[1] < 0:
        raise EvaluationError("value is too long")
    return text


def _size_of(value, most):
    """Return the characters of a value with all its members, each of which counts as eight; no more than `most` are counted."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, dict):
        value = value.values()
    elif type(value) is OptionalValue:
        value = ((<OptionalValue>value).inner,)
    elif hasattr(value, "cel_size"):
        return value.cel_size()
    elif not isinstance(value, (list, tuple)):
        return 0
    size = 0
    for one in value:
        size += 8 + _size_of(one, most - size)
        if size > most:
            break
    return size


class Flattened:
    """A map or list whose members become separate fields of a log line or span. Elsewhere it is an ordinary value."""

    TYPE_NAME = "map"
    __slots__ = ("recursive", "size", "value")

    def __init__(self, value, recursive=False):
        if hasattr(value, "cel_json"):
            value = value.cel_json()
        if not isinstance(value, (dict, list, tuple)):
            raise no_overload("flatten")
        self.value = value
        self.recursive = recursive
        self.size = _size_of(value, MAX_LENGTH)

    def fields(self, name):
        """Yield (key, value) pairs: `<name>.<key>` or `<name>.<index>`, on all levels if `recursive`."""
        members = self.value.items() if isinstance(self.value, dict) else enumerate(self.value)
        for key, value in members:
            key = f"{name}.{key if isinstance(key, str) else _to_string(key)}"
            if self.recursive and isinstance(value, (dict, list, tuple)):
                yield from Flattened(value, True).fields(key)
            else:
                yield key, value

    def cel_json(self):
        return self.value

    def cel_size(self):
        return self.size


def _flatten_all(value):
    return Flattened(value, True)


def _merge(first, second):
    return {**as_map(first), **as_map(second)}


def as_map(value):
    """Return a map or a header view as a dict. Raises EvaluationError for other types."""
    if isinstance(value, dict):
        return value
    if hasattr(value, "cel_items"):
        return dict(value.cel_items())
    raise no_overload("a map is wanted")


def _fail(*message):
    raise EvaluationError("fail() called: " + (str(message[0]) if message else ""))


def _random_number():
    return _random.random()


def _uuid_text():
    import uuid as _uuid        # costs a start 5 ms, which no other needs

    return str(_uuid.uuid4())


def _unredacted(value):
    if type(value) is Redacted:
        return (<Redacted>value).reveal()
    if isinstance(value, str):
        return value
    raise no_overload("unredacted")


def _extreme(largest):
    def choose(*values):
        if len(values) == 1 and isinstance(values[0], (list, tuple)):
            values = values[0]
        if not values:
            raise EvaluationError("no values to choose from")
        best = values[0]
        _number(best)
        for value in values[1:]:
            if _number(value) > _number(best) if largest else _number(value) < _number(best):
                best = value
        return best
    return choose


# -- optionals -----------------------------------------------------------------------------------------------------------
def _optional_of(value):
    return OptionalValue(True, value)


def _optional_none():
    return NONE


def _optional_non_zero(value):
    if value is None or value is False or (isinstance(value, (str, bytes, list, dict)) and not value):
        return NONE
    if type(value) in (int, float, Uint) and _plain(value) == 0:
        return NONE
    if type(value) is Duration and (<Duration>value).ns == 0 or type(value) is Timestamp and (<Timestamp>value).ns == 0:
        return NONE
    return OptionalValue(True, value)


def _optional(value):
    if type(value) is OptionalValue:
        return value
    raise no_overload("an optional is wanted")


def _value(value):
    if not (<OptionalValue>_optional(value)).present:
        raise EvaluationError("optional.none() dereference")
    return (<OptionalValue>value).inner


def _has_value(value):
    return (<OptionalValue>_optional(value)).present


def _unwrap(values):
    if not isinstance(values, (list, tuple)):
        raise no_overload("unwrapOpt")
    return [(<OptionalValue>one).inner for one in values if (<OptionalValue>_optional(one)).present]


MANY = 64
FUNCTIONS = {
    ("int", False): (_to_int, 1, 1),
    ("uint", False): (_to_uint, 1, 1),
    ("double", False): (_to_double, 1, 1),
    ("string", False): (_to_string, 1, 1),
    ("bytes", False): (_to_bytes, 1, 1),
    ("bool", False): (_to_bool, 1, 1),
    ("duration", False): (_to_duration, 1, 1),
    ("timestamp", False): (_to_timestamp, 1, 1),
    ("type", False): (_type, 1, 1),
    ("dyn", False): (_dyn, 1, 1),
    ("size", False): (_size, 1, 1),
    ("size", True): (_size, 0, 0),
    ("contains", True): (_contains, 1, 1),
    ("contains", False): (_contains, 2, 2),
    ("int", True): (_to_int, 0, 0),
    ("uint", True): (_to_uint, 0, 0),
    ("double", True): (_to_double, 0, 0),
    ("string", True): (_to_string, 0, 0),
    ("startsWith", True): (_starts_with, 1, 1),
    ("endsWith", True): (_ends_with, 1, 1),
    ("matches", True): (_matches, 1, 1),
    ("matches", False): (_matches, 2, 2),
    ("regexReplace", True): (_regex_replace, 2, 2),
    ("json", False): (_json_of, 1, 1),
    ("jsonField", False): (_json_field, 2, 2),
    ("toJson", False): (json_text, 1, 1),
    ("toJson", True): (json_text, 0, 0),
    ("to_json", False): (json_text, 1, 1),
    ("to_json", True): (json_text, 0, 0),
    ("flatten", False): (Flattened, 1, 1),
    ("flattenRecursive", False): (_flatten_all, 1, 1),
    ("flatten_recursive", False): (_flatten_all, 1, 1),
    ("merge", True): (_merge, 1, 1),
    ("fail", False): (_fail, 0, 1),
    ("random", False): (_random_number, 0, 0),
    ("uuid", False): (_uuid_text, 0, 0),
    ("unredacted", True): (_unredacted, 0, 0),
    ("max", False): (_extreme(True), 1, MANY),
    ("min", False): (_extreme(False), 1, MANY),
    ("optional.of", False): (_optional_of, 1, 1),
    ("optional.none", False): (_optional_none, 0, 0),
    ("optional.ofNonZeroValue", False): (_optional_non_zero, 1, 1),
    ("optional.unwrap", False): (_unwrap, 1, 1),
    ("unwrapOpt", True): (_unwrap, 0, 0),
    ("value", True): (_value, 0, 0),
    ("hasValue", True): (_has_value, 0, 0),
}
