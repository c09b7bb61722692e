# cython: auto_pickle=True
# Compiled expressions are sent to the workers as pickles.
"""Macros that visit the members of a list or map. Every visit costs one step of the evaluation's budget."""

from headgate_engine.expr.nodes cimport ABSENT, EvaluationFrame, ExpressionNode
from headgate_engine.expr.values cimport OptionalValue

from headgate_engine.expr.functions import as_map
from headgate_engine.expr.values import NONE, EvaluationError, no_overload

cdef enum Kind:
    ALL = 0
    EXISTS = 1
    EXISTS_ONE = 2
    FILTER = 3             # a list, or with `keys` a map
    MAP = 4
    TRANSFORM_LIST = 5
    TRANSFORM_MAP = 6
    TRANSFORM_ENTRY = 7
    MAP_VALUES = 8
    FILTER_KEYS = 9

KINDS = {"all": ALL, "exists": EXISTS, "existsOne": EXISTS_ONE, "filter": FILTER, "map": MAP,
         "transformList": TRANSFORM_LIST, "transformMap": TRANSFORM_MAP, "transformMapEntry": TRANSFORM_ENTRY,
         "mapValues": MAP_VALUES, "filterKeys": FILTER_KEYS}


cdef class Comprehension(ExpressionNode):
    """One macro over a list or map.

    kind: a key of KINDS. predicate, result: None if the macro has none. first, second: slots of its variables;
    second is -1 if it has one variable.
    """

    def __init__(self, str kind, ExpressionNode source, int first, int second=-1, ExpressionNode predicate=None,
                 ExpressionNode result=None):
        self.kind = KINDS[kind]
        self.source = source
        self.first = first
        self.second = second
        self.predicate = predicate
        self.result = result

    cdef object eval(self, EvaluationFrame frame):
        holder = self.source.eval(frame)
        if self.kind <= EXISTS:
            return self.quantify(frame, holder)
        if self.kind == MAP_VALUES or self.kind == FILTER_KEYS:
            return self.rebuild(frame, holder)
        return self.collect(frame, holder)

    cdef int truth(self, EvaluationFrame frame) except -1:
        if self.kind <= EXISTS:
            return self.quantify(frame, self.source.eval(frame))
        return ExpressionNode.truth(self, frame)

    cdef bint quantify(self, EvaluationFrame frame, object holder) except -1:
        """Evaluate all() or exists().

        As with the logical operators, a predicate that decides the result outweighs errors.
        """
        cdef bint wanted = self.kind == EXISTS
        cdef list slots = frame.slots
        failure = None
        if type(holder) is list and self.second < 0:
            for item in <list>holder:
                frame.spend()
                slots[self.first] = item
                try:
                    if self.predicate.decided(frame) == wanted:
                        return wanted
                except EvaluationError as error:
                    self.check_budget(frame, error)
                    failure = error
        else:
            for key, item in pairs(holder, self.second >= 0):
                frame.spend()
                slots[self.first] = key
                if self.second >= 0:
                    slots[self.second] = item
                try:
                    if self.predicate.decided(frame) == wanted:
                        return wanted
                except EvaluationError as error:
                    self.check_budget(frame, error)
                    failure = error
        if failure is not None:
            raise failure
        return not wanted

    cdef int check_budget(self, EvaluationFrame frame, error) except -1:
        if frame.budget < 0:
            raise error
        return 0

    cdef object collect(self, EvaluationFrame frame, object holder):
        cdef list slots = frame.slots
        cdef list items = []
        cdef dict entries = {}
        cdef int count = 0
        for key, item in pairs(holder, self.second >= 0):
            frame.spend()
            slots[self.first] = key
            if self.second >= 0:
                slots[self.second] = item
            if self.predicate is not None and not self.predicate.decided(frame):
                continue
            if self.kind == EXISTS_ONE:
                count += 1
            elif self.kind == FILTER:
                items.append(key)
            elif self.kind == MAP or self.kind == TRANSFORM_LIST:
                items.append(self.result.eval(frame))
            elif self.kind == TRANSFORM_MAP:
                entries[key] = self.result.eval(frame)
            else:
                self.merge(entries, self.result.eval(frame))
        if self.kind == EXISTS_ONE:
            return count == 1
        return entries if self.kind >= TRANSFORM_MAP else items

    cdef int merge(self, dict entries, object more) except -1:
        if not isinstance(more, dict):
            raise no_overload("transformMapEntry() wants maps")
        for key, value in more.items():
            if key in entries:
                raise EvaluationError(f"insert failed: key {key!r} already exists")
            entries[key] = value
        return 0

    cdef object rebuild(self, EvaluationFrame frame, object holder):
        """Evaluate mapValues() or filterKeys()."""
        cdef dict found = {}
        for key, value in as_map(holder).items():
            frame.spend()
            if self.kind == MAP_VALUES:
                frame.slots[self.first] = value
                found[key] = self.result.eval(frame)
            else:
                frame.slots[self.first] = key
                if self.predicate.decided(frame):
                    found[key] = value
        return found


