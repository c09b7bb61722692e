NAMES: tuple[str, ...]
SYSTEM_LIBRARY: bytes

def version() -> str:
    """Return name and version of the library that is loaded. Raises TlsError where there is no OpenSSL 3."""
