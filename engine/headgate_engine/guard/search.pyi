from collections.abc import Collection

from headgate_engine.guard.scan import Budget, Scanner
from headgate_engine.guard.transcript import BodyTexts

def first_rule(scanner: Scanner, texts: BodyTexts, scopes: Collection[str], budget: Budget) -> int:
    """Return the rule that Scanner.first() names for the first run that has a match, -1 without any.

    scopes: of the runs that are looked at (headgate_engine.guard.transcript.SCOPES); ValueError for another name.
    """

def masked(scanner: Scanner, texts: BodyTexts, scopes: Collection[str], budget: Budget) -> bytes | None:
    """Return the body with what Scanner.edits() finds in the runs in scope replaced, None when nothing is found.

    A match over several pieces goes into the last one; those before it lose what it covers, and are left out when
    nothing remains and they may be. All other bytes stay. PeekError (a ValueError) when a mask broke raw JSON.
    """

class Patch:
    """What masks change in a body; only masked() makes it."""
