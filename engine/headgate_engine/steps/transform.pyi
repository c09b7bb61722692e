from collections.abc import Iterable

from headgate_engine.expr.program import Program
from headgate_engine.plan.step import Step

FRAMING: frozenset[bytes]
REQUEST_PSEUDO: tuple[bytes, ...]
FAILED: str
BODILESS: tuple[int, ...]
UNCHANGED: tuple[bytes, ...]

class TransformStep(Step):
    """The request or the response half of the policy.

    metadata, added, replaced: pairs of name and Program. replace, body: a Program. Raises ValueError for names that
    cannot be changed.
    """

    def __init__(
        self,
        response: bool,
        *,
        metadata: Iterable[tuple[str, Program]] = (),
        replace: Program | None = None,
        added: Iterable[tuple[str, Program]] = (),
        replaced: Iterable[tuple[str, Program]] = (),
        removed: Iterable[str] = (),
        body: Program | None = None,
    ) -> None: ...
