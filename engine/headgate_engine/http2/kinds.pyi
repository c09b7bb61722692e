FRAMES: tuple[tuple[str, int, str, int | None, int, dict[str, int]], ...]
ERRORS: tuple[str, ...]
SETTINGS: tuple[tuple[str, int, int | None, int, int, str], ...]
WHERE: dict[str, int]

def error_name(code: int) -> str:
    """Return the name of an error code, its number where it has none."""
