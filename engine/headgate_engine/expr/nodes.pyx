# cython: auto_pickle=True
# Compiled expressions are sent to the workers as pickles.
"""Nodes of compiled expressions: access, operators and logic. Macros are in comprehensions.pyx, functions in functions.pyx."""

from headgate_engine.expr.cost cimport TEXT_SHIFT, charge
from headgate_engine.expr.values cimport (
    OptionalValue, Uint, add, compare, contains, divide, equal, index, modulo, multiply, negate, subtract)

from headgate_engine.expr.values import NONE, EvaluationError, NoSuchKey, Undeclared, no_overload

cdef enum Operator:
    ADD = 0
    SUBTRACT = 1
    MULTIPLY = 2
    DIVIDE = 3
    MODULO = 4
    LESS = 5
    LESS_EQUAL = 6
    GREATER = 7
    GREATER_EQUAL = 8

# Exceptions that functions and readers built on Python's library may raise for unusual input.
FAILURES = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, RecursionError)
OPERATORS = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY, "/": DIVIDE, "%": MODULO,
             "<": LESS, "<=": LESS_EQUAL, ">": GREATER, ">=": GREATER_EQUAL}


ABSENT = object()
# Steps of functions that take long whatever their arguments are: random numbers are the kernel's.
COSTS = {"uuid": 100}


cdef class EvaluationFrame:
    cdef int spend(self) except -1:
        self.budget -= 1
        if self.budget < 0:
            raise EvaluationError("the expression takes too many steps")
        return 0

    cdef int raise_absent(self) except -1:
        raise NoSuchKey(f"no such key: {self.missing}")


cdef int charge_deep(EvaluationFrame frame, object value) except -1:
    """Charge a value with all members of its lists and maps. Used where an operation may visit them.

    A member counts as often as it is there: many members may be one and the same long text.
    """
    charge(frame, value)
    if type(value) is list:
        for one in <list>value:
            if is_large(one):
                charge_deep(frame, one)
    elif type(value) is dict:
        for one in (<dict>value).values():
            if is_large(one):
                charge_deep(frame, one)
    elif type(value) is OptionalValue:
        charge_deep(frame, (<OptionalValue>value).inner)
    elif isinstance(value, str) or type(value) is bytes or not is_large(value):
        return 0
    else:
        spend_steps(frame, value.cel_size() >> TEXT_SHIFT)     # fields of a message, or what is to be flattened
    return frame.spend()


cdef bint is_large(object value):
    """Whether a value may be more than a few bytes."""
    if value is None or type(value) is int or type(value) is bool or type(value) is float or type(value) is Uint:
        return False
    return isinstance(value, str) or type(value) is list or type(value) is dict or type(value) is bytes or (
        type(value) is OptionalValue or hasattr(value, "cel_size"))


cdef int spend_steps(EvaluationFrame frame, Py_ssize_t steps) except -1:
    if steps > frame.budget:
        frame.budget = 0
        return frame.spend()                # raises EvaluationError
    frame.budget -= <int>steps
    return 0


cdef class ExpressionNode:
    cdef object eval(self, EvaluationFrame frame):
        raise NotImplementedError(type(self).__name__)

    cdef object probe(self, EvaluationFrame frame):
        return self.eval(frame)

    cdef int truth(self, EvaluationFrame frame) except -1:
        value = self.probe(frame)
        if value is True:
            return 1
        if value is False:
            return 0
        if value is ABSENT:
            return UNKNOWN
        raise no_overload("a condition is no bool")

    cdef int decided(self, EvaluationFrame frame) except -1:
        cdef int found = self.truth(frame)
        if found == UNKNOWN:
            frame.raise_absent()
        return found


cdef class Const(ExpressionNode):
    def __init__(self, value):
        self.value = value

    cdef object eval(self, EvaluationFrame frame):
        return self.value


cdef class Local(ExpressionNode):
    """A variable that a macro binds."""

    def __init__(self, int slot):
        self.slot = slot

    cdef object eval(self, EvaluationFrame frame):
        return frame.slots[self.slot]


cdef class Binding(ExpressionNode):
    """A name whose value the caller of the evaluation passes."""

    cdef readonly str name

    def __init__(self, str name):
        self.name = name

    cdef object eval(self, EvaluationFrame frame):
        if frame.bindings is None or self.name not in frame.bindings:
            raise Undeclared(f"undeclared reference to '{self.name}'")
        return frame.bindings[self.name]