def pairs(holder, bint two):
    """Return the (first, second) variables of each visit.

    With one variable, first is a list's member or a map's key. With two, they are (index, member) or (key, value).
    Raises EvaluationError if `holder` is neither a list nor a map.
    """
    if isinstance(holder, (list, tuple)):
        return enumerate(holder) if two else [(item, None) for item in holder]
    if isinstance(holder, dict):
        return list(holder.items())
    finder = getattr(holder, "cel_items", None)
    if finder is not None:
        return finder()
    raise no_overload("a list or map is wanted")


cdef object UNSET = object()


cdef class Hoisted(ExpressionNode):
    """A part of a macro's body that does not depend on the macro's variables: it is evaluated at most once.

    slot: holds its value during the evaluation of the macro. A failure is not kept.
    """

    cdef ExpressionNode node
    cdef int slot

    def __init__(self, int slot, ExpressionNode node):
        self.slot = slot
        self.node = node

    cdef object eval(self, EvaluationFrame frame):
        found = frame.slots[self.slot]
        if found is UNSET:
            found = frame.slots[self.slot] = self.node.eval(frame)
        return found

    cdef object probe(self, EvaluationFrame frame):
        found = frame.slots[self.slot]
        if found is UNSET:
            found = self.node.probe(frame)
            if found is not ABSENT:
                frame.slots[self.slot] = found
        return found


cdef class HoistScope(ExpressionNode):
    """An outermost macro with hoisted parts. slots: their slots, which are unset before each evaluation."""

    cdef tuple slots
    cdef ExpressionNode body

    def __init__(self, tuple slots, ExpressionNode body):
        self.slots = slots
        self.body = body

    cdef int unset(self, EvaluationFrame frame) except -1:
        for slot in self.slots:
            frame.slots[slot] = UNSET
        return 0

    cdef object eval(self, EvaluationFrame frame):
        self.unset(frame)
        return self.body.eval(frame)

    cdef int truth(self, EvaluationFrame frame) except -1:
        self.unset(frame)
        return self.body.truth(frame)


cdef class With(ExpressionNode):
    """`x.with(v, expr)` and `cel.bind(v, x, expr)`."""

    cdef ExpressionNode value, body
    cdef int slot

    def __init__(self, ExpressionNode value, int slot, ExpressionNode body):
        self.value = value
        self.slot = slot
        self.body = body

    cdef object eval(self, EvaluationFrame frame):
        frame.spend()
        frame.slots[self.slot] = self.value.eval(frame)
        return self.body.eval(frame)


cdef class OptionalMap(ExpressionNode):
    """`o.optMap(v, expr)` and, with `flat`, `o.optFlatMap(v, expr)`."""

    cdef ExpressionNode operand, body
    cdef int slot
    cdef bint flat

    def __init__(self, ExpressionNode operand, int slot, ExpressionNode body, bint flat):
        self.operand = operand
        self.slot = slot
        self.body = body
        self.flat = flat

    cdef object eval(self, EvaluationFrame frame):
        found = self.operand.eval(frame)
        if type(found) is not OptionalValue:
            raise no_overload("optMap() of a value that is not optional")
        if not (<OptionalValue>found).present:
            return NONE
        frame.slots[self.slot] = (<OptionalValue>found).inner
        value = self.body.eval(frame)
        if not self.flat:
            return OptionalValue(True, value)
        if type(value) is not OptionalValue:
            raise no_overload("optFlatMap() wants an optional")
        return value


cdef class CustomCall(ExpressionNode):
    """A call of a function that the configuration defines: its parameters are slots, its body is part of this tree."""

    cdef tuple arguments, slots
    cdef ExpressionNode body

    def __init__(self, tuple slots, tuple arguments, ExpressionNode body):
        self.slots = slots
        self.arguments = arguments
        self.body = body

    cdef object eval(self, EvaluationFrame frame):
        frame.spend()
        values = [(<ExpressionNode>argument).eval(frame) for argument in self.arguments]
        for slot, value in zip(self.slots, values):
            frame.slots[slot] = value
        return self.body.eval(frame)
