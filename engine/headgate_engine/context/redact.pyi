CREDENTIALS: tuple[str, ...]
REDACTED: str

def redacted(target: str) -> str:
    """Return a target without the values of credentials in its query."""

def hide_parameter(name: str) -> None:
    """Redact the values of that query parameter in all log lines of this process from now on."""