cdef object select(object holder, str field):
    found = field_of(holder, field)
    if found is ABSENT:
        raise NoSuchKey(f"no such key: {field}")
    return found


cdef object field_of(object holder, str field):
    """Return the field, or ABSENT if a map or null does not have it. Other types may raise NoSuchKey instead."""
    if type(holder) is dict:
        return (<dict>holder).get(field, ABSENT)
    if holder is None:
        return ABSENT
    if type(holder) is OptionalValue:
        if not (<OptionalValue>holder).present:
            return NONE
        return optional_select((<OptionalValue>holder).inner, field)
    finder = getattr(holder, "cel_find", None)
    if finder is not None:
        return finder(field)
    if isinstance(holder, dict):
        return index(holder, field)
    raise no_overload(f"field selection of {field}")


cdef object optional_select(object holder, str field):
    if holder is None:
        raise no_overload(f"field selection of {field} from null")
    try:
        found = field_of(holder, field)
    except NoSuchKey:
        return NONE
    return NONE if found is ABSENT else OptionalValue(True, found)


cdef class Select(ExpressionNode):
    def __init__(self, ExpressionNode operand, str field):
        self.operand = operand
        self.field = field

    cdef object eval(self, EvaluationFrame frame):
        return select(self.operand.eval(frame), self.field)

    cdef object probe(self, EvaluationFrame frame):
        holder = self.operand.probe(frame)
        if holder is ABSENT:
            return ABSENT
        found = field_of(holder, self.field)
        if found is ABSENT:
            frame.missing = self.field
        return found


cdef class Has(ExpressionNode):
    """`has(a.b)`."""

    cdef ExpressionNode operand
    cdef str field

    def __init__(self, ExpressionNode operand, str field):
        self.operand = operand
        self.field = field

    cdef object eval(self, EvaluationFrame frame):
        holder = self.operand.eval(frame)
        if type(holder) is dict:
            return self.field in <dict>holder
        try:
            found = field_of(holder, self.field)
        except NoSuchKey:
            return False
        if found is ABSENT:
            return False
        return type(found) is not OptionalValue or (<OptionalValue>found).present


cdef class Present(ExpressionNode):
    """`has()` of a field of a variable: true if the field has a value."""

    cdef ExpressionNode operand

    def __init__(self, ExpressionNode operand):
        self.operand = operand

    cdef object eval(self, EvaluationFrame frame):
        return self.decided(frame) == 1

    cdef int truth(self, EvaluationFrame frame) except -1:
        try:
            return self.operand.probe(frame) is not ABSENT
        except NoSuchKey:
            return 0


cdef class OptionalSelect(ExpressionNode):
    """`a.?b`. lenient: the operand may be null because nothing has set it yet; null then has no fields."""

    cdef ExpressionNode operand
    cdef str field
    cdef bint lenient

    def __init__(self, ExpressionNode operand, str field, bint lenient=False):
        self.operand = operand
        self.field = field
        self.lenient = lenient

    cdef object eval(self, EvaluationFrame frame):
        holder = self.operand.eval(frame)
        if type(holder) is OptionalValue:
            return select(holder, self.field)
        return NONE if holder is None and self.lenient else optional_select(holder, self.field)


cdef class Index(ExpressionNode):
    cdef ExpressionNode operand, key

    def __init__(self, ExpressionNode operand, ExpressionNode key):
        self.operand = operand
        self.key = key

    cdef object eval(self, EvaluationFrame frame):
        holder = self.operand.eval(frame)
        key = self.key.eval(frame)
        if type(holder) is OptionalValue:
            return optional_index(holder, key)
        if holder is None:
            raise NoSuchKey(f"no such key: {key}")
        return index(holder, key)

    cdef object probe(self, EvaluationFrame frame):
        holder = self.operand.probe(frame)
        if holder is ABSENT:
            return ABSENT
        key = self.key.eval(frame)
        if (holder is None or type(holder) is dict) and type(key) is str:
            found = ABSENT if holder is None else (<dict>holder).get(key, ABSENT)
            if found is ABSENT:
                frame.missing = <str>key
            return found
        if type(holder) is OptionalValue:
            return optional_index(holder, key)
        if holder is None:
            raise NoSuchKey(f"no such key: {key}")
        return index(holder, key)


