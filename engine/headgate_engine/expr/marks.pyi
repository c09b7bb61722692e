OPEN: str
CLOSE: str

def mark_literals(text: str) -> tuple[str, list[str]]:
    """Return an expression with numbered marks in place of its string literals, and the literals as written.

    A mark is a literal with the number of the text between OPEN and CLOSE. A literal behind an opening bracket may be a
    field name, on which the compilation depends, so it stays. Without literals, and where there is a literal of another
    kind (raw, bytes, several lines), a quoted field, a comment or OPEN itself, the list is empty.
    """
