"""The strings extension (https://pkg.go.dev/github.com/google/cel-go/ext#Strings), stripPrefix() and stripSuffix().

Positions count characters.
"""

import math

from headgate_engine.expr.values cimport Duration, Timestamp, TypeValue, Uint

from headgate_engine.expr.functions import double_text
from headgate_engine.expr.times import duration_text, timestamp_text
from headgate_engine.expr.values import MAX_LENGTH, EvaluationError, no_overload

# White space of the Unicode standard, which trim() removes.
SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\",
            '"': '\\"'}


def _text(value):
    if isinstance(value, str):
        return str(value)
    raise no_overload("a string is wanted")


def _whole(value):
    if type(value) is int:
        return value
    raise no_overload("an int is wanted")


def _char_at(text, position):
    text, position = _text(text), _whole(position)
    if not 0 <= position <= len(text):
        raise EvaluationError(f"index out of range: {position}")
    return text[position:position + 1]


def _index_of(text, part, *start):
    text, part = _text(text), _text(part)
    at = _whole(start[0]) if start else 0
    if at < 0:
        raise EvaluationError(f"index out of range: {at}")
    return text.find(part, at)           # -1 for a start past the end


def _last_index_of(text, part, *start):
    text, part = _text(text), _text(part)
    if not start:
        return text.rfind(part)
    at = _whole(start[0])
    if at < 0:
        raise EvaluationError(f"index out of range: {at}")
    return text.rfind(part, 0, at + len(part)) if at <= len(text) else -1


def _lower(text):
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in _text(text))


def _upper(text):
    return "".join(chr(ord(c) - 32) if "a" <= c <= "z" else c for c in _text(text))


def _trim(text):
    return _text(text).strip(SPACES)


def _replace(text, old, new, *count):
    text, old, new = _text(text), _text(old), _text(new)
    most = _whole(count[0]) if count else -1
    times = len(text) + 1 if not old else text.count(old)
    if len(text) + times * len(new) > MAX_LENGTH:
        raise EvaluationError("value is too long")
    return text.replace(old, new, most)


def _split(text, separator, *count):
    text, separator = _text(text), _text(separator)
    most = _whole(count[0]) if count else -1
    if most == 0:
        return []
    if not separator:
        return list(text) if most < 0 or len(text) <= most else [*text[:most - 1], text[most - 1:]]
    return text.split(separator, -1 if most < 0 else most - 1)


def _substring(text, start, *stop):
    text, start = _text(text), _whole(start)
    end = min(_whole(stop[0]), len(text)) if stop else len(text)
    if start < 0 or start > len(text) or end < start:
        raise EvaluationError(f"index out of range: {start}..{end}")
    return text[start:end]


def _join(parts, *separator):
    if hasattr(parts, "cel_join"):
        return parts.cel_join(*separator)
    if not isinstance(parts, (list, tuple)):
        raise no_overload("join")
    between = _text(separator[0]) if separator else ""
    texts = [_text(part) for part in parts]
    if sum(map(len, texts)) + len(between) * len(texts) > MAX_LENGTH:
        raise EvaluationError("value is too long")
    return between.join(texts)


def _strip_prefix(text, part):
    return _text(text).removeprefix(_text(part))


def _strip_suffix(text, part):
    return _text(text).removesuffix(_text(part))


def _reverse(text):
    return _text(text)[::-1]


def _quote(text):
    text = _text(text).encode("utf-8", "replace").decode("utf-8", "replace")
    return '"' + "".join(_ESCAPES.get(c, c) for c in text) + '"'


# -- format --------------------------------------------------------------------------------------------------------------
MAX_PRECISION = 100


def _format(template, arguments):
    template = _text(template)
    if not isinstance(arguments, (list, tuple)):
        raise no_overload("format")
    parts, at, used = [], 0, 0
    while at < len(template):
        if template[at] != "%":
            stop = template.find("%", at)
            stop = len(template) if stop < 0 else stop
            parts.append(template[at:stop])
            at = stop
            continue
        at += 1
        if template[at:at + 1] == "%":
            parts.append("%")
            at += 1
            continue
        precision = None
        if template[at:at + 1] == ".":
            stop = at + 1
            while stop < len(template) and template[stop].isdigit():
                stop += 1
            if stop == at + 1 or int(template[at + 1:stop]) > MAX_PRECISION:
                raise EvaluationError("could not parse formatting clause: bad precision")
            precision, at = int(template[at + 1:stop]), stop
        verb = template[at:at + 1]
        at += 1
        if verb not in _VERBS or not verb:
            raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
        if used >= len(arguments):
            raise EvaluationError(f"index {used} out of range")
        parts.append(_VERBS[verb](arguments[used], precision))
        used += 1
    return "".join(parts)