cdef object optional_index(object holder, object key):
    if type(holder) is OptionalValue:
        if not (<OptionalValue>holder).present:
            return NONE
        holder = (<OptionalValue>holder).inner
    if isinstance(holder, (list, tuple)):
        if type(key) is Uint:
            key = (<Uint>key).value
        if type(key) is int and not 0 <= key < len(holder):
            return NONE
    if type(holder) is dict and type(key) is str:
        found = (<dict>holder).get(key, ABSENT)
        return NONE if found is ABSENT else OptionalValue(True, found)
    finder = getattr(holder, "cel_find", None)
    if finder is not None:
        found = finder(key)
        return NONE if found is ABSENT else OptionalValue(True, found)
    try:
        return OptionalValue(True, index(holder, key))
    except NoSuchKey:
        return NONE


cdef class OptionalIndex(ExpressionNode):
    """`a[?b]`."""

    cdef ExpressionNode operand, key

    def __init__(self, ExpressionNode operand, ExpressionNode key):
        self.operand = operand
        self.key = key

    cdef object eval(self, EvaluationFrame frame):
        return optional_index(self.operand.eval(frame), self.key.eval(frame))


# -- logic: an error on one side does not count when the other side decides (langdef, "Logical operators") ----------------
cdef class And(ExpressionNode):
    cdef ExpressionNode left, right

    def __init__(self, ExpressionNode left, ExpressionNode right):
        self.left = left
        self.right = right

    cdef object eval(self, EvaluationFrame frame):
        return self.decided(frame) == 1

    cdef int truth(self, EvaluationFrame frame) except -1:
        cdef int found
        cdef str missing
        try:
            found = self.left.truth(frame)
        except EvaluationError:
            if self.right.truth(frame) == 0:
                return 0
            raise
        if found == 0:
            return 0
        if found != UNKNOWN:
            return self.right.truth(frame)
        missing = frame.missing
        if self.right.truth(frame) == 0:
            return 0
        frame.missing = missing
        return UNKNOWN


cdef class Or(ExpressionNode):
    cdef ExpressionNode left, right

    def __init__(self, ExpressionNode left, ExpressionNode right):
        self.left = left
        self.right = right

    cdef object eval(self, EvaluationFrame frame):
        return self.decided(frame) == 1

    cdef int truth(self, EvaluationFrame frame) except -1:
        cdef int found
        cdef str missing
        try:
            found = self.left.truth(frame)
        except EvaluationError:
            if self.right.truth(frame) == 1:
                return 1
            raise
        if found == 1:
            return 1
        if found != UNKNOWN:
            return self.right.truth(frame)
        missing = frame.missing
        if self.right.truth(frame) == 1:
            return 1
        frame.missing = missing
        return UNKNOWN


cdef class Not(ExpressionNode):
    cdef ExpressionNode operand

    def __init__(self, ExpressionNode operand):
        self.operand = operand

    cdef object eval(self, EvaluationFrame frame):
        return self.decided(frame) == 1

    cdef int truth(self, EvaluationFrame frame) except -1:
        cdef int found = self.operand.truth(frame)
        return UNKNOWN if found == UNKNOWN else 1 - found


cdef class Ternary(ExpressionNode):
    cdef ExpressionNode condition, yes, no

    def __init__(self, ExpressionNode condition, ExpressionNode yes, ExpressionNode no):
        self.condition = condition
        self.yes = yes
        self.no = no

    cdef object eval(self, EvaluationFrame frame):
        return self.yes.eval(frame) if self.condition.decided(frame) else self.no.eval(frame)


# -- comparison and arithmetic -------------------------------------------------------------------------------------------
cdef class Equal(ExpressionNode):
    cdef ExpressionNode left, right
    cdef bint negated

    def __init__(self, ExpressionNode left, ExpressionNode right, bint negated=False):
        self.left = left
        self.right = right
        self.negated = negated

    cdef object eval(self, EvaluationFrame frame):
        return self.decided(frame) == 1

    cdef int truth(self, EvaluationFrame frame) except -1:
        left = self.left.probe(frame)
        if left is ABSENT:
            return UNKNOWN
        right = self.right.probe(frame)
        if right is ABSENT:
            return UNKNOWN
        charge_deep(frame, left)
        return equal(left, right) != self.negated


