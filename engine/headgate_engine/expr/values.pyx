# cython: auto_pickle=True
# Compiled expressions are sent to the workers as pickles.
"""Values and operators of expressions: https://github.com/google/cel-spec/blob/master/doc/langdef.md."""

import math

NS = 1_000_000_000
INT_MIN, INT_MAX, UINT_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
# Most characters, bytes or members of a value that an expression makes.
MAX_LENGTH = 8 << 20
# Ranges of google.protobuf: 10,000 years either way; 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999999Z.
DURATION_MAX = 315_576_000_000 * NS
TIMESTAMP_MIN, TIMESTAMP_MAX = -62_135_596_800 * NS, 253_402_300_800 * NS - 1


class EvaluationError(Exception):
    """The expression has no value for this request. The message is the reason."""


class NoSuchKey(EvaluationError):
    """A key or field does not exist."""


class Undeclared(EvaluationError):
    """A name is not declared in this place."""


def no_overload(what="operator"):
    return EvaluationError(f"no such overload: {what}")


cdef class Uint:
    """An unsigned 64-bit integer; equal to, and hashed like, the int of the same value."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        if isinstance(other, Uint):
            return self.value == (<Uint>other).value
        return NotImplemented if isinstance(other, bool) else self.value == other

    def __hash__(self):
        return hash(self.value)

    def __repr__(self):
        return f"{self.value}u"


cdef class Duration:
    """A span of time. ns: whole nanoseconds. Raises EvaluationError if they are out of range."""

    def __init__(self, ns):
        if not -DURATION_MAX <= ns <= DURATION_MAX:
            raise EvaluationError("duration out of range")
        self.ns = ns

    def __eq__(self, other):
        return isinstance(other, Duration) and self.ns == (<Duration>other).ns

    def __hash__(self):
        return hash(("duration", self.ns))

    def __repr__(self):
        seconds, rest = divmod(abs(self.ns), NS)
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{'-' if self.ns < 0 else ''}{seconds}{fraction}s"


cdef class Timestamp:
    """A point in time. ns: nanoseconds since the epoch. Raises EvaluationError if they are out of range."""

    def __init__(self, ns):
        if not TIMESTAMP_MIN <= ns <= TIMESTAMP_MAX:
            raise EvaluationError("timestamp out of range")
        self.ns = ns

    def __eq__(self, other):
        return isinstance(other, Timestamp) and self.ns == (<Timestamp>other).ns

    def __hash__(self):
        return hash(("timestamp", self.ns))

    def __repr__(self):
        return f"timestamp({self.ns})"


cdef class TypeValue:
    """The type of a value, as `type(x)` returns it."""

    def __init__(self, str name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, TypeValue) and self.name == (<TypeValue>other).name

    def __hash__(self):
        return hash(("type", self.name))

    def __repr__(self):
        return self.name


cdef class OptionalValue:
    """`optional.of(x)` or `optional.none()`."""

    def __init__(self, bint present, inner=None):
        self.present = present
        self.inner = inner

    def __repr__(self):
        return f"optional({self.inner!r})" if self.present else "optional.none()"


NONE = OptionalValue(False)


cdef class Redacted:
    """A credential in an expression: shown as `<redacted>` until unredacted() is called."""

    def __init__(self, bytes text):
        self.text = text

    def reveal(self):
        """Return the credential as a string. Bytes that are not UTF-8 become U+FFFD."""
        return self.text.decode("utf-8", "replace")

    def __repr__(self):
        return "<redacted>"


TYPE_NAMES = {
    type(None): "null_type", bool: "bool", int: "int", Uint: "uint", float: "double", str: "string", bytes: "bytes",
    list: "list", tuple: "list", dict: "map", Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp", TypeValue: "type", OptionalValue: "optional_type", Redacted: "string",
}
cdef dict TYPES = {kind: TypeValue(name) for kind, name in TYPE_NAMES.items()}


cdef object type_of(object value):
    found = TYPES.get(type(value))
    if found is None:
        for kind, known in TYPES.items():
            if isinstance(value, kind):
                return known
        return TypeValue(getattr(value, "TYPE_NAME", "dyn"))
    return found


def cel_type(value):
    """Return the type of a value."""
    return type_of(value)


cdef object checked_int(object value):
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


cdef object checked_uint(object value):
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


cdef inline bint is_number(object value):
    return type(value) is int or type(value) is float or type(value) is Uint


cdef inline object plain(object value):
    return (<Uint>value).value if type(value) is Uint else value


cdef bint equal(object a, object b) except -1:
    """Compare numbers across their types and lists and maps by their members. Values of different kinds are unequal."""
    if isinstance(a, str):                 # a URI is an instance of a subclass of str and equals the same string
        return isinstance(b, str) and a == b or type(b) is Redacted and a == reveal(b)
    if type(a) is bool or type(b) is bool:
        return type(a) is type(b) and a is b
    if is_number(a):
        return is_number(b) and plain(a) == plain(b)
    if isinstance(a, (list, tuple)):
        if not isinstance(b, (list, tuple)) or len(a) != len(b):
            return False
        for one, other in zip(a, b):
            if not equal(one, other):
                return False
        return True
    if isinstance(a, dict):
        if not isinstance(b, dict) or len(a) != len(b):
            return False
        for key, value in a.items():
            if key not in b or not equal(value, b[key]):
                return False
        return True
    if type(a) is OptionalValue:
        if type(b) is not OptionalValue or (<OptionalValue>a).present != (<OptionalValue>b).present:
            return False
        return not (<OptionalValue>a).present or equal((<OptionalValue>a).inner, (<OptionalValue>b).inner)
    if type(a) is Redacted or type(b) is Redacted:
        return reveal(a) == reveal(b)
    return type(a) is type(b) and a == b


cdef object reveal(object value):
    return (<Redacted>value).reveal() if type(value) is Redacted else value


cdef int compare(object a, object b) except -3:
    if is_number(a) and is_number(b):
        a, b = plain(a), plain(b)
        if type(a) is not type(b):
            a, b = float(a), float(b)      # an int and a double are ordered as two doubles
        if a != a or b != b:
            return 2
    elif isinstance(a, str) and isinstance(b, str):
        pass
    elif type(a) is not type(b) or not isinstance(a, (bytes, bool, Duration, Timestamp)):
        raise no_overload("order of these types")
    elif type(a) is Duration:
        a, b = (<Duration>a).ns, (<Duration>b).ns
    elif type(a) is Timestamp:
        a, b = (<Timestamp>a).ns, (<Timestamp>b).ns
    return -1 if a < b else 1 if a > b else 0


cdef object add(object a, object b):
    kind = type(a)
    if kind is type(b):
        if kind is int:
            return checked_int(a + b)
        if kind is float:
            return a + b
        if kind is str or kind is bytes or kind is list:
            # A short expression can double a value many times.
            if len(a) + len(b) > MAX_LENGTH:
                raise EvaluationError("value is too long")
            return a + b
        if kind is Uint:
            return checked_uint((<Uint>a).value + (<Uint>b).value)
        if kind is Duration:
            return Duration((<Duration>a).ns + (<Duration>b).ns)
    elif kind is Timestamp and type(b) is Duration:
        return Timestamp((<Timestamp>a).ns + (<Duration>b).ns)
    elif kind is Duration and type(b) is Timestamp:
        return Timestamp((<Duration>a).ns + (<Timestamp>b).ns)
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return [*a, *b]
    elif isinstance(a, str) and isinstance(b, str):
        return str(a) + str(b)
    raise no_overload("+")


cdef object subtract(object a, object b):
    kind = type(a)
    if kind is type(b):
        if kind is int:
            return checked_int(a - b)
        if kind is float:
            return a - b
        if kind is Uint:
            return checked_uint((<Uint>a).value - (<Uint>b).value)
        if kind is Duration:
            return Duration((<Duration>a).ns - (<Duration>b).ns)
        if kind is Timestamp:
            ns = (<Timestamp>a).ns - (<Timestamp>b).ns
            if not INT_MIN <= ns <= INT_MAX:
                raise EvaluationError("duration out of range")
            return Duration(ns)
    elif kind is Timestamp and type(b) is Duration:
        return Timestamp((<Timestamp>a).ns - (<Duration>b).ns)
    raise no_overload("-")


cdef object multiply(object a, object b):
    if type(a) is type(b):
        if type(a) is int:
            return checked_int(a * b)
        if type(a) is float:
            return a * b
        if type(a) is Uint:
            return checked_uint((<Uint>a).value * (<Uint>b).value)
    raise no_overload("*")


cdef object divide(object a, object b):
    if type(a) is type(b):
        if type(a) is int:
            if b == 0:
                raise EvaluationError("divide by zero")
            quotient = abs(a) // abs(b)
            return checked_int(quotient if (a < 0) == (b < 0) else -quotient)
        if type(a) is float:
            if b == 0:
                if a == 0 or a != a:
                    return math.nan
                return math.copysign(math.inf, a) * math.copysign(1.0, b)
            return a / b
        if type(a) is Uint:
            if (<Uint>b).value == 0:
                raise EvaluationError("divide by zero")
            return Uint((<Uint>a).value // (<Uint>b).value)
    raise no_overload("/")


cdef object modulo(object a, object b):
    if type(a) is type(b):
        if type(a) is int:
            if b == 0:
                raise EvaluationError("modulus by zero")
            if a == INT_MIN and b == -1:
                raise EvaluationError("integer overflow")
            rest = abs(a) % abs(b)
            return -rest if a < 0 else rest
        if type(a) is Uint:
            if (<Uint>b).value == 0:
                raise EvaluationError("modulus by zero")
            return Uint((<Uint>a).value % (<Uint>b).value)
    raise no_overload("%")


cdef object negate(object a):
    if type(a) is int:
        return checked_int(-a)
    if type(a) is float:
        return -a
    if type(a) is Duration:
        return Duration(-(<Duration>a).ns)
    raise no_overload("-")


cdef bint contains(object item, object holder) except -1:
    if isinstance(holder, dict):
        return has_key(<dict>holder, item)
    if isinstance(holder, (list, tuple)):
        for one in holder:
            if equal(one, item):
                return True
        return False
    finder = getattr(holder, "cel_contains", None)
    if finder is not None:
        return finder(item)
    raise no_overload("in")


cdef bint has_key(dict holder, object key) except -1:
    """Return whether a map has the key. 1, 1u and 1.0 are the same key, true is another."""
    if isinstance(key, str):
        return key in holder
    if type(key) is not bool and not is_number(key):
        return False
    if key not in holder:
        return False
    if type(key) is bool:
        return any(known is key for known in holder)
    return not (plain(key) == 0 or plain(key) == 1) or any(type(known) is not bool and known == key for known in holder)


cdef object index(object holder, object key):
    if isinstance(holder, dict):
        if isinstance(key, str):
            found = (<dict>holder).get(key, NONE)
            if found is NONE:
                raise NoSuchKey(f"no such key: {key}")
            return found
        if not has_key(<dict>holder, key):
            raise NoSuchKey(f"no such key: {key!r}")
        return holder[key]
    if isinstance(holder, (list, tuple)):
        position = plain(key)
        if type(position) is bool or type(position) is str or not is_number(position):
            raise no_overload("index of a list")
        if type(position) is float:
            if position != position or position in (math.inf, -math.inf) or position != int(position):
                raise EvaluationError("invalid argument: index is no whole number")
            position = int(position)
        if not 0 <= position < len(holder):
            raise EvaluationError(f"index out of bounds: {position}")
        return holder[position]
    finder = getattr(holder, "cel_index", None)
    if finder is not None:
        return finder(key)
    raise no_overload("index")


# -- Python faces, for tests and for functions written in Python ---------------------------------------------------------
