CREDENTIALS: tuple[str, ...]
REDACTED: str

def redacted(target: str) -> str:
    """Return a target without the values of credentials in its query."""

class HiddenParameter:
    """While an object lives, the values of that query parameter are redacted in all log lines of this process."""

    def __init__(self, name: str) -> None: ...
