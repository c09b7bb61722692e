CREDENTIALS: tuple[str, ...]
REDACTED: str

def redacted(target: str) -> str:
    """Return a target without the values of credentials in its query."""

def hide_parameter(name: str) -> None:
    """Let no log line of this process show the values of that query parameter: they are credentials."""
