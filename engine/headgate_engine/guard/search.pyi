from collections.abc import Collection

from headgate_engine.guard.scan import ScanBudget, Scanner
from headgate_engine.guard.transcript import BodyTexts

def first_rule(scanner: Scanner, texts: BodyTexts, scopes: Collection[str], budget: ScanBudget) -> int:
    """Return the rule that Scanner.first() returns for the first run with a match, -1 for none.

    scopes: of the runs to search (headgate_engine.guard.transcript.SCOPES). Raises ValueError for another name.
    """

def masked(scanner: Scanner, texts: BodyTexts, scopes: Collection[str], budget: ScanBudget) -> bytes | None:
    """Return the body with the matches of Scanner.edits() in the runs in scope replaced, None without matches.

    A match over several pieces is replaced in the last one; the others lose the part that it covers, and are removed if
    nothing remains and the format allows it. All other bytes stay. Raises PeekError (a ValueError) if a mask broke raw
    JSON.
    """

class Patch:
    """Changes of a body by masks. Only masked() makes it."""