def _string_verb(value, precision):
    if isinstance(value, str):
        return str(value)
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    if type(value) is Uint:
        return str((<Uint>value).value)
    if type(value) is float:
        return _special(value, "Infinity") or double_text(value)
    if type(value) is bytes:
        return value.decode("utf-8", "replace")
    if type(value) is Timestamp:
        return timestamp_text(value)
    if type(value) is Duration:
        return duration_text(value)
    if type(value) is TypeValue:
        return (<TypeValue>value).name
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_string_verb(one, None) for one in value) + "]"
    if isinstance(value, dict):
        if not all(isinstance(key, (str, int, bool, Uint)) for key in value):
            raise no_overload("format of this map")
        texts = sorted((_string_verb(key, None), _string_verb(one, None)) for key, one in value.items())
        return "{" + ", ".join(f"{key}: {one}" for key, one in texts) + "}"
    raise EvaluationError("error during formatting: string clause can only be used on strings, bools, bytes, ints, "
                          "doubles, maps, lists, types, durations, and timestamps")


def _special(value, infinity):
    if value != value:
        return "NaN"
    if math.isinf(value):
        return infinity if value > 0 else f"-{infinity}"
    return ""


def _integer(value):
    if type(value) is Uint:
        return (<Uint>value).value
    return value if type(value) is int else None


def _decimal_verb(value, precision):
    if type(value) is float:
        special = _special(value, "Infinity")
        if special:
            return special
    found = _integer(value)
    if found is None:
        raise EvaluationError("error during formatting: decimal clause can only be used on integers")
    return str(found)


def _double_of(value):
    if isinstance(value, str):
        if value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
        raise EvaluationError("error during formatting: only doubles are formatted as such")
    if type(value) is float:
        return value
    found = _integer(value)
    if found is None:
        raise EvaluationError("error during formatting: fixed-point clause can only be used on doubles")
    return found


def _fixed_verb(value, precision):
    number = _double_of(value)
    special = _special(number, "Infinity") if type(number) is float else ""
    if special:
        return special
    digits = 6 if precision is None else precision
    # Rounds half to even on the exact value, as Go and C do.
    if type(number) is not int:
        return f"{number:.{digits}f}"
    import decimal

    return f"{decimal.Decimal(number):.{digits}f}"


def _scientific_verb(value, precision):
    number = _double_of(value)
    special = _special(number, "Infinity") if type(number) is float else ""
    return special or f"{number:.{6 if precision is None else precision}e}"


def _binary_verb(value, precision):
    if type(value) is bool:
        return "1" if value else "0"
    found = _integer(value)
    if found is None:
        raise EvaluationError("error during formatting: only integers and bools can be formatted as binary")
    return f"{found:b}"


def _octal_verb(value, precision):
    found = _integer(value)
    if found is None:
        raise EvaluationError("error during formatting: octal clause can only be used on integers")
    return f"{found:o}"


def _hex_verb(value, precision):
    if isinstance(value, str):
        return value.encode().hex()
    if type(value) is bytes:
        return value.hex()
    found = _integer(value)
    if found is None:
        raise EvaluationError("error during formatting: only integers, byte buffers, and strings can be formatted as hex")
    return f"{found:x}"


_VERBS = {"s": _string_verb, "d": _decimal_verb, "f": _fixed_verb, "e": _scientific_verb, "b": _binary_verb,
          "o": _octal_verb, "x": _hex_verb, "X": lambda value, precision: _hex_verb(value, precision).upper()}

FUNCTIONS = {
    ("charAt", True): (_char_at, 1, 1),
    ("indexOf", True): (_index_of, 1, 2),
    ("lastIndexOf", True): (_last_index_of, 1, 2),
    ("lowerAscii", True): (_lower, 0, 0),
    ("upperAscii", True): (_upper, 0, 0),
    ("trim", True): (_trim, 0, 0),
    ("replace", True): (_replace, 2, 3),
    ("split", True): (_split, 1, 2),
    ("substring", True): (_substring, 1, 2),
    ("join", True): (_join, 0, 1),
    ("stripPrefix", True): (_strip_prefix, 1, 1),
    ("stripSuffix", True): (_strip_suffix, 1, 1),
    ("reverse", True): (_reverse, 0, 0),
    ("format", True): (_format, 1, 1),
    ("strings.quote", False): (_quote, 1, 1),
}