cdef class EqualText(ExpressionNode):
    """Equality with a string that is known at compile time."""

    cdef ExpressionNode operand
    cdef str text
    cdef bint negated

    def __init__(self, ExpressionNode operand, str text, bint negated=False):
        self.operand = operand
        self.text = text
        self.negated = negated

    cdef object eval(self, EvaluationFrame frame):
        return self.decided(frame) == 1

    cdef int truth(self, EvaluationFrame frame) except -1:
        value = self.operand.probe(frame)
        if value is ABSENT:
            return UNKNOWN
        if isinstance(value, str):
            return (value == self.text) != self.negated
        return equal(value, self.text) != self.negated


cdef class In(ExpressionNode):
    cdef ExpressionNode item, holder

    def __init__(self, ExpressionNode item, ExpressionNode holder):
        self.item = item
        self.holder = holder

    cdef object eval(self, EvaluationFrame frame):
        return self.decided(frame) == 1

    cdef int truth(self, EvaluationFrame frame) except -1:
        item = self.item.probe(frame)
        if item is ABSENT:
            return UNKNOWN
        holder = self.holder.probe(frame)
        if holder is ABSENT:
            return UNKNOWN
        if type(holder) is not dict:
            charge_deep(frame, holder)
        return contains(item, holder)


cdef class InTexts(ExpressionNode):
    """Membership in a list of strings that is known at compile time."""

    cdef ExpressionNode item
    cdef frozenset texts

    def __init__(self, ExpressionNode item, frozenset texts):
        self.item = item
        self.texts = texts

    cdef object eval(self, EvaluationFrame frame):
        return self.decided(frame) == 1

    cdef int truth(self, EvaluationFrame frame) except -1:
        item = self.item.probe(frame)
        if item is ABSENT:
            return UNKNOWN
        if isinstance(item, str):
            return item in self.texts
        return contains(item, list(self.texts))


cdef class Arithmetic(ExpressionNode):
    cdef ExpressionNode left, right
    cdef int operator

    def __init__(self, str operator, ExpressionNode left, ExpressionNode right):
        self.operator = OPERATORS[operator]
        self.left = left
        self.right = right

    cdef object eval(self, EvaluationFrame frame):
        cdef int order
        a = self.left.eval(frame)
        b = self.right.eval(frame)
        if self.operator == ADD:
            charge(frame, a)
            charge(frame, b)
            return add(a, b)
        if self.operator == SUBTRACT:
            return subtract(a, b)
        if self.operator == MULTIPLY:
            return multiply(a, b)
        if self.operator == DIVIDE:
            return divide(a, b)
        if self.operator == MODULO:
            return modulo(a, b)
        order = compare(a, b)
        if order == 2:
            return False
        if self.operator == LESS:
            return order < 0
        if self.operator == LESS_EQUAL:
            return order <= 0
        if self.operator == GREATER:
            return order > 0
        return order >= 0


cdef class Negate(ExpressionNode):
    cdef ExpressionNode operand

    def __init__(self, ExpressionNode operand):
        self.operand = operand

    cdef object eval(self, EvaluationFrame frame):
        return negate(self.operand.eval(frame))


# -- literals ------------------------------------------------------------------------------------------------------------
cdef class MakeList(ExpressionNode):
    """`[a, ?b]`. optional: positions that are left out if their value is absent."""

    cdef tuple items
    cdef frozenset optional

    def __init__(self, tuple items, frozenset optional=frozenset()):
        self.items = items
        self.optional = optional

    cdef object eval(self, EvaluationFrame frame):
        cdef list found = []
        cdef Py_ssize_t i
        for i in range(len(self.items)):
            value = (<ExpressionNode>self.items[i]).eval(frame)
            if self.optional and i in self.optional:
                if type(value) is not OptionalValue:
                    raise no_overload("an optional member must be optional")
                if not (<OptionalValue>value).present:
                    continue
                value = (<OptionalValue>value).inner
            found.append(value)
        charge(frame, found)
        return found


cdef class MakeMap(ExpressionNode):
    """`{a: b, ?c: d}`. optional: positions that are left out if their value is absent."""

    cdef tuple keys, values
    cdef frozenset optional

    def __init__(self, tuple keys, tuple values, frozenset optional=frozenset()):
        self.keys = keys
        self.values = values
        self.optional = optional

    cdef object eval(self, EvaluationFrame frame):
        cdef dict found = {}
        cdef Py_ssize_t i
        for i in range(len(self.keys)):
            key = (<ExpressionNode>self.keys[i]).eval(frame)
            if not isinstance(key, (str, int, bool, Uint)):
                raise EvaluationError("unsupported key type")
            value = (<ExpressionNode>self.values[i]).eval(frame)
            if self.optional and i in self.optional:
                if type(value) is not OptionalValue:
                    raise no_overload("an optional entry must be optional")
                if not (<OptionalValue>value).present:
                    continue
                value = (<OptionalValue>value).inner
            if key in found:
                raise EvaluationError(f"repeated key: {key}")
            found[key] = value
        charge(frame, found)
        return found


