CREDENTIALS: tuple[str, ...]
REDACTED: str

def hide_parameter(name: str) -> None:
    """Let no log line of this process show the values of that query parameter: they are credentials."""