# -- calls ---------------------------------------------------------------------------------------------------------------
cdef class CallNode(ExpressionNode):
    """A call of a built-in function or of one that the configuration defines. All arguments are evaluated first."""

    cdef readonly str name
    cdef object function
    cdef tuple arguments
    cdef int cost                    # steps beside those of its values

    def __init__(self, str name, function, tuple arguments):
        self.name = name
        self.cost = COSTS.get(name, 0)
        self.function = function
        self.arguments = arguments

    cdef object eval(self, EvaluationFrame frame):
        cdef Py_ssize_t n = len(self.arguments)
        if self.cost:
            spend_steps(frame, self.cost)
        try:
            if n == 1:
                first = (<ExpressionNode>self.arguments[0]).eval(frame)
                charge_deep(frame, first)
                found = self.function(first)
            elif n == 2:
                first = (<ExpressionNode>self.arguments[0]).eval(frame)
                charge_deep(frame, first)
                second = (<ExpressionNode>self.arguments[1]).eval(frame)
                charge(frame, second)
                found = self.function(first, second)
            else:
                values = [(<ExpressionNode>argument).eval(frame) for argument in self.arguments]
                for value in values:
                    charge_deep(frame, value)
                found = self.function(*values)
            charge(frame, found)
            return found
        except EvaluationError:
            raise
        except FAILURES as error:
            raise EvaluationError(f"{self.name}: {error}") from None


cdef class StartsWith(ExpressionNode):
    """`s.startsWith("known")`."""

    cdef ExpressionNode operand
    cdef str prefix

    def __init__(self, ExpressionNode operand, str prefix):
        self.operand = operand
        self.prefix = prefix

    cdef object eval(self, EvaluationFrame frame):
        return self.decided(frame) == 1

    cdef int truth(self, EvaluationFrame frame) except -1:
        value = self.operand.probe(frame)
        if value is ABSENT:
            return UNKNOWN
        if type(value) is str:
            return (<str>value).startswith(self.prefix)
        if isinstance(value, str):
            return str(value).startswith(self.prefix)
        raise no_overload("startsWith")


cdef class Default(ExpressionNode):
    """`default(a, b)`: b if a is null, a missing key or an unknown name. Other errors of a are raised."""

    cdef ExpressionNode operand, other

    def __init__(self, ExpressionNode operand, ExpressionNode other):
        self.operand = operand
        self.other = other

    cdef object eval(self, EvaluationFrame frame):
        try:
            value = self.operand.probe(frame)
        except (NoSuchKey, Undeclared):
            return self.other.eval(frame)
        return self.other.eval(frame) if value is None or value is ABSENT else value


cdef class Coalesce(ExpressionNode):
    """`coalesce(a, ...)`: the first operand that is neither null nor an error.

    If there is none: null if an operand was null, else the last error.
    """

    cdef tuple operands

    def __init__(self, tuple operands):
        self.operands = operands

    cdef object eval(self, EvaluationFrame frame):
        cdef bint null = False
        failure = None
        for operand in self.operands:
            try:
                value = (<ExpressionNode>operand).probe(frame)
            except EvaluationError as error:
                failure = error
                continue
            if value is ABSENT:
                failure = None
            elif value is not None:
                return value
            else:
                null = True
        if null:
            return None
        if failure is None:
            frame.raise_absent()
        raise failure


cdef class OptionalOr(ExpressionNode):
    """`a.or(b)` and, with `value`, `a.orValue(b)`: b is evaluated only if a is absent."""

    cdef ExpressionNode operand, other
    cdef bint value

    def __init__(self, ExpressionNode operand, ExpressionNode other, bint value):
        self.operand = operand
        self.other = other
        self.value = value

    cdef object eval(self, EvaluationFrame frame):
        found = self.operand.eval(frame)
        if type(found) is not OptionalValue:
            raise no_overload("or() of a value that is not optional")
        if (<OptionalValue>found).present:
            return (<OptionalValue>found).inner if self.value else found
        return self.other.eval(frame)
